// MCP extensions: optional features that client and server must both declare before they use them. An
// extension has a prefixed identifier such as `io.modelcontextprotocol/tasks`, and settings, which are a JSON
// object.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::mcp {

inline constexpr std::string_view kTasksExtension = "io.modelcontextprotocol/tasks";
inline constexpr std::string_view kSkillsExtension = "io.modelcontextprotocol/skills";

// Maps identifiers to settings. Absent settings mean {}.
using Extensions = std::map<std::string, json::Raw, std::less<>>;

// Returns true if `id` is an extension identifier: a prefix of labels separated by dots, a slash, and a name.
// The grammar is that of `_meta` keys, but the prefix is mandatory.
bool is_extension_id(std::string_view id) noexcept;

// Returns the first problem of `extensions` (an invalid identifier, or settings that are not an object);
// empty if they are valid.
std::string extensions_problem(const Extensions& extensions);

// Writes the member `extensions` of a capabilities object. Writes nothing if `extensions` is empty.
void write_extensions(json::Writer& out, const Extensions& extensions);

}  // namespace fairlead::mcp
