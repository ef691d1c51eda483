// Comma-separated lists, as in HTTP headers and environment variables: "a, b,c". Private to the library.
#pragma once

#include <string_view>

namespace fairlead {

// Returns `text` without leading and trailing spaces and tabs.
inline std::string_view trim_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns true if `predicate` returns true for any element. Empty elements are skipped. Stops at the first
// element that matches.
template <class Predicate>
bool any_list_element(std::string_view list, Predicate&& predicate) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view element = trim_blanks(list.substr(0, comma));
    if (!element.empty() && predicate(element)) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

// Calls `visit` for each element. Empty elements are skipped.
template <class Visit>
void for_each_list_element(std::string_view list, Visit&& visit) {
  any_list_element(list, [&](std::string_view element) {
    visit(element);
    return false;
  });
}

}  // namespace fairlead
