// What the modern era repeats in HTTP headers: how a value is written there, which values are, and whether
// headers and body say the same. Both sides use it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/protocol/header_annotations.hpp"

namespace fairlead::mcp {

inline constexpr std::string_view kVersionHeader = "MCP-Protocol-Version";
inline constexpr std::string_view kMethodHeader = "Mcp-Method";
inline constexpr std::string_view kNameHeader = "Mcp-Name";
inline constexpr std::string_view kSessionHeader = "Mcp-Session-Id";

// Plain where that is safe, otherwise =?base64?…?= around the UTF-8 bytes.
std::string encode_header_value(std::string_view text);
// nullopt for what no encoder makes: a payload that is not canonical Base64 or not UTF-8, or bytes that a
// plain value cannot have.
std::optional<std::string> decode_header_value(std::string_view value);

// The member of params that Mcp-Name repeats; empty for methods that have no such header.
std::string_view named_by(std::string_view method) noexcept;

// The headers of a tool's arguments, encoded, in the order of `params`. Null and absent arguments have none,
// nor do those of another type than their schema says, and integers beyond 2^53.
std::vector<std::pair<std::string, std::string>> param_headers(const std::vector<HeaderParam>& params,
                                                               json::View arguments);

// A header's value, trimmed; nullopt when there is none. One that stands there twice reads as "\n", which no
// value is.
using HeaderLookup = std::function<std::optional<std::string_view>(std::string_view name)>;
// Where headers and arguments disagree: "Mcp-Param-Region does not match the argument region".
std::optional<std::string> param_header_problem(const std::vector<HeaderParam>& params, json::View arguments,
                                                const HeaderLookup& header);

}  // namespace fairlead::mcp
