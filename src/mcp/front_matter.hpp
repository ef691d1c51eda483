// The YAML at the top of a SKILL.md, read as JSON. A strict part of YAML 1.2 that is enough for front matter:
// mappings and lists, in blocks and in brackets; plain, quoted and block scalars, over several lines too;
// comments; values as the core schema has them. Anchors, aliases, tags, directives, merge keys and complex
// keys are refused, with the line they stand on, and so is whatever else is not understood.
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
