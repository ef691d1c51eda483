// UTF-8 as defined by RFC 3629: no overlong forms, no surrogates, nothing over U+10FFFF.
#pragma once

#include <cstdint>
#include <string>

#include "json/utf8_simd.hpp"

namespace fairlead::json {

// Returns the length of the valid sequence at `p`, or 0 if there is none. REQUIRES: p < end.
inline int utf8_length(const char* p, const char* end) noexcept {
  const auto byte = [p](int i) { return static_cast<unsigned char>(p[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const int length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (end - p < length) return 0;
  // Only the range of the second byte depends on the first one. This excludes overlong forms, surrogates and
  // code points over U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (int i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Returns the first byte of the first sequence that is not UTF-8, or `end`.
inline const char* find_invalid_utf8(const char* p, const char* end) noexcept {
#if defined(FAIRLEAD_UTF8_SIMD)
  // Validates block by block, so that only the block with the error is searched byte by byte.
  constexpr std::ptrdiff_t kCheckedBytes = 16 << 10;
  const bool fast = __builtin_cpu_supports("ssse3");
  while (fast && p != end) {
    const char* to = end;
    if (end - p > kCheckedBytes) {
      to = p + kCheckedBytes;
      for (int i = 0; i < 3 && (*to & 0xc0) == 0x80; ++i) --to;  // does not split a sequence
    }
    if (!utf8_simd::is_valid(p, to)) break;
    p = to;
  }
#endif
  while (p != end) {
    const int length = utf8_length(p, end);
    if (length == 0) break;
    p += length;
  }
  return p;
}

// Appends the UTF-8 encoding of `code`. REQUIRES: `code` is a Unicode scalar value.
inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto tail = [&put, code](int shift) { put(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | (code >> 6)), tail(0);
  if (code < 0x10000) return put(0xe0 | (code >> 12)), tail(6), tail(0);
  put(0xf0 | (code >> 18)), tail(12), tail(6), tail(0);
}

}  // namespace fairlead::json
