// Calls of tools: finding the one that is meant, and making an answer of what its handler came to.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "mcp/features.hpp"

namespace fairlead::mcp {

// The tool a call names, with arguments that fit its schema; or what to answer instead.
struct FoundTool {
  const ToolEntry* entry = nullptr;
  std::shared_ptr<const Catalogue> catalogue;  // keeps `entry`
  json::Raw arguments;
  std::optional<Answer> refused;
};
FoundTool find_tool(const FeatureCall& call);

// What a handler came to, as an answer.
Answer answer_of(const FeatureCall& call, const ToolEntry& tool, const Result<ToolResult>& result);
Answer answer_of(const FeatureCall& call, const std::exception_ptr& thrown);

}  // namespace fairlead::mcp
