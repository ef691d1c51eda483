// Router: finds the server that a client's request is forwarded to, and the server's own name of the tool or
// prompt. If there is no such server, returns the error for the client. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/mcp/context.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "gateway/catalogue_store.hpp"
#include "gateway/failure.hpp"
#include "gateway/server_table.hpp"
#include "gateway/tool_route_cache.hpp"

namespace fairlead::gateway {

// The tool, prompt or resource that a request names.
struct RequestTarget {
  ListKind kind = ListKind::tools;  // ListKind::resources for templates too
  std::string_view name;            // a public name, or the URI of a resource
};
// Returns the target of a request that is not a list request. Fails with the error to send to the client. The
// name refers to `call`.
Result<RequestTarget> parse_request_target(const mcp::CallFacts& call);

// The server that a request is forwarded to.
struct Route {
  std::shared_ptr<ServerEntry> server;
  std::shared_ptr<const Catalogue> catalogue;      // owns the following texts; null for resources
  std::optional<std::string_view> name_at_server;  // the server's own name of a tool or prompt
  json::View tool_entry;                           // the tool as clients see it; absent for other targets
};

class Router {
 public:
  // Routes the requests of clients of the endpoint with this scope.
  Router(std::shared_ptr<const ServerTable> servers, std::shared_ptr<CatalogueStore> catalogue,
         FailurePolicy failure_policy,
         std::shared_ptr<const EndpointScope> scope = std::make_shared<const EndpointScope>())
      : servers_(std::move(servers)),
        catalogue_(std::move(catalogue)),
        failure_policy_(std::move(failure_policy)),
        scope_(std::move(scope)) {}

  // Returns the route of a request. Fails with the error for the client if there is none. The caller sends
  // this error only if waiting cannot help: owner_with_missing_list() returns null and
  // resource_may_still_be_listed() returns false.
  Result<Route> route(const RequestTarget& target, std::string_view session,
                      const Principal& principal) const;
  // Returns the arguments of a tool that a modern client repeats as HTTP headers. Returns null if the tool is
  // unknown or none of its arguments is sent as a header.
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const;
  // For a request without a route: returns the server that the public name of the tool or prompt begins with,
  // if its list of that kind has not been fetched, so that the server may have the target. Returns null
  // otherwise.
  std::shared_ptr<ServerEntry> owner_with_missing_list(const RequestTarget& target,
                                                       const Principal& principal) const;
  // For a request without a route: returns whether the target is a resource that a server may still list,
  // because the first attempt to fetch lists has not ended for every server.
  bool resource_may_still_be_listed(const RequestTarget& target, const Principal& principal) const;

 private:
  Result<Route> route_tool(const RequestTarget& target, std::string_view session,
                           const Principal& principal) const;
  Result<Route> route_resource(const RequestTarget& target, std::string_view session,
                               const Principal& principal) const;
  // Returns the server whose tool or prompt the target may be, if it exists for the client; null otherwise.
  std::shared_ptr<ServerEntry> owner_of(const RequestTarget& target, const Principal& principal) const;
  Error unknown_name_error(const RequestTarget& target, const Principal& principal) const;
  Error unknown_resource_error(std::string_view uri, const Principal& principal) const;

  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<CatalogueStore> catalogue_;
  FailurePolicy failure_policy_;
  std::shared_ptr<const EndpointScope> scope_;
  mutable ToolRouteCache tool_routes_;
};

}  // namespace fairlead::gateway
