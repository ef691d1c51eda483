#include "gateway/router.hpp"

#include <algorithm>

#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t kMaxNameBytes = 1024;  // of a tool's or prompt's name in a request, as JSON

Error invalid_request(std::string message) {
  return refusal_of(rpc::kInvalidParams, std::move(message), failure::invalid_request);
}

Error disabled(const std::string& server) {
  const Error error(ErrorKind::connection_failed, "it is disabled");
  return failure_of(server, with_failure_code(error, failure::server_stopped), true);
}

// Why a server that may have resources has not listed them; nullopt if it has.
std::optional<Error> resource_problem(const ServerEntry& entry) {
  if (!entry.enabled) return std::nullopt;
  if (entry.listing.failure) return entry.listing.failure;
  const std::optional<Error>& error = entry.listing.errors[static_cast<std::size_t>(Kind::resources)];
  return error ? error : entry.listing.errors[static_cast<std::size_t>(Kind::templates)];
}

}  // namespace

Result<Requested> requested_in(const mcp::CallFacts& call) {
  const bool is_resource = call.is_about_resource();
  if (!is_resource && call.target().text().size() > kMaxNameBytes)
    return invalid_request("name is over the limit max_name_bytes (" + std::to_string(kMaxNameBytes) + ")");
  const std::optional<std::string_view> name = call.target_text();
  if (!name)
    return invalid_request(std::string(is_resource ? "uri" : "name") + " is missing or not a string");
  Requested requested;
  requested.kind = is_resource ? Kind::resources : call.method == "tools/call" ? Kind::tools : Kind::prompts;
  requested.name = *name;
  return requested;
}

Result<Route> Router::route(const Requested& requested, std::string_view session,
                            const Principal& principal) const {
  if (requested.kind == Kind::resources) return route_resource(requested, session, principal);
  const auto catalogue = catalogue_->view(session, principal);
  const bool is_tool = requested.kind == Kind::tools;
  const Offer* const offer = is_tool ? catalogue->tool(requested.name) : catalogue->prompt(requested.name);
  const auto server = offer ? servers_->find(offer->server) : nullptr;
  if (!server) return unknown_name(requested);
  return Route{server, catalogue, offer->name, is_tool ? json::View(offer->entry) : json::View()};
}

Result<Route> Router::route_resource(const Requested& requested, std::string_view session,
                                     const Principal& principal) const {
  const auto catalogue = catalogue_->view(session, principal);
  const Result<const std::string*> found =
      catalogue->server_of_resource(requested.name, !may_be_listed_yet(requested));
  if (!found) return found.error();
  const auto server = *found ? servers_->find(**found) : nullptr;
  if (!server) return unknown_resource(requested.name, principal);
  return Route{server, nullptr, std::nullopt, json::View()};
}

std::shared_ptr<ServerEntry> Router::unlisted_owner(const Requested& requested) const {
  if (requested.kind == Kind::resources) return nullptr;
  auto owner = servers_->owner_of(requested.name);
  return owner && owner->enabled && owner->unlisted(requested.kind) ? owner : nullptr;
}

bool Router::may_be_listed_yet(const Requested& requested) const {
  return requested.kind == Kind::resources && std::ranges::any_of(servers_->by_name(), [](const auto& one) {
           return !one.second->listing.attempted;
         });
}

Error Router::unknown_name(const Requested& requested) const {
  const auto owner = servers_->owner_of(requested.name);
  if (owner && !owner->enabled) return disabled(owner->name());
  const std::string what = requested.kind == Kind::tools ? "tool" : "prompt";
  return refusal_of(rpc::kInvalidParams, "Unknown " + what + ": " + requested.name, failure::unknown_name);
}

// A server that has not listed its resources may have it.
Error Router::unknown_resource(std::string_view uri, const Principal& principal) const {
  for (const auto& [name, entry] : servers_->by_name()) {
    if (const std::optional<Error> problem = resource_problem(*entry))
      return failure_of(name, *problem, failures_.tells_details(principal));
  }
  return refusal_of(rpc::kInvalidParams, "Resource not found: no server here has `" + std::string(uri) + "`",
                    failure::unknown_name);
}

}  // namespace fairlead::gateway
