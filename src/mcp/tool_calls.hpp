// tools/call: looks up the tool, validates its arguments, and converts the outcome of the handler to an
// answer.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "mcp/features.hpp"

namespace fairlead::mcp {

// The tool of a tools/call request and its validated arguments. If the request is invalid, `rejection` is set
// and is the answer to the request.
struct ResolvedToolCall {
  const ToolEntry* entry = nullptr;
  std::shared_ptr<const Catalogue> catalogue;  // owns `entry`
  json::Raw arguments;
  std::optional<Answer> rejection;
};
// Looks up the tool of a tools/call request and validates the arguments against its input schema.
ResolvedToolCall resolve_tool_call(const FeatureRequest& request);

// Serves tools/call.
Task<Answer> handle_call_tool(FeatureRequest&& request);

// Return the answer for the result or the exception of a handler.
Answer answer_for_result(const FeatureRequest& request, const ToolEntry& tool,
                         const Result<ToolResult>& result);
Answer answer_for_exception(const FeatureRequest& request, const std::exception_ptr& thrown);

}  // namespace fairlead::mcp
