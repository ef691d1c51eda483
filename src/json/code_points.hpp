// Decodes UTF-8 code point by code point, forwards and backwards. Each byte that is not valid UTF-8 decodes
// to U+FFFD.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "json/utf8.hpp"

namespace fairlead::json {

struct DecodedCodePoint {
  std::uint32_t code;
  std::uint32_t length;  // in bytes
};

// Decodes the code point that begins at `p`. REQUIRES: p < end.
inline DecodedCodePoint decode_utf8(const char* p, const char* end) noexcept {
  const auto byte = [p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
  const auto tail = [&byte](int i) { return byte(i) & 0x3f; };
  switch (utf8_length(p, end)) {
    case 1: return {byte(0), 1};
    case 2: return {(byte(0) & 0x1f) << 6 | tail(1), 2};
    case 3: return {(byte(0) & 0x0f) << 12 | tail(1) << 6 | tail(2), 3};
    case 4: return {(byte(0) & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
    default: return {0xfffd, 1};
  }
}

// Decodes the code point that ends at `p`. REQUIRES: begin < p.
inline DecodedCodePoint decode_utf8_before(const char* begin, const char* p) noexcept {
  const std::ptrdiff_t max_length = std::min<std::ptrdiff_t>(4, p - begin);
  for (std::ptrdiff_t length = 1; length <= max_length; ++length) {
    if ((static_cast<unsigned char>(p[-length]) & 0xc0) == 0x80) continue;
    const DecodedCodePoint decoded = decode_utf8(p - length, p);
    if (decoded.length == length) return decoded;
    break;
  }
  return {0xfffd, 1};
}

// Returns the number of code points: counts the bytes that are not continuation bytes (10xxxxxx), eight bytes
// at a time. REQUIRES: `text` is valid UTF-8.
inline std::size_t count_code_points(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::size_t count = 0;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    const std::uint64_t begins = (~word >> 7 | word >> 6) & kOnes;
    count += begins * kOnes >> 56;
  }
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace fairlead::json
