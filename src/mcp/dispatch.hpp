// From a method's name to the feature that serves it; and what a server offers, which decides what it
// advertises and serves. The same in both eras.
#pragma once

#include <optional>
#include <string_view>

#include "fairlead/json/writer.hpp"
#include "mcp/features.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::mcp {

// What is offered decides what is advertised, and only what is advertised is served.
bool has_capability(const ServerState& server, std::string_view capability);
// Empty for methods of the protocol itself.
bool has_extension(const ServerState& server, std::string_view id);
void write_capabilities(json::Writer& out, const ServerState& server, Revision revision);

// `method` is an entry of the method table. The caller keeps the server alive until it has the answer.
Task<Answer> dispatch(FeatureCall call, const MethodInfo& method);

// What is wrong with the parts that all requests share.
std::optional<Error> problem_of(const CallFacts& facts);

inline json::Raw part_of(const rpc::Message& message, json::View view) {
  return view.absent() ? json::Raw() : json::Raw::trusted(message.frame().part(view.text()));
}

}  // namespace fairlead::mcp
