// Makes text of others safe to show on a terminal: what a terminal would act on becomes a visible escape.
// These are control characters (C0, DEL, C1), which move the cursor and set colours and titles, characters
// that change the direction of text, and bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fairlead {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // in bytes; 0: the text does not begin with well-formed UTF-8
};
// REQUIRES: !text.empty().
CodePoint first_code_point(std::string_view text) noexcept;

// Whether a terminal acts on this character instead of showing it.
bool is_control(std::uint32_t code_point) noexcept;

// The longest beginning of `text` that has at most `max_bytes` and splits no UTF-8 character.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) noexcept;
// The same, followed by "..." if something is missing.
std::string shortened(std::string_view text, std::size_t max_bytes);

// "\x1b" for C0, DEL and bytes that are not UTF-8, "\u202e" for others. Keeps line feeds and tabs, and reads
// CR LF as a line feed.
std::string printable_text(std::string_view text);
// The same on one line: line feeds and tabs become "\n" and "\t".
std::string printable_line(std::string_view text);
// Equivalent JSON without such characters. REQUIRES: `json` is valid JSON.
std::string printable_json(std::string_view json);

}  // namespace fairlead
