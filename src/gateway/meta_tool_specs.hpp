// The names, descriptions and schemas of the meta-tools. Private to the layer.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "fairlead/mcp/types.hpp"

namespace fairlead::gateway {

inline constexpr std::string_view kDiscoverTools = "discover_tools";
inline constexpr std::string_view kGetToolSchema = "get_tool_schema";
inline constexpr std::string_view kExecuteTool = "execute_tool";
inline constexpr std::string_view kListToolDomains = "list_tool_domains";
inline constexpr std::string_view kBrowseToolDomain = "browse_tool_domain";

inline constexpr std::size_t kDefaultDiscoveredTools = 10;
inline constexpr std::size_t kMaxDiscoveredTools = 50;

// Returns the specs in the order in which clients list them.
const std::vector<mcp::ToolSpec>& meta_tool_specs();

}  // namespace fairlead::gateway
