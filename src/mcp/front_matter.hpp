// Parses the front matter of a SKILL.md, a YAML mapping, into JSON. Plain scalars are resolved by the core
// schema of YAML 1.2. Constructs that another parser could read differently are rejected with their line:
// anchors, aliases, tags, directives, merge keys, duplicate keys and keys that are not scalars.
#pragma once

#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

inline constexpr std::size_t kMaxFrontMatterBytes = 64u << 10;

// Returns the front matter as a JSON object. Fails with `validation` if there is none or it is invalid.
Result<json::Raw> read_front_matter(std::string_view markdown);

// Returns whether two JSON values are equal. Compares numbers by value, strings by their unescaped
// characters, and objects regardless of the order of their members.
bool same_value(json::View a, json::View b);

}  // namespace fairlead::mcp
