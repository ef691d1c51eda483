// GatewayBackend: the mcp::Backend of the front server of one endpoint. Serves list requests of clients from
// the catalogue and forwards all other requests to the server that has the tool, prompt or resource. Private
// to the layer.
#pragma once

#include <chrono>
#include <memory>

#include "fairlead/mcp/backend.hpp"
#include "gateway/catalogue_pages.hpp"
#include "gateway/client_sessions.hpp"
#include "gateway/endpoint_scope.hpp"
#include "gateway/endpoint_tools.hpp"
#include "gateway/failure.hpp"
#include "gateway/forwarding.hpp"
#include "gateway/list_fetcher.hpp"
#include "gateway/missing_list_reporter.hpp"
#include "gateway/own_list_fetcher.hpp"
#include "gateway/router.hpp"
#include "gateway/subscription_hub.hpp"

namespace fairlead::gateway {

class GatewayBackend final : public mcp::Backend,
                             public EndpointView,
                             public std::enable_shared_from_this<GatewayBackend> {
 public:
  // The components that the backends of all endpoints share.
  struct Components {
    std::shared_ptr<pool::Pool> pool;
    std::shared_ptr<ServerTable> servers;
    std::shared_ptr<CatalogueStore> catalogue;
    std::shared_ptr<ListFetcher> list_fetcher;
    std::shared_ptr<MissingListReporter> missing_list_reporter;
    std::shared_ptr<SessionTable> sessions;
    std::shared_ptr<ClientSessions> client_sessions;
    std::shared_ptr<SubscriptionHub> subscription_hub;
    FailurePolicy failure_policy;
    // How long a list request waits for servers whose lists have not been fetched yet.
    std::shared_ptr<std::chrono::milliseconds> list_wait;
    std::shared_ptr<EncodedPages::Budget> page_budget;  // of the catalogues of all endpoints
  };
  GatewayBackend(Loop& loop, mcp::Server front, Components components,
                 std::shared_ptr<const EndpointScope> scope);

  // Sets the tools that the gateway itself offers at this endpoint; null: none.
  void set_tools(std::shared_ptr<EndpointTools> tools) { tools_ = std::move(tools); }

  bool has_capability(std::string_view capability) const override;
  Task<Answer> serve(mcp::BackendRequest request) override;
  bool serve_directly(mcp::DirectRequest&& request, const std::shared_ptr<Responder>& responder) override;
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override;
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override;
  void on_session_began(std::string_view session, ContextSource context_source) override;
  void on_log_level_set(std::string_view session, mcp::LoggingLevel level) override;
  void on_session_ended(std::string_view session) override;

  // EndpointView
  std::shared_ptr<const Catalogue> catalogue(std::string_view session, const Principal& principal) override {
    return components_.catalogue->view(*scope_, session, principal);
  }
  Task<void> wait_for_lists(PrincipalPtr principal, std::stop_token stop) override;
  Task<Answer> forward(mcp::BackendRequest request) override;

 private:
  // Returns the error without secrets. An error of a server can contain secrets that were passed to it.
  Error redacted(const Error& error) const;
  Task<Answer> serve_list(ListKind kind, mcp::BackendRequest request);
  Task<void> wait_for_offered_lists(PrincipalPtr principal, std::stop_token stop);
  // Returns the name of a server that exists for the client, and for which no attempt to fetch its lists has
  // ended. Searches from the server `from` on. Returns nullopt if there is none.
  std::optional<std::string> find_unlisted_server(const Principal& principal, const std::string& from) const;
  // Returns a callback that calls `on_updated` as long as the server exists for the client.
  SubscriptionHub::UpdateCallback while_offered(const std::string& server,
                                                SubscriptionHub::UpdateCallback on_updated,
                                                PrincipalPtr client) const;
  Task<Answer> call_own_tool(mcp::BackendRequest request);
  // Forwards a request that has no route yet, because the lists that name its server are still being fetched.
  Task<Answer> forward_when_routable(mcp::BackendRequest request, RequestTarget request_target);
  // Like Router::route(), but first waits for the lists that can provide a route. REQUIRES: `request_target`
  // outlives the task.
  Task<Result<Route>> wait_for_route(const RequestTarget& request_target, std::string session,
                                     PrincipalPtr principal, std::stop_token stop);

  Loop& loop_;
  mcp::Server front_;
  Components components_;
  Router router_;
  std::shared_ptr<Forwarder> forwarder_;
  std::shared_ptr<OwnListFetcher> own_lists_;
  std::shared_ptr<const EndpointScope> scope_;
  std::shared_ptr<EndpointTools> tools_;  // null: none
};

// Returns a backend for mcp::Server::backend() that calls `backend` and rejects requests once `backend` has
// been destroyed. The reference is weak because sessions of the front server can outlive the gateway. A
// session can also outlive the front of its endpoint, so its end is reported to `sessions`.
std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<GatewayBackend> backend,
                                           std::weak_ptr<ClientSessions> sessions);

}  // namespace fairlead::gateway
