// Extensions: features that both sides have to declare before they are used. An extension is known by an
// identifier with a prefix, `io.modelcontextprotocol/tasks`, and may have settings, an object.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::mcp {

inline constexpr std::string_view kTasksExtension = "io.modelcontextprotocol/tasks";
inline constexpr std::string_view kSkillsExtension = "io.modelcontextprotocol/skills";

// By identifier; absent settings stand for {}.
using Extensions = std::map<std::string, json::Raw, std::less<>>;

// The grammar of `_meta` keys, with the prefix that is optional there: labels joined by dots, a slash, a
// name.
bool is_extension_id(std::string_view id) noexcept;

// What is wrong with them, in words; empty when nothing is.
std::string problem_of(const Extensions& extensions);

// As the member `extensions` of capabilities; nothing at all when there are none.
void write(json::Writer& out, const Extensions& extensions);

}  // namespace fairlead::mcp
