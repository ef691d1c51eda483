// Implementation of Pool: delegates servers to a ServerRegistry and calls to a CallForwarder. Private to the
// layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/pool/pool.hpp"
#include "pool/call_forwarder.hpp"
#include "pool/pool_core.hpp"
#include "pool/server_registry.hpp"

namespace fairlead::pool {

class PoolImpl final : public Pool {
 public:
  PoolImpl(Loop& loop, PoolOptions options);

  Result<void> add(ServerSpec spec) override { return registry_->add(std::move(spec)); }
  Result<void> update(ServerSpec spec) override { return registry_->update(std::move(spec)); }
  Result<void> remove(std::string_view server) override { return registry_->remove(server); }
  Result<void> disable(std::string_view server) override { return registry_->disable(server); }
  Result<void> enable(std::string_view server) override { return registry_->enable(server); }
  Result<void> replace_upstreams(std::string_view server,
                                 const std::function<bool(const std::string& user)>& affects) override {
    return registry_->replace_upstreams(server, affects);
  }
  void set_connector(std::string name, Connector connector) override {
    core_->options.connectors.insert_or_assign(std::move(name), std::move(connector));
  }

  void set_limits(const PoolLimits& limits) override;

  Task<Result<ForwardedAnswer>> forward(Target target, std::shared_ptr<const mcp::ForwardedRequest> request,
                                        ForwardOptions options) override {
    return forwarder_->forward(std::move(target), std::move(request), std::move(options));
  }
  bool forward(const std::shared_ptr<DirectForward>& call) override { return forwarder_->try_forward(call); }
  Task<Result<Lease>> acquire(Target target, std::stop_token stop, StartPriority priority,
                              const Principal* client) override {
    return forwarder_->acquire(std::move(target), std::move(stop), priority, client);
  }
  Result<Lease> keep_alive(const std::shared_ptr<Upstream>& upstream) override {
    return forwarder_->keep_alive(upstream);
  }
  Result<void> notify(const Target& target, std::string_view method, const json::Raw& params) override {
    return forwarder_->notify(target, method, params);
  }
  Task<Result<std::shared_ptr<Upstream>>> warm(Target target, std::stop_token stop,
                                               const Principal* client) override {
    return forwarder_->warm(std::move(target), std::move(stop), client);
  }
  Task<void> end_sessions(std::set<std::string, std::less<>> sessions) override {
    return registry_->end_sessions(std::move(sessions));
  }

  std::vector<UpstreamStatus> status() const override { return registry_->status(); }
  std::optional<std::string> server_after(std::string_view server) const override {
    return registry_->server_after(server);
  }
  std::vector<std::shared_ptr<Upstream>> upstreams(std::string_view server) const override {
    return registry_->upstreams(server);
  }
  const std::shared_ptr<PoolMonitor>& monitor() const noexcept override { return core_->options.monitor; }
  std::size_t process_count() const noexcept override { return core_->process_permits->in_use(); }
  Task<void> shutdown(std::chrono::milliseconds grace) override;

 private:
  std::shared_ptr<PoolCore> core_;
  std::shared_ptr<ServerRegistry> registry_;
  std::shared_ptr<CallForwarder> forwarder_;
};

}  // namespace fairlead::pool
