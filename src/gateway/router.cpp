#include "gateway/router.hpp"

#include <algorithm>

#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t kMaxTargetNameBytes = 1024;  // of a tool's or prompt's name in a request, as JSON

Error invalid_request_error(std::string message) {
  return refusal_error(rpc::kInvalidParams, std::move(message), failure::invalid_request);
}

Error server_disabled_error(const std::string& server) {
  const Error error(ErrorKind::connection_failed, "it is disabled");
  return server_failure_error(server, with_failure_code(error, failure::server_stopped), true);
}

// All clients without a user would share one upstream, as if they were the same user.
bool lacks_user(const ServerEntry& server, const Principal& client) {
  return server.per_user() && client.user.empty() && !server.policy->admits_clients_without_user;
}

Error user_required_error(const std::string& server) {
  return invalid_request_error("Server `" + server +
                               "` has sharing = \"per_user\": only authenticated clients can use it");
}

// Returns why the resources of an enabled server could not be fetched; nullopt if they were, or if the server
// is disabled.
std::optional<Error> resource_problem(const ServerEntry& entry) {
  if (!entry.enabled) return std::nullopt;
  if (entry.fetch_state.attempt_error) return entry.fetch_state.attempt_error;
  const std::optional<Error>& error =
      entry.fetch_state.errors_by_kind[static_cast<std::size_t>(ListKind::resources)];
  return error ? error : entry.fetch_state.errors_by_kind[static_cast<std::size_t>(ListKind::templates)];
}

}  // namespace

Result<RequestTarget> parse_request_target(const mcp::CallFacts& call) {
  const bool is_resource = call.targets_resource();
  if (!is_resource && call.target().text().size() > kMaxTargetNameBytes)
    return invalid_request_error("name exceeds the limit max_name_bytes (" +
                                 std::to_string(kMaxTargetNameBytes) + ")");
  const std::optional<std::string_view> name = call.target_text();
  if (!name)
    return invalid_request_error(std::string(is_resource ? "uri" : "name") + " is missing or not a string");
  RequestTarget target;
  target.kind = is_resource                   ? ListKind::resources
                : call.method == "tools/call" ? ListKind::tools
                                              : ListKind::prompts;
  target.name = *name;
  return target;
}

Result<Route> Router::route(const RequestTarget& target, std::string_view session,
                            const Principal& principal) const {
  if (target.kind == ListKind::tools) return route_tool(target, session, principal);
  if (target.kind == ListKind::resources) return route_resource(target, session, principal);
  auto catalogue = catalogue_->view(*scope_, session, principal);
  const CatalogueEntry* const prompt = catalogue->find_prompt(target.name);
  auto server = prompt ? servers_->find(prompt->server) : nullptr;
  if (!server) return unknown_name_error(target, principal);
  if (lacks_user(*server, principal)) return user_required_error(server->name());
  return Route{std::move(server), std::move(catalogue), prompt->name, json::View()};
}

Result<Route> Router::route_tool(const RequestTarget& target, std::string_view session,
                                 const Principal& principal) const {
  auto catalogue = catalogue_->view(*scope_, session, principal);
  const auto [tool, server] = tool_routes_.find(catalogue, *servers_, target.name);
  if (!server) return unknown_name_error(target, principal);
  if (lacks_user(**server, principal)) return user_required_error((*server)->name());
  return Route{*server, std::move(catalogue), tool->name, json::View(tool->modern_json)};
}

mcp::HeaderParams Router::header_params(std::string_view tool, const Principal& principal) const {
  // Only modern clients repeat arguments in HTTP headers, and modern clients have no session.
  const auto catalogue = catalogue_->view(*scope_, std::string_view(), principal);
  const CatalogueEntry* const entry = tool_routes_.find(catalogue, *servers_, tool).entry;
  return entry ? entry->header_params : nullptr;
}

Result<Route> Router::route_resource(const RequestTarget& target, std::string_view session,
                                     const Principal& principal) const {
  const auto catalogue = catalogue_->view(*scope_, session, principal);
  const Result<const std::string*> found =
      catalogue->server_of_resource(target.name, !resource_may_still_be_listed(target, principal));
  if (!found) return found.error();
  const auto server = *found ? servers_->find(**found) : nullptr;
  if (!server) return unknown_resource_error(target.name, principal);
  if (lacks_user(*server, principal)) return user_required_error(server->name());
  return Route{server, nullptr, std::nullopt, json::View()};
}

std::shared_ptr<ServerEntry> Router::owner_of(const RequestTarget& target, const Principal& principal) const {
  const std::string* const single = scope_->single_server();
  auto owner =
      single ? servers_->find(*single) : servers_->owner_of_public_name(scope_->name_at_default(target.name));
  return owner && ClientScope{*scope_, principal}.offers(*owner) ? owner : nullptr;
}

std::shared_ptr<ServerEntry> Router::owner_with_missing_list(const RequestTarget& target,
                                                             const Principal& principal) const {
  if (target.kind == ListKind::resources) return nullptr;
  auto owner = owner_of(target, principal);
  return owner && owner->enabled && owner->may_have_unlisted_entries(target.kind) ? owner : nullptr;
}

bool Router::resource_may_still_be_listed(const RequestTarget& target, const Principal& principal) const {
  const ClientScope client{*scope_, principal};
  return target.kind == ListKind::resources &&
         std::ranges::any_of(servers_->by_name(), [&](const auto& server) {
           return !server.second->fetch_state.attempted && client.offers(*server.second);
         });
}

Error Router::unknown_name_error(const RequestTarget& target, const Principal& principal) const {
  const auto owner = owner_of(target, principal);
  if (owner && !owner->enabled) return server_disabled_error(owner->name());
  const std::string kind = target.kind == ListKind::tools ? "tool" : "prompt";
  return refusal_error(rpc::kInvalidParams, "Unknown " + kind + ": " + std::string(target.name),
                       failure::unknown_name);
}

// If the resources of a server could not be fetched, the server may have this resource. Then its problem is
// the error.
Error Router::unknown_resource_error(std::string_view uri, const Principal& principal) const {
  const ClientScope client{*scope_, principal};
  for (const auto& [name, entry] : servers_->by_name()) {
    const std::optional<Error> problem = resource_problem(*entry);
    if (problem && client.offers(*entry))
      return server_failure_error(name, *problem, failure_policy_.shows_details_to(principal));
  }
  return refusal_error(rpc::kInvalidParams, "Resource not found: no server has `" + std::string(uri) + "`",
                       failure::unknown_name);
}

}  // namespace fairlead::gateway
