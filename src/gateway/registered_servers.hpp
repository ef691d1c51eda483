// RegisteredServers: adds and changes servers that have a policy and stored lists, as the registry describes
// them. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/gateway/gateway.hpp"
#include "gateway/list_fetcher.hpp"

namespace fairlead::gateway {

class RegisteredServers : public std::enable_shared_from_this<RegisteredServers> {
 public:
  using EntryPtr = std::shared_ptr<ServerEntry>;
  using StoredListsPtr = std::shared_ptr<const registry::StoredLists>;

  RegisteredServers(std::shared_ptr<pool::Pool> pool, std::shared_ptr<ServerTable> servers,
                    std::shared_ptr<CatalogueStore> catalogue, std::shared_ptr<ListFetcher> list_fetcher,
                    std::shared_ptr<ListBuilder> builder, Log log)
      : pool_(std::move(pool)),
        servers_(std::move(servers)),
        catalogue_(std::move(catalogue)),
        list_fetcher_(std::move(list_fetcher)),
        builder_(std::move(builder)),
        log_(std::move(log)) {}

  // See Gateway::on_lists().
  void set_observer(ListsObserver observer) { builder_->set_observer(std::move(observer)); }
  // See Gateway::put_server().
  Result<void> put(pool::ServerSpec spec, ServerPolicy policy, const StoredListsPtr& stored);
  // See Gateway::refresh().
  static Task<Result<ToolChanges>> refresh(std::shared_ptr<RegisteredServers> self, std::string server);

 private:
  Result<void> add(pool::ServerSpec spec, ServerPolicyPtr policy, const StoredListsPtr& stored);
  Result<void> update(const EntryPtr& former, pool::ServerSpec spec, const StoredListsPtr& stored);
  void set_policy(const EntryPtr& entry, ServerPolicyPtr policy, const StoredListsPtr& stored);
  // Offers the stored lists if the server has no others. Starts to fetch its lists if it has none then.
  void offer(const EntryPtr& entry, const StoredListsPtr& stored);
  // Fetches the shared lists after every fetch in progress has ended.
  Task<Result<void>> fetch_now(EntryPtr entry) const;

  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  std::shared_ptr<ListFetcher> list_fetcher_;
  std::shared_ptr<ListBuilder> builder_;
  Log log_;
};

}  // namespace fairlead::gateway
