// PoolImpl: the Pool there is: which server has which upstreams, and how a call gets to one. Private to the
// layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/core.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

class PoolImpl final : public Pool, public std::enable_shared_from_this<PoolImpl> {
 public:
  PoolImpl(Loop& loop, PoolOptions options) : core_(std::make_shared<Core>(loop, std::move(options))) {}
  ~PoolImpl() override { core_->settled = nullptr; }
  void open();

  Result<void> add(ServerSpec spec) override;
  Result<void> update(ServerSpec spec) override;
  Result<void> remove(std::string_view server) override;
  Result<void> disable(std::string_view server) override;
  Result<void> enable(std::string_view server) override;
  void set_connector(std::string name, Connector connector) override {
    core_->options.connectors.insert_or_assign(std::move(name), std::move(connector));
  }

  Task<Result<ForwardedAnswer>> forward(Target target, std::shared_ptr<const mcp::OutgoingRequest> request,
                                        ForwardOptions options) override;
  Task<Result<Lease>> acquire(Target target, std::stop_token stop, StartPriority priority) override;
  Result<Lease> hold(const std::shared_ptr<Upstream>& upstream) override;
  Result<void> notify(const Target& target, std::string_view method, const json::Raw& params) override;
  Task<Result<std::shared_ptr<Upstream>>> warm(Target target, std::stop_token stop) override;
  void end_session(std::string_view session) override;

  std::vector<UpstreamStatus> status() const override;
  std::size_t processes() const noexcept override { return core_->processes->inside(); }
  std::shared_ptr<const Redactor> redactor() const override { return core_->options.redactor->current(); }
  Task<void> shutdown(std::chrono::milliseconds grace) override;

 private:
  using UpstreamPtr = std::shared_ptr<ManagedUpstream>;

  struct Server {
    std::shared_ptr<ServerState> state;
    std::map<std::string, UpstreamPtr, std::less<>> upstreams;  // by session or user
    bool enabled = true;
  };
  // The right to be one of the calls under way.
  struct Admission {
    Admission() {}  // NOLINT: not an aggregate, see ConnectOptions

    Gate::Pass server;
    Gate::Pass all;
  };
  class Held;
  class Hold;

  Result<Server*> find(std::string_view name);
  Server make_server(ServerSpec spec);
  void keep_running(Server& server);
  void retire(Server& server, std::string_view why);
  void let_go(UpstreamPtr upstream, std::string_view why);
  void keep_apart(const std::string& name, const std::string& evidence);
  void forget(ManagedUpstream& upstream);

  // Calls (pool_calls.cpp).
  UpstreamPtr upstream_for(Server& server, const Target& target);
  Result<UpstreamPtr> upstream_of(const Target& target);
  void look_for_state(const Target& target, std::string_view method);
  Admission admit_at_once(const Target& target);
  Task<Result<Admission>> admit(const Target& target, std::stop_token stop);
  Task<Result<Gate::Pass>> enter(std::shared_ptr<Gate> gate, std::string whose, Clock::duration patience,
                                 std::stop_token stop);
  Task<Result<UpstreamPtr>> ready_upstream(const Target& target, std::stop_token stop,
                                           StartPriority priority = StartPriority::call);

  std::shared_ptr<Core> core_;
  std::map<std::string, Server, std::less<>> servers_;
  std::vector<UpstreamPtr> leaving_;  // of servers that are no longer, or are another way now
  bool shutting_down_ = false;
};

}  // namespace fairlead::pool
