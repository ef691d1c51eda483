#include "gateway/router.hpp"

#include "fairlead/json/members.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t kMaxNameBytes = 1024;  // of a tool's or prompt's name in a request, as JSON

// Empty if there is none, or none that a server could have.
std::string name_in(const rpc::Message& message) {
  const json::View params(message.params_text());
  const json::View ref = message.method() == "completion/complete" ? params["ref"] : params;
  const json::View name = ref["name"];
  return name.text().size() > kMaxNameBytes ? std::string() : name.as_string().value_or("");
}

Error name_too_long() {
  return refusal_of(rpc::kInvalidParams,
                    "name is over the limit max_name_bytes (" + std::to_string(kMaxNameBytes) + ")",
                    failure::invalid_request);
}

}  // namespace

Error resource_not_found(std::string_view uri) {
  return refusal_of(rpc::kInvalidParams, "Resource not found: no server here has `" + std::string(uri) + "`",
                    failure::unknown_name);
}

Result<Route> Router::route(const rpc::Message& message, const mcp::Context& context) const {
  const json::View params(message.params_text());
  const std::string_view method = message.method();
  const json::Members ref(method == "completion/complete" ? params["ref"] : params, {"type", "name", "uri"});
  const bool is_resource = method == "resources/read" || ref["type"].as_string() == "ref/resource";
  const json::View key = ref[is_resource ? "uri" : "name"];
  if (!is_resource && key.text().size() > kMaxNameBytes) return name_too_long();
  const std::optional<std::string> name = key.as_string();
  if (!name)
    return refusal_of(rpc::kInvalidParams,
                      std::string(is_resource ? "uri" : "name") + " is missing or not a string",
                      failure::invalid_request);
  if (is_resource) return route_resource(*name, context);
  const auto catalogue = catalogue_->view(context.session(), context.user());
  const bool is_tool = method == "tools/call";
  const Offer* const offer = is_tool ? catalogue->tool(*name) : catalogue->prompt(*name);
  const auto server = offer ? servers_->find(offer->server) : nullptr;
  if (!server) return unknown_name(is_tool ? "tool" : "prompt", *name);
  return Route{server, catalogue, Rename{key, offer->name},
               is_tool ? json::View(offer->entry) : json::View()};
}

Result<Route> Router::route_resource(std::string_view uri, const mcp::Context& context) const {
  Result<std::shared_ptr<ServerEntry>> server = server_of_resource(uri, context.session(), context.user());
  if (!server) return server.error();
  if (!*server) return resource_not_found(uri);
  return Route{std::move(*server), nullptr, std::nullopt, json::View()};
}

Result<std::shared_ptr<ServerEntry>> Router::server_of_resource(std::string_view uri,
                                                                std::string_view session,
                                                                std::string_view user) const {
  const auto catalogue = catalogue_->view(session, user);
  const Result<const std::string*> found =
      catalogue->server_of_resource(uri, catalogue_->complete().is_set());
  if (!found) return found.error();
  return *found ? servers_->find(**found) : nullptr;
}

// A tool's or prompt's name says whose it is.
bool Router::may_be_listed_yet(const rpc::Message& message) const {
  if (name_in(message).empty()) return !catalogue_->complete().is_set();
  const auto server = server_named_in(message);
  return server && !server->listing.attempted;
}

std::shared_ptr<ServerEntry> Router::server_named_in(const rpc::Message& message) const {
  return servers_->owner_of(name_in(message));
}

// A name that begins with that of a server which could not list may well be one of its names.
Error Router::unknown_name(std::string_view what, const std::string& name) const {
  const auto server = servers_->owner_of(name);
  if (server && server->listing.failure && !server->shared.listed)
    return failure_of(server->name(), *server->listing.failure);
  return refusal_of(rpc::kInvalidParams, "Unknown " + std::string(what) + ": " + name, failure::unknown_name);
}

}  // namespace fairlead::gateway
