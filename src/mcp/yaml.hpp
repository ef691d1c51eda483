// Converts YAML to JSON with libyaml. Private to front_matter.cpp.
#pragma once

#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::mcp {

// Parses one document, which must be a mapping. Plain scalars are resolved by the core schema of YAML 1.2.
// Fails with `validation` and the line of the error. Rejects anchors, aliases, tags, directives, merge keys,
// duplicate keys and keys that are not scalars: with aliases, a short text can expand to an enormous value.
// `first_line` is the number of the first line of `text`.
Result<json::Raw> yaml_to_json(std::string_view text, std::size_t first_line);

}  // namespace fairlead::mcp
