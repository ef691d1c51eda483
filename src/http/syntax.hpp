// The characters of HTTP, by RFC 9110 and 9112.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
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

inline bool is_token(std::string_view text) noexcept {
  for (const char c : text) {
    if (!kTokenChars[static_cast<unsigned char>(c)]) return false;
  }
  return !text.empty();
}

// Whether one of eight bytes is a control character, the tab included.
inline bool has_control_character(const char* eight) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  const std::uint64_t del = word ^ (0x7f * kEach);  // a byte that is DEL becomes zero
  const std::uint64_t below_space = (word - 0x20 * kEach) & ~word;
  const std::uint64_t is_del = (del - kEach) & ~del;
  return ((below_space | is_del) & (0x80 * kEach)) != 0;
}

// No control characters but the tab. Bytes over 127 are let through as they are.
inline bool is_field_value(std::string_view text) noexcept {
  while (text.size() >= 8 && !has_control_character(text.data())) text.remove_prefix(8);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
  }
  return true;
}

}  // namespace fairlead::http
