// ManagedUpstream: implementation of Upstream. It joins the units that keep one upstream: each has one job,
// knows the upstream it belongs to, and is used by the others through it. Private to the layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/active_calls.hpp"
#include "pool/connection_opener.hpp"
#include "pool/connection_slot.hpp"
#include "pool/connection_use.hpp"
#include "pool/core.hpp"
#include "pool/failure_record.hpp"
#include "pool/health_monitor.hpp"
#include "pool/lifecycle.hpp"
#include "pool/starter.hpp"

namespace fairlead::pool {

class ManagedUpstream final : public Upstream, public std::enable_shared_from_this<ManagedUpstream> {
 public:
  static std::shared_ptr<ManagedUpstream> make(std::shared_ptr<Core> core,
                                               std::shared_ptr<ServerState> server, std::string key);
  ~ManagedUpstream() override;

  const ServerSpec& spec() const noexcept override { return server->spec; }
  const std::string& key() const noexcept override { return key_; }
  State state() const noexcept override { return lifecycle.supervisor().state(); }
  std::uint64_t generation() const noexcept override { return lifecycle.supervisor().generation(); }
  std::shared_ptr<UpstreamConnection> connection() const noexcept override { return slot.connection(); }
  std::vector<RunningCall> calls() const override { return active.running(); }
  ClientCalls client_calls() const override { return active.of_clients(); }
  UpstreamStatus status() const override;

  bool ready() const noexcept { return state() == State::ready; }
  bool at_rest() const noexcept;  // nothing runs, nothing is under way
  bool evictable() const noexcept;
  void belong_to(std::string key) { key_ = std::move(key); }
  // Tells the pool, after what runs now, if there is nothing left to wait for: it may forget this one.
  void settle_soon();
  // To be called when a call or a hold has ended.
  void note_idle();
  // The server has answered a call of `tool`; empty if no tool was called.
  void call_answered(std::string_view tool);
  // A server learns what its clients can be asked for only when it is started. If one that no client has used
  // yet lacks something that its clients have by now, it is stopped, to be started anew. REQUIRES: ready().
  void stop_if_uninformed();

  const std::shared_ptr<Core> core;
  const std::shared_ptr<ServerState> server;
  ActiveCalls active;
  ConnectionUse use;
  FailureRecord failures;
  HealthMonitor health;
  Lifecycle lifecycle;
  Starter starter;
  ConnectionOpener opener;
  ConnectionSlot slot;

 private:
  ManagedUpstream(std::shared_ptr<Core> of_pool, std::shared_ptr<ServerState> of_server, std::string key);
  HealthMonitor::Actions health_actions();
  static Task<void> ping(std::weak_ptr<ManagedUpstream> weak, std::shared_ptr<UpstreamConnection> connection,
                         std::uint64_t generation);

  std::string key_;
};

}  // namespace fairlead::pool
