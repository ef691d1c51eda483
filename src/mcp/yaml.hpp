// The YAML behind front_matter.hpp, parsed by libyaml and written as JSON. Private to it.
#pragma once

#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::mcp {

// Reads one document, which must be a mapping. Plain scalars are resolved by the core schema of YAML 1.2.
// Anchors, aliases, tags, directives, merge keys, repeated keys and keys that are not scalars are refused: an
// alias can make a short text mean an enormous value. An error names the line; `first_line` is the number of
// the first one.
Result<json::Raw> read_yaml(std::string_view text, std::size_t first_line);

}  // namespace fairlead::mcp
