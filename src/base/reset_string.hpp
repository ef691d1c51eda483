// reset_string(): empties a string without keeping its memory. Private to the library.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace fairlead {

// Empties `text`, and frees its memory if that is more than `kept` bytes. The assignment of an empty string
// frees none.
inline void reset_string(std::string& text, std::size_t kept = 0) noexcept {
  if (text.capacity() > kept) const std::string freed(std::move(text));
  text.clear();
}

}  // namespace fairlead
