// Tool arguments that travel as HTTP headers too: `x-mcp-header` in an input schema, and when it may stand
// there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

// What is wrong with the annotations of a tool's input schema; nullopt when nothing is.
std::optional<std::string> header_annotation_problem(json::View input_schema);

// An argument that travels as a header.
struct HeaderParam {
  enum class Type : std::uint8_t { string, integer, boolean };
  std::vector<std::string> path;  // from `arguments` down
  std::string header;             // "Mcp-Param-Region"
  Type type = Type::string;
};

// All of a schema's; none when its annotations are not valid.
std::vector<HeaderParam> header_params(json::View input_schema);

}  // namespace fairlead::mcp
