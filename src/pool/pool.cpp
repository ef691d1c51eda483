#include "fairlead/pool/pool.hpp"

#include "pool/pool_impl.hpp"

namespace fairlead::pool {

namespace {

// What is left of the stop ladder after the last call is over, with room to spare.
constexpr std::chrono::seconds kStopLadder{10};

Task<void> shut_down(std::shared_ptr<Core> core, std::shared_ptr<ServerRegistry> registry,
                     std::chrono::milliseconds grace) {
  Task<void> retiring = registry->shut_down(grace);
  co_await retiring;
  Task<bool> ending = core->all_gone(grace + kStopLadder);
  const bool gone = co_await ending;
  if (!gone) core->log().error("servers are still not gone", {});
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

std::shared_ptr<Pool> Pool::create(Loop& loop, PoolOptions options) {
  return std::make_shared<PoolImpl>(loop, std::move(options));
}

PoolImpl::PoolImpl(Loop& loop, PoolOptions options)
    : core_(std::make_shared<Core>(loop, std::move(options))),
      registry_(ServerRegistry::create(core_)),
      forwarder_(std::make_shared<CallForwarder>(core_, registry_)) {}

Task<void> PoolImpl::shutdown(std::chrono::milliseconds grace) {
  return shut_down(core_, registry_, grace);
}

Task<Result<rpc::Message>> Pool::call(Target target, rpc::Message request, ForwardOptions options) {
  std::shared_ptr<const mcp::OutgoingRequest> outgoing =
      std::make_shared<const mcp::VerbatimRequest>(std::move(request));
  Task<Result<ForwardedAnswer>> forwarding =
      forward(std::move(target), std::move(outgoing), std::move(options));
  const Result<ForwardedAnswer> answer = co_await forwarding;
  if (!answer) co_return answer.error();
  co_return answer->message;
}

}  // namespace fairlead::pool
