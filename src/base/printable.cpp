#include "base/printable.hpp"

#include <algorithm>
#include <cstdio>

namespace fairlead {

namespace {

void append_hex_escape(std::string& out, const char* format, std::uint32_t value) {
  char escape[16];
  std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(value));
  out += escape;
}

void append_escape(std::string& out, std::uint32_t code_point) {
  append_hex_escape(out, code_point < 0x80 ? "\\x%02x" : "\\u%04x", code_point);
}

// Returns `text` with some characters escaped. Calls `escape(out, rest, code_point)` for each character;
// `escape` either appends a replacement to `out` and returns true, or returns false to keep the character.
template <class Escape>
std::string escaped(std::string_view text, Escape escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint first = first_code_point(text);
    const std::size_t length = std::max<std::size_t>(first.length, 1);
    if (first.length == 0) {
      append_hex_escape(out, "\\x%02x", static_cast<unsigned char>(text.front()));
    } else if (!escape(out, text, first.value)) {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

CodePoint first_code_point(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  if (overlong || beyond) return {};
  std::uint32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  return {value, length};
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) noexcept {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  std::string prefix(utf8_prefix(text, max_bytes));
  return prefix.size() < text.size() ? prefix + "..." : prefix;
}

bool is_unprintable(std::uint32_t c) noexcept {
  const bool controls = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
  const bool directions = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                          (c >= 0x2066 && c <= 0x2069);
  return controls || directions;
}

std::string printable_text(std::string_view text) {
  return escaped(text, [](std::string& out, std::string_view rest, std::uint32_t c) {
    if (c == '\n' || c == '\t' || !is_unprintable(c)) return false;
    if (!rest.starts_with("\r\n")) append_escape(out, c);
    return true;
  });
}

std::string printable_line(std::string_view text) {
  return escaped(text, [](std::string& out, std::string_view, std::uint32_t c) {
    if (!is_unprintable(c)) return false;
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      append_escape(out, c);
    }
    return true;
  });
}

// Keeps all characters below 0x20: in valid JSON they are white space between tokens, because inside strings
// they are already escaped.
std::string printable_json(std::string_view json) {
  return escaped(json, [](std::string& out, std::string_view, std::uint32_t c) {
    if (c < 0x20 || !is_unprintable(c)) return false;
    append_hex_escape(out, "\\u%04x", c);
    return true;
  });
}

}  // namespace fairlead
