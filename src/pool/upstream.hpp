// ManagedUpstream: implementation of Upstream. It is composed of units with one responsibility each. A unit
// refers to its upstream and uses the other units through that reference. Private to the layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/active_calls.hpp"
#include "pool/connection_opener.hpp"
#include "pool/connection_slot.hpp"
#include "pool/connection_use.hpp"
#include "pool/failure_record.hpp"
#include "pool/health_monitor.hpp"
#include "pool/lifecycle.hpp"
#include "pool/pool_core.hpp"
#include "pool/starter.hpp"

namespace fairlead::pool {

class ManagedUpstream final : public Upstream, public std::enable_shared_from_this<ManagedUpstream> {
 public:
  // Creates an upstream, and starts it if its server has `keep_running`.
  static std::shared_ptr<ManagedUpstream> make(std::shared_ptr<PoolCore> core,
                                               std::shared_ptr<ServerContext> server, std::string key,
                                               std::string user);
  ~ManagedUpstream() override;

  const ServerSpec& spec() const noexcept override { return server->spec; }
  const std::string& key() const noexcept override { return key_; }
  UpstreamState state() const noexcept override { return lifecycle.supervisor().state(); }
  std::uint64_t generation() const noexcept override { return lifecycle.supervisor().generation(); }
  std::shared_ptr<UpstreamConnection> connection() const noexcept override { return slot.connection(); }
  std::vector<ActiveCallInfo> active_calls() const override { return active.infos(); }
  ClientCallSummary client_call_summary() const override { return active.client_call_summary(); }
  UpstreamStatus status() const override;

  bool ready() const noexcept { return state() == UpstreamState::ready; }
  // Returns whether the upstream will not be started again, because its server was updated, disabled or
  // removed, or because its session has ended.
  bool retired() const;
  // Returns true if the upstream is not running, not being started, and has no active calls.
  bool inactive() const noexcept;
  // Returns whether the upstream has a process that may be stopped now, when another server needs a process.
  bool evictable() const noexcept;
  void set_key(std::string key) { key_ = std::move(key); }
  // Posts a callback that calls PoolCore::on_inactive if the upstream is inactive() by then.
  void post_inactive_check();
  // To be called when a call or a lease has ended.
  void on_use_ended();
  // To be called when the server has answered a call of `tool`; empty if the call was not tools/call.
  void on_call_answered(std::string_view tool);
  // Stops a legacy-era server that no client has used yet, if the clients now have capabilities that were not
  // declared to the server. A legacy-era client declares capabilities only in the handshake, so the server
  // must be restarted. REQUIRES: ready().
  void stop_if_capabilities_outdated();

  const std::shared_ptr<PoolCore> core;
  const std::shared_ptr<ServerContext> server;
  const std::string user;  // the only one that it serves; empty: several users, or none
  ActiveCalls active;
  ConnectionUse use;
  FailureRecord failures;
  HealthMonitor health;
  Lifecycle lifecycle;
  Starter starter;
  ConnectionOpener opener;
  ConnectionSlot slot;

 private:
  ManagedUpstream(std::shared_ptr<PoolCore> of_pool, std::shared_ptr<ServerContext> of_server,
                  std::string key, std::string of_user);
  HealthMonitor::Actions health_actions();
  static Task<void> ping(std::weak_ptr<ManagedUpstream> weak, std::shared_ptr<UpstreamConnection> connection,
                         std::uint64_t generation);

  std::string key_;
};

}  // namespace fairlead::pool
