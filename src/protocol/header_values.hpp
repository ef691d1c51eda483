// HTTP headers of the modern era that repeat values of the request body: which values are repeated, how they
// are encoded, and the check that headers and body match. Used by client and server.
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

// Returns `text` unchanged if it is safe as a header value, otherwise =?base64?…?= with its UTF-8 bytes in
// Base64.
std::string encode_header_value(std::string_view text);
// Appends encode_header_value(text) to `out`.
void append_header_value(std::string& out, std::string_view text);
// Decodes a header value. Returns nullopt if the payload of =?base64?…?= is not canonical Base64 or not
// UTF-8, or if a plain value contains bytes that are not allowed there.
std::optional<std::string> decode_header_value(std::string_view value);

// Returns the member of `params` that the header Mcp-Name repeats; empty for methods without that header.
std::string_view name_header_param(std::string_view method) noexcept;

// Returns names and encoded values of the headers for a tool's arguments, in the order of `params`. Omits
// arguments that are absent, null, or of another type than `params` says, and integers beyond 2^53.
std::vector<std::pair<std::string, std::string>> param_headers(const std::vector<HeaderParam>& params,
                                                               json::View arguments);

// Returns the trimmed value of the header `name`; nullopt if the request has no such header. Returns "\n" for
// a repeated header: it is not a valid header value, so it matches no argument.
using HeaderLookup = std::function<std::optional<std::string_view>(std::string_view name)>;
// Returns the first mismatch between headers and arguments, such as "Mcp-Param-Region does not match the
// argument"; nullopt if they match.
std::optional<std::string> param_header_problem(const std::vector<HeaderParam>& params, json::View arguments,
                                                const HeaderLookup& header);

}  // namespace fairlead::mcp
