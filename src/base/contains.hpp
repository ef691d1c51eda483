// contains(): std::ranges::contains(), which g++ 12 lacks. Private to the library.
#pragma once

#include <algorithm>
#include <ranges>

namespace fairlead {

template <std::ranges::input_range Range, class Value>
bool contains(Range&& range, const Value& value) noexcept {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace fairlead
