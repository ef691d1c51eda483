// Patterns in which `*` stands for any text, for names of servers and tools. Private to the library.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace fairlead {

// Returns whether `pattern` matches the whole of `text`. `*` matches any number of bytes; every other byte
// matches itself. Takes linear time.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

// Returns whether one of the patterns matches.
inline bool any_glob_matches(std::span<const std::string> patterns, std::string_view text) noexcept {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return glob_matches(pattern, text); });
}

}  // namespace fairlead
