// reset_string(): clears a string and frees its memory. Private to the library.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace fairlead {

// Clears `text`, and frees its memory if its capacity exceeds `max_capacity` bytes. Assigning an empty string
// would not free it.
inline void reset_string(std::string& text, std::size_t max_capacity = 0) noexcept {
  if (text.capacity() > max_capacity) const std::string freed(std::move(text));
  text.clear();
}

}  // namespace fairlead
