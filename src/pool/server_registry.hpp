// ServerRegistry: the servers of a pool and their upstreams. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/pool_core.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

class ServerRegistry : public std::enable_shared_from_this<ServerRegistry> {
 public:
  using UpstreamPtr = std::shared_ptr<ManagedUpstream>;

  struct Entry {
    std::shared_ptr<ServerContext> context;
    std::map<std::string, UpstreamPtr, std::less<>> upstreams;  // by session or user
    bool enabled = true;
  };

  static std::shared_ptr<ServerRegistry> create(std::shared_ptr<PoolCore> core);
  explicit ServerRegistry(std::shared_ptr<PoolCore> core) : core_(std::move(core)) {}
  ~ServerRegistry() { core_->on_inactive = nullptr; }
  ServerRegistry(const ServerRegistry&) = delete;

  // ---- servers: see Pool ----
  Result<void> add(ServerSpec spec);
  Result<void> update(ServerSpec spec);
  Result<void> remove(std::string_view name);
  Result<void> disable(std::string_view name);
  Result<void> enable(std::string_view name);
  Result<void> replace_upstreams(std::string_view name,
                                 const std::function<bool(const std::string& user)>& affects);
  // Fails with `validation` if the server is unknown. The result is valid until the server is updated or
  // removed.
  Result<Entry*> find(std::string_view name);
  std::vector<UpstreamStatus> status() const;
  std::optional<std::string> server_after(std::string_view name) const;
  std::vector<std::shared_ptr<Upstream>> upstreams(std::string_view name) const;

  // ---- upstreams ----
  // Returns the upstream that serves `target`, and creates it if necessary. Does not start it, unless it is
  // new and its server has `keep_running`.
  Result<UpstreamPtr> get_or_create_upstream(const Target& target);
  // Unshares the server of `target` if `method` changes the state of a connection (logging/setLevel,
  // resources/subscribe), which sessions must then not share.
  void unshare_if_stateful(const Target& target, std::string_view method);
  Task<void> end_sessions(std::set<std::string, std::less<>> sessions);
  // Rejects calls from now on, and retires all upstreams, in slices.
  Task<void> shut_down(std::chrono::milliseconds grace);

 private:
  // Also registers the variables that the spec refers to, and starts the server if it has `keep_running`.
  Entry make_entry(ServerSpec spec);
  // Retires all upstreams of the server.
  void retire_all(Entry& server, std::string_view reason);
  void retire_upstream(UpstreamPtr upstream, std::string_view reason);
  // Switches a shared server that was found to be stateful to one upstream per session. The existing
  // connection stays with its session if it has served no other session, and is retired otherwise.
  void unshare(const std::string& name, const std::string& evidence);
  // Erases an inactive upstream if it is retired, or if it belongs to a session or user.
  void erase_inactive(ManagedUpstream& upstream);

  std::shared_ptr<PoolCore> core_;
  std::map<std::string, Entry, std::less<>> servers_;
  // By server: upstreams that are being drained and stopped because their server was removed, updated or
  // unshared, or their session has ended.
  std::map<std::string, std::set<UpstreamPtr>, std::less<>> retiring_;
  bool shutting_down_ = false;
};

}  // namespace fairlead::pool
