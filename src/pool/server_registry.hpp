// ServerRegistry: which servers a pool has, and which upstreams each of them. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/core.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

class ServerRegistry : public std::enable_shared_from_this<ServerRegistry> {
 public:
  using UpstreamPtr = std::shared_ptr<ManagedUpstream>;

  struct Server {
    std::shared_ptr<ServerState> state;
    std::map<std::string, UpstreamPtr, std::less<>> upstreams;  // by session or user
    bool enabled = true;
  };

  static std::shared_ptr<ServerRegistry> create(std::shared_ptr<Core> core);
  explicit ServerRegistry(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~ServerRegistry() { core_->settled = nullptr; }
  ServerRegistry(const ServerRegistry&) = delete;

  // ---- servers: see Pool ----
  Result<void> add(ServerSpec spec);
  Result<void> update(ServerSpec spec);
  Result<void> remove(std::string_view name);
  Result<void> disable(std::string_view name);
  Result<void> enable(std::string_view name);
  // Valid until the server is changed or removed.
  Result<Server*> find(std::string_view name);
  std::vector<UpstreamStatus> status() const;
  std::optional<std::string> server_after(std::string_view name) const;
  std::vector<std::shared_ptr<Upstream>> upstreams(std::string_view name) const;

  // ---- upstreams ----
  // The one that serves `target`, made if need be, but not started for it.
  Result<UpstreamPtr> upstream_of(const Target& target);
  // Requests of some methods leave something behind at a server of the legacy era, for the whole of its
  // connection: it is not shared any more.
  void note_method(const Target& target, std::string_view method);
  Task<void> end_sessions(std::set<std::string, std::less<>> sessions);
  // Refuses calls from now on, and retires all upstreams, many of them in slices.
  Task<void> shut_down(std::chrono::milliseconds grace);

 private:
  Server make_server(ServerSpec spec);
  void keep_running(Server& server);
  void retire(Server& server, std::string_view why);
  void let_go(UpstreamPtr upstream, std::string_view why);
  void keep_apart(const std::string& name, const std::string& evidence);
  void forget(ManagedUpstream& upstream);

  std::shared_ptr<Core> core_;
  std::map<std::string, Server, std::less<>> servers_;
  // By server. Upstreams of servers that were removed or changed since, until they have stopped.
  std::map<std::string, std::set<UpstreamPtr>, std::less<>> leaving_;
  bool shutting_down_ = false;
};

}  // namespace fairlead::pool
