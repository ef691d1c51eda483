// append_bytes(): std::memcpy() for texts that are mostly short.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace fairlead::detail {

// Copies `part` to `out`, and returns the end of the copy. Up to 32 bytes are copied by two moves of a fixed
// size, which may overlap, because a call of std::memcpy() costs more than the copy. REQUIRES: `out` has room
// for `part` and does not overlap it.
inline char* append_bytes(char* out, std::string_view part) noexcept {
  const char* const from = part.data();
  const std::size_t size = part.size();
  const auto copy_ends = [&](auto width) {
    std::memcpy(out, from, width);
    std::memcpy(out + size - width, from + size - width, width);
  };
  if (size > 32) {
    std::memcpy(out, from, size);
  } else if (size >= 16) {
    copy_ends(std::integral_constant<std::size_t, 16>());
  } else if (size >= 8) {
    copy_ends(std::integral_constant<std::size_t, 8>());
  } else if (size >= 4) {
    copy_ends(std::integral_constant<std::size_t, 4>());
  } else if (size > 0) {
    out[0] = from[0];
    out[size / 2] = from[size / 2];
    out[size - 1] = from[size - 1];
  }
  return out + size;
}

}  // namespace fairlead::detail
