// Dispatches a request to the feature that serves its method, and determines which capabilities and
// extensions a server has. The same for both eras.
#pragma once

#include <optional>
#include <string_view>

#include "fairlead/json/writer.hpp"
#include "mcp/features.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::mcp {

// Returns whether the server advertises the capability. It follows from the registered entries, or from the
// backend if there is one. Requests for capabilities that are not advertised are rejected. True if
// `capability` is empty.
bool has_capability(const ServerState& server, std::string_view capability);
// Returns whether the server declares the extension. True if `id` is empty, as it is for the methods of MCP
// itself.
bool has_extension(const ServerState& server, std::string_view id);
void write_capabilities(json::Writer& out, const ServerState& server, Revision revision);

// Serves the request. `method` is an entry of the method table. The caller keeps the server alive until the
// task has completed.
Task<Answer> dispatch(FeatureRequest request, const MethodInfo& method);

// Returns whether a request may be served by Backend::serve_directly(): a small call of a tool of the
// backend.
bool may_serve_directly(const ServerState& server, const rpc::Message& message);

// Returns the error -32602 if `params`, `_meta` or the progress token of a request is invalid; otherwise
// nullopt.
std::optional<Error> check_request_params(const CallFacts& facts);

// Returns `view`, which is a part of `message`, as JSON that shares the frame of the message. Absent if
// `view` is absent.
inline json::Raw part_of(const rpc::Message& message, json::View view) {
  return view.absent() ? json::Raw() : json::Raw::trusted(message.frame().part(view.text()));
}

}  // namespace fairlead::mcp
