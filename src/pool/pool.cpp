#include "fairlead/pool/pool.hpp"

#include "pool/pool_impl.hpp"

namespace fairlead::pool {

namespace {

// The maximum time that it takes to stop a process after its last call has ended, with a margin.
constexpr std::chrono::seconds kProcessStopTimeout{10};

Task<void> shut_down(std::shared_ptr<PoolCore> core, std::shared_ptr<ServerRegistry> registry,
                     std::chrono::milliseconds grace) {
  co_await registry->shut_down(grace);
  const bool closed = co_await core->wait_until_all_closed(grace + kProcessStopTimeout);
  if (!closed) core->log().error("servers are still running after shutdown", {});
}

}  // namespace

std::string_view to_string(Sharing sharing) noexcept {
  switch (sharing) {
    case Sharing::automatic: return "automatic";
    case Sharing::shared: return "shared";
    case Sharing::per_session: return "per_session";
    case Sharing::per_user: return "per_user";
  }
  return "unknown";
}

std::string unshared_upstream_key(Sharing sharing, std::string_view session, std::string_view user) {
  if (sharing == Sharing::per_user) return std::string(user);
  if (!session.empty() || user.empty()) return std::string(session);
  return "user " + std::string(user);  // no id of a session contains a space
}

std::shared_ptr<Pool> Pool::create(Loop& loop, PoolOptions options) {
  return std::make_shared<PoolImpl>(loop, std::move(options));
}

PoolImpl::PoolImpl(Loop& loop, PoolOptions options)
    : core_(std::make_shared<PoolCore>(loop, std::move(options))),
      registry_(ServerRegistry::create(core_)),
      forwarder_(std::make_shared<CallForwarder>(core_, registry_)) {}

void PoolImpl::set_limits(const PoolLimits& limits) {
  core_->options.limits = limits;
  core_->process_permits->set_limit(limits.max_stdio_processes);
  core_->start_permits->set_limit(limits.max_concurrent_starts);
  core_->call_permits->set_limit(limits.max_calls);
  core_->evict_idle();
}

Task<void> PoolImpl::shutdown(std::chrono::milliseconds grace) {
  return shut_down(core_, registry_, grace);
}

Task<Result<rpc::Message>> Pool::call(Target target, rpc::Message request, ForwardOptions options) {
  std::shared_ptr<const mcp::ForwardedRequest> outgoing =
      std::make_shared<const mcp::VerbatimRequest>(std::move(request));
  const Result<ForwardedAnswer> answer =
      co_await forward(std::move(target), std::move(outgoing), std::move(options));
  if (!answer) co_return answer.error();
  co_return answer->message;
}

}  // namespace fairlead::pool
