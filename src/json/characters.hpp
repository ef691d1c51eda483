// Classification of ASCII characters, independent of the locale.
#pragma once

namespace fairlead::json {

constexpr bool is_digit(char c) noexcept {
  return static_cast<unsigned char>(c - '0') < 10;
}

constexpr bool is_hex(char c) noexcept {
  return is_digit(c) || static_cast<unsigned char>((c | 0x20) - 'a') < 6;
}

constexpr bool is_letter(char c) noexcept {
  return static_cast<unsigned char>((c | 0x20) - 'a') < 26;
}

}  // namespace fairlead::json
