// Lists as headers and variables have them: "a, b,c". Private to the library.
#pragma once

#include <string_view>

namespace fairlead {

// Without blanks and tabs around it.
inline std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whether `accepts` returns true for an element of the list. Empty elements are passed over; those behind an
// accepted one are not looked at.
template <class Accepts>
bool any_list_element(std::string_view list, Accepts&& accepts) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view element = without_blanks(list.substr(0, comma));
    if (!element.empty() && accepts(element)) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

// Calls `each` for every element.
template <class Each>
void each_list_element(std::string_view list, Each&& each) {
  any_list_element(list, [&](std::string_view element) {
    each(element);
    return false;
  });
}

}  // namespace fairlead
