// UTF-8 validation, 16 bytes at a time, after J. Keiser and D. Lemire, "Validating UTF-8 in less than one
// instruction per byte" (2021): every error is visible in two adjacent bytes, except a missing or surplus
// third or fourth byte. The errors of a pair are the intersection of three table lookups, by the two halves
// of the first byte and the high half of the second.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(FAIRLEAD_NO_SIMD)
#define FAIRLEAD_UTF8_SIMD 1

#include <tmmintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fairlead::json::utf8_simd {

struct Tables {
  alignas(16) std::array<std::uint8_t, 16> first_high{};
  alignas(16) std::array<std::uint8_t, 16> first_low{};
  alignas(16) std::array<std::uint8_t, 16> second_high{};
};

// Forbids a byte in [first, first_to] before a byte in [second, second_to]. `rule` is the bit of the rule in
// the tables. Several calls may use the same bit only if the tables then forbid no other pairs of bytes.
constexpr void forbid(Tables& tables, std::uint8_t rule, unsigned first, unsigned first_to, unsigned second,
                      unsigned second_to) {
  for (unsigned byte = first; byte <= first_to; ++byte) {
    tables.first_high[byte >> 4] |= rule;
    tables.first_low[byte & 15] |= rule;
  }
  for (unsigned byte = second; byte <= second_to; ++byte) tables.second_high[byte >> 4] |= rule;
}

// The rule for two continuation bytes in a row: an error except inside a sequence of three or four bytes.
inline constexpr std::uint8_t kTwoContinuations = 0x80;

constexpr Tables make_tables() {
  Tables t;
  forbid(t, 0x01, 0xc0, 0xff, 0x00, 0x7f);  // a sequence truncated by ASCII
  forbid(t, 0x01, 0xc0, 0xff, 0xc0, 0xff);  // … or by the next sequence
  forbid(t, 0x02, 0x00, 0x7f, 0x80, 0xbf);  // a continuation byte without a lead byte
  forbid(t, 0x04, 0xc0, 0xc1, 0x80, 0xbf);  // overlong, two bytes
  forbid(t, 0x08, 0xe0, 0xe0, 0x80, 0x9f);  // overlong, three bytes
  forbid(t, 0x10, 0xed, 0xed, 0xa0, 0xbf);  // a surrogate
  forbid(t, 0x20, 0xf0, 0xf0, 0x80, 0x8f);  // overlong, four bytes
  forbid(t, 0x20, 0xf5, 0xff, 0x80, 0x8f);  // over U+10FFFF
  forbid(t, 0x40, 0xf4, 0xff, 0x90, 0xbf);  // over U+10FFFF
  forbid(t, kTwoContinuations, 0x80, 0xbf, 0x80, 0xbf);
  return t;
}

inline constexpr Tables kTables = make_tables();

#define FAIRLEAD_SSSE3 __attribute__((target("ssse3"))) inline

FAIRLEAD_SSSE3 __m128i load_table(const std::array<std::uint8_t, 16>& bytes) noexcept {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes.data()));
}

FAIRLEAD_SSSE3 __m128i high_half(__m128i bytes) noexcept {
  return _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
}

// Returns a block whose bytes are not zero where `block` has an error. `before` is the block before it.
FAIRLEAD_SSSE3 __m128i errors_in(__m128i block, __m128i before) noexcept {
  const __m128i one_back = _mm_alignr_epi8(block, before, 15);
  const __m128i two_back = _mm_alignr_epi8(block, before, 14);
  const __m128i three_back = _mm_alignr_epi8(block, before, 13);
  const __m128i first_high = _mm_shuffle_epi8(load_table(kTables.first_high), high_half(one_back));
  const __m128i first_low =
      _mm_shuffle_epi8(load_table(kTables.first_low), _mm_and_si128(one_back, _mm_set1_epi8(15)));
  const __m128i second_high = _mm_shuffle_epi8(load_table(kTables.second_high), high_half(block));
  const __m128i pair = _mm_and_si128(_mm_and_si128(first_high, first_low), second_high);
  // The top bit is set two bytes after a byte of at least 0xe0, and three bytes after one of at least 0xf0:
  // there, and only there, a continuation byte must follow a continuation byte.
  const __m128i third = _mm_subs_epu8(two_back, _mm_set1_epi8(0xe0 - 0x80));
  const __m128i fourth = _mm_subs_epu8(three_back, _mm_set1_epi8(0xf0 - 0x80));
  const __m128i required = _mm_and_si128(_mm_or_si128(third, fourth), _mm_set1_epi8(static_cast<char>(0x80)));
  return _mm_xor_si128(pair, required);
}

FAIRLEAD_SSSE3 __m128i load(const char* p) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Returns whether all of [p, end) is valid UTF-8.
FAIRLEAD_SSSE3 bool is_valid(const char* p, const char* end) noexcept {
  __m128i errors = _mm_setzero_si128();
  __m128i before = _mm_setzero_si128();
  while (end - p >= 64) {
    const __m128i a = load(p);
    const __m128i b = load(p + 16);
    const __m128i c = load(p + 32);
    const __m128i d = load(p + 48);
    errors = _mm_or_si128(errors, errors_in(a, before));
    if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) != 0) {
      errors =
          _mm_or_si128(errors, _mm_or_si128(errors_in(b, a), _mm_or_si128(errors_in(c, b), errors_in(d, c))));
    }
    before = d;
    p += 64;
  }
  for (; end - p >= 16; p += 16) {
    const __m128i block = load(p);
    errors = _mm_or_si128(errors, errors_in(block, before));
    before = block;
  }
  // The rest is padded with zeros: a sequence truncated by the end is then truncated by ASCII.
  alignas(16) char rest[16] = {};
  std::memcpy(rest, p, static_cast<std::size_t>(end - p));
  errors = _mm_or_si128(errors, errors_in(load(rest), before));
  return _mm_movemask_epi8(_mm_cmpeq_epi8(errors, _mm_setzero_si128())) == 0xffff;
}

#undef FAIRLEAD_SSSE3

}  // namespace fairlead::json::utf8_simd

#endif
