// GatewayBackend: the mcp::Backend of the gateway's front server. Serves list requests of clients from the
// catalogue and forwards all other requests to the server that has the tool, prompt or resource. Private to
// the layer.
#pragma once

#include <chrono>
#include <memory>

#include "fairlead/mcp/backend.hpp"
#include "gateway/ended_sessions.hpp"
#include "gateway/failure.hpp"
#include "gateway/forwarding.hpp"
#include "gateway/list_fetcher.hpp"
#include "gateway/missing_list_reporter.hpp"
#include "gateway/router.hpp"
#include "gateway/session_table.hpp"
#include "gateway/subscription_hub.hpp"
#include "gateway/upstream_log_levels.hpp"

namespace fairlead::gateway {

class GatewayBackend final : public mcp::Backend, public std::enable_shared_from_this<GatewayBackend> {
 public:
  // The components that the backend uses.
  struct Components {
    std::shared_ptr<pool::Pool> pool;
    std::shared_ptr<ServerTable> servers;
    std::shared_ptr<CatalogueStore> catalogue;
    std::shared_ptr<ListFetcher> list_fetcher;
    std::shared_ptr<MissingListReporter> missing_list_reporter;
    std::shared_ptr<SessionTable> sessions;
    std::shared_ptr<UpstreamLogLevels> upstream_log_levels;
    std::shared_ptr<SubscriptionHub> subscription_hub;
    FailurePolicy failure_policy;
  };
  GatewayBackend(Loop& loop, mcp::Server front, Components components);

  // Sets how long a list request waits for servers whose lists have not been fetched yet.
  void set_list_wait(std::chrono::milliseconds wait) { list_wait_ = wait; }

  const FailurePolicy& failure_policy() const noexcept { return components_.failure_policy; }

  bool has_capability(std::string_view capability) const override;
  Task<Answer> serve(mcp::BackendRequest request) override;
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override;
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override;
  void on_session_began(std::string_view session, ContextSource context_source) override;
  void on_log_level_set(std::string_view session, mcp::LoggingLevel level) override;
  void on_session_ended(std::string_view session) override;

 private:
  // Returns the error without secrets. An error of a server can contain secrets that were passed to it.
  Error redacted(const Error& error) const;
  Task<Answer> serve_list(ListKind kind, mcp::BackendRequest request);
  // Forwards a request that has no route yet, because the lists that name its server are still being fetched.
  Task<Answer> forward_when_routable(mcp::BackendRequest request, RequestTarget request_target);
  // Writes the tools of the gateway itself as elements of an array.
  void write_own_tools(json::Writer& out, mcp::Revision revision) const;
  // Like Router::route(), but first waits for the lists that can provide a route. REQUIRES: `request_target`
  // outlives the task.
  Task<Result<Route>> wait_for_route(const RequestTarget& request_target, std::string session,
                                     PrincipalPtr principal, std::stop_token stop);

  Loop& loop_;
  mcp::Server front_;
  Components components_;
  Router router_;
  std::shared_ptr<Forwarder> forwarder_;
  std::shared_ptr<EndedSessions> ended_sessions_;
  std::chrono::milliseconds list_wait_{10'000};
};

// Returns a backend for mcp::Server::backend() that calls `backend` and rejects requests once `backend` has
// been destroyed. The reference is weak because sessions of the front server can outlive the gateway.
std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<mcp::Backend> backend);

}  // namespace fairlead::gateway
