// Lower case of ASCII letters. Other characters stay as they are, whatever the locale is.
#pragma once

#include <string>
#include <string_view>

namespace fairlead {

constexpr char lower_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_letter(c);
  return lower;
}

}  // namespace fairlead
