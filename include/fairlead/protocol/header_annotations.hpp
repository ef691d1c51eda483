// Tool arguments that travel as HTTP headers too: `x-mcp-header` in an input schema, and when it may stand
// there.
#pragma once

#include <optional>
#include <string>

#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

// What is wrong with the annotations of a tool's input schema; nullopt when nothing is.
std::optional<std::string> header_annotation_problem(json::View input_schema);

}  // namespace fairlead::mcp
