// The characters of HTTP, by RFC 9110 and 9112.
#pragma once

#include <array>
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

// No control characters but the tab. Bytes over 127 are let through as they are.
inline bool is_field_value(std::string_view text) noexcept {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
  }
  return true;
}

}  // namespace fairlead::http
