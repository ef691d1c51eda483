// The YAML at the top of a SKILL.md, read as JSON: a mapping, its plain scalars resolved by the core schema
// of YAML 1.2. What could mean another value elsewhere is refused, with its line: anchors, aliases, tags,
// directives, merge keys, repeated keys and keys that are not text.
#pragma once

#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

inline constexpr std::size_t kMostFrontMatterBytes = 64u << 10;

// An object. Kind validation when there is no front matter, or none of this kind.
Result<json::Raw> read_front_matter(std::string_view markdown);

// Whether two values mean the same: numbers by value, strings by their characters, objects in any order.
bool same_value(json::View a, json::View b);

}  // namespace fairlead::mcp
