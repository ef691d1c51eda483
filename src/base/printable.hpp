// Escapes untrusted text for output on a terminal. Characters that a terminal interprets become visible
// escapes: control characters (C0, DEL, C1), which move the cursor and set colours and titles, and characters
// that change the text direction. Bytes that are not UTF-8 are escaped too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // in bytes; 0: the text does not begin with valid UTF-8
};
// Decodes the first code point. REQUIRES: !text.empty().
CodePoint first_code_point(std::string_view text) noexcept;

// Returns true if a terminal interprets this character instead of showing it.
bool is_unprintable(std::uint32_t code_point) noexcept;

// Returns the longest prefix of `text` that has at most `max_bytes` bytes and does not split a UTF-8
// character.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) noexcept;
// The same, followed by "..." if `text` was truncated.
std::string shortened(std::string_view text, std::size_t max_bytes);

// Escapes characters that a terminal interprets: C0, DEL and bytes that are not UTF-8 as "\x1b", others as
// "\u202e". Keeps line feeds and tabs, and converts CR LF to a line feed.
std::string printable_text(std::string_view text);
// The same for a single line: line feeds and tabs are escaped as "\n" and "\t".
std::string printable_line(std::string_view text);
// Returns equivalent JSON in which the characters that a terminal interprets are escaped. REQUIRES: `json` is
// valid JSON.
std::string printable_json(std::string_view json);

}  // namespace fairlead
