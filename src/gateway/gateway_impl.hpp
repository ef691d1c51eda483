// GatewayImpl: the implementation of Gateway. Creates the components of a gateway and passes each change of
// the configured servers on to them. Private to the layer.
#pragma once

#include <memory>
#include <string>

#include "fairlead/gateway/gateway.hpp"
#include "gateway/front_table.hpp"
#include "gateway/health_reporter.hpp"
#include "gateway/registered_servers.hpp"
#include "gateway/upstream_events.hpp"

namespace fairlead::gateway {

class GatewayImpl final : public Gateway, public std::enable_shared_from_this<GatewayImpl> {
 public:
  GatewayImpl(Loop& loop, const Config& config, const Log& log)
      : GatewayImpl(loop, config, log, std::make_shared<SharedRedactor>()) {}
  // Adds the servers of `config` and starts to fetch their lists.
  Result<void> start(const Config& config);

  const mcp::Server& front() const noexcept override { return fronts_->default_server(); }
  pool::Pool& pool() const noexcept override { return *pool_; }
  json::Raw health() const override;
  Task<Result<HealthPtr>> health_for(const Principal& reader, std::stop_token stop) const override;
  Result<void> add_tool(mcp::ToolSpec spec, mcp::Server::CoroutineTool handler) override;
  bool remove_tool(const std::string& name) override;
  Result<void> add_server(pool::ServerSpec spec) override;
  Result<void> update_server(pool::ServerSpec spec) override;
  Result<void> remove_server(std::string_view name) override;
  Result<void> put_server(pool::ServerSpec spec, ServerPolicy policy,
                          std::shared_ptr<const registry::StoredLists> stored) override;
  Task<Result<ToolChanges>> refresh(std::string server) override {
    return RegisteredServers::refresh(registered_servers_, std::move(server));
  }
  void on_lists(ListsObserver observer) override { registered_servers_->set_observer(std::move(observer)); }
  Endpoints& endpoints() noexcept override { return *fronts_; }
  void apply(const Config& config) override;
  Result<void> enable_server(std::string_view name) override;
  Result<void> disable_server(std::string_view name) override;
  Task<Result<void>> reload(Config config) override;
  Result<void> check_reload(const Config& config) const override;
  Task<void> shutdown(std::chrono::milliseconds grace) override;

 private:
  // `redactor` is shared with the pool and all logs.
  GatewayImpl(Loop& loop, const Config& config, const Log& log, std::shared_ptr<SharedRedactor> redactor);
  friend class ServerReload;

  Loop& loop_;
  Log log_;
  std::shared_ptr<UpstreamEvents> upstream_events_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  std::shared_ptr<ListFetcher> list_fetcher_;
  std::shared_ptr<SubscriptionHub> subscription_hub_;
  std::shared_ptr<HealthReporter> health_reporter_;
  std::shared_ptr<FrontTable> fronts_;
  std::shared_ptr<RegisteredServers> registered_servers_;
  // What a reload in progress checks after each server: it ends early if the gateway is stopping, or if a
  // later reload has begun.
  struct ReloadState {
    bool stopping = false;           // shutdown() was called
    std::uint64_t reload_count = 0;  // reloads begun so far
  };
  ReloadState reload_state_;
};

}  // namespace fairlead::gateway
