// Character classes of the HTTP syntax (RFC 9110 and 9112).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/comma_list.hpp"

namespace fairlead::http {

inline constexpr auto kTokenChars = [] {
  std::array<bool, 256> token{};
  for (unsigned char c = '0'; c <= '9'; ++c) token[c] = true;
  for (unsigned char c = 'A'; c <= 'Z'; ++c) token[c] = true;
  for (unsigned char c = 'a'; c <= 'z'; ++c) token[c] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) token[static_cast<unsigned char>(c)] = true;
  return token;
}();

// Returns whether `text` is a token of RFC 9110, such as the name of a field.
inline bool is_token(std::string_view text) noexcept {
  for (const char c : text) {
    if (!kTokenChars[static_cast<unsigned char>(c)]) return false;
  }
  return !text.empty();
}

// Returns whether any of the eight bytes at `text` is a control character. A tab counts as a control
// character.
inline bool has_control_character_in_8_bytes(const char* text) noexcept {
  constexpr std::uint64_t kOnePerByte = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  const std::uint64_t del = word ^ (0x7f * kOnePerByte);  // each DEL becomes a zero byte
  const std::uint64_t below_space = (word - 0x20 * kOnePerByte) & ~word;
  const std::uint64_t is_del = (del - kOnePerByte) & ~del;
  return ((below_space | is_del) & (0x80 * kOnePerByte)) != 0;
}

// Returns whether `text` has no control characters except tabs. Bytes above 127 are allowed.
inline bool is_field_value(std::string_view text) noexcept {
  if (text.size() >= 8) {
    std::size_t checked = 0;
    while (checked + 8 < text.size() && !has_control_character_in_8_bytes(text.data() + checked))
      checked += 8;
    // The last eight bytes overlap those that were checked.
    if (checked + 8 >= text.size() && !has_control_character_in_8_bytes(text.data() + text.size() - 8))
      return true;
  }
  // Either a short text, or one with a control character, which may be a tab.
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
  }
  return true;
}

// A header line, `Name: value`; the value without surrounding white space.
struct FieldLine {
  std::string_view name;
  std::string_view value;
};

// Splits a header line. Returns nullopt if it does not begin with a token and a colon. Thus it rejects a
// folded line, which begins with white space.
inline std::optional<FieldLine> split_field_line(std::string_view line) noexcept {
  std::size_t colon = 0;
  while (colon < line.size() && kTokenChars[static_cast<unsigned char>(line[colon])]) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return std::nullopt;
  return FieldLine{line.substr(0, colon), trim_blanks(line.substr(colon + 1))};
}

}  // namespace fairlead::http
