// Searches through many bytes at once: for the end of a run of plain text in a string, of blanks, of digits.
// This is where the scanner and the writer spend their time, so it takes 16 bytes at a time where SSE2 is
// there (on every x86-64), and single bytes elsewhere or with FAIRLEAD_NO_SIMD. Nothing outside the given
// range is ever read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)
#include <emmintrin.h>
#endif

namespace fairlead::json {

// What may stand in a run: any ASCII that needs no escape, or that and every byte over 0x7f.
enum class Plain : std::uint8_t { ascii, utf8 };

inline constexpr std::ptrdiff_t kWindow = 64;  // bytes covered by one mask of stops

template <Plain kPlain>
constexpr bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && c != '"' && c != '\\' && (kPlain == Plain::utf8 || byte < 0x80);
}

// White space between tokens.
constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// How many of the eight bytes at `p`, from the first on, are digits. A digit's high half is 3, and adding
// 6 to its low half does not carry; a carry out of a byte that is no digit reaches later bytes only.
// REQUIRES: eight bytes at `p`, a little-endian machine.
inline int count_digits(const char* p) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, p, sizeof bytes);
  bytes ^= 0x3030303030303030;
  const std::uint64_t others = (bytes | (bytes + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0;
  return std::countr_zero(others) / 8;
}

#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)

inline __m128i load_block(const char* p) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// All bits of a byte are set where it is not plain.
template <Plain kPlain>
inline __m128i not_plain(__m128i block) noexcept {
  const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
  const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
  // As signed numbers, bytes over 0x7f are smaller than 0x20 too: one comparison finds both.
  const __m128i low = kPlain == Plain::ascii
                          ? _mm_cmplt_epi8(block, _mm_set1_epi8(0x20))
                          : _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
  return _mm_or_si128(_mm_or_si128(quote, backslash), low);
}

inline std::uint64_t bits_of(__m128i block) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(block));
}

template <Plain kPlain>
inline std::uint64_t block_stops(const char* p) noexcept {
  return bits_of(not_plain<kPlain>(load_block(p)));
}

// Skips whole windows without a stop: one test for each.
template <Plain kPlain>
inline const char* skip_plain_windows(const char* p, const char* end) noexcept {
  while (end - p >= kWindow) {
    const __m128i a = not_plain<kPlain>(load_block(p));
    const __m128i b = not_plain<kPlain>(load_block(p + 16));
    const __m128i c = not_plain<kPlain>(load_block(p + 32));
    const __m128i d = not_plain<kPlain>(load_block(p + 48));
    if (bits_of(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) != 0) break;
    p += kWindow;
  }
  return p;
}

// The last window of a text: what lies beyond `end` counts as a stop. The last block is read so that it
// ends where the text ends, and shifted into place.
template <Plain kPlain>
inline std::uint64_t last_window_stops(const char* begin, const char* p, const char* end) noexcept {
  std::uint64_t stops = 0;
  int at = 0;
  for (; end - p >= 16; p += 16, at += 16) stops |= block_stops<kPlain>(p) << at;
  const int rest = static_cast<int>(end - p);
  if (end - begin >= 16) {
    stops |= (block_stops<kPlain>(end - 16) >> (16 - rest)) << at;
  } else {
    for (int i = 0; i < rest; ++i) stops |= std::uint64_t{!is_plain<kPlain>(p[i])} << (at + i);
  }
  return stops | (~std::uint64_t{0} << (at + rest));
}

// Bit i is set where p[i] is not plain, or does not belong to the text. REQUIRES: begin <= p <= end.
template <Plain kPlain>
inline std::uint64_t window_stops(const char* begin, const char* p, const char* end) noexcept {
  if (end - p < kWindow) return last_window_stops<kPlain>(begin, p, end);
  return block_stops<kPlain>(p) | (block_stops<kPlain>(p + 16) << 16) | (block_stops<kPlain>(p + 32) << 32) |
         (block_stops<kPlain>(p + 48) << 48);
}

// The first byte from `p` on that is no white space, or `end`. Sets `line_break` where it passes a CR or LF.
inline const char* skip_white_space(const char* p, const char* end, bool& line_break) noexcept {
  while (end - p >= 16) {
    const __m128i block = load_block(p);
    const __m128i breaks =
        _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\r')));
    const __m128i blanks =
        _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\t')));
    const std::uint64_t others = bits_of(_mm_or_si128(breaks, blanks)) ^ 0xffff;
    const std::uint64_t passed = others == 0 ? 0xffff : (others & -others) - 1;
    line_break = line_break || (bits_of(breaks) & passed) != 0;
    if (others != 0) return p + std::countr_zero(others);
    p += 16;
  }
  for (; p != end && is_space(*p); ++p) line_break = line_break || *p == '\n' || *p == '\r';
  return p;
}

// Writes a space over every CR and LF in [p, end).
inline void replace_line_breaks(char* p, char* end) noexcept {
  for (; end - p >= 16; p += 16) {
    const __m128i block = load_block(p);
    const __m128i breaks =
        _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\r')));
    const __m128i spaces = _mm_and_si128(breaks, _mm_set1_epi8(' '));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_or_si128(_mm_andnot_si128(breaks, block), spaces));
  }
  for (; p != end; ++p) *p = *p == '\n' || *p == '\r' ? ' ' : *p;
}

#else

inline void replace_line_breaks(char* p, char* end) noexcept {
  for (; p != end; ++p) *p = *p == '\n' || *p == '\r' ? ' ' : *p;
}

inline const char* skip_white_space(const char* p, const char* end, bool& line_break) noexcept {
  for (; p != end && is_space(*p); ++p) line_break = line_break || *p == '\n' || *p == '\r';
  return p;
}

template <Plain kPlain>
inline const char* skip_plain_windows(const char* p, const char*) noexcept {
  return p;
}

template <Plain kPlain>
inline std::uint64_t window_stops(const char*, const char* p, const char* end) noexcept {
  std::uint64_t stops = 0;
  for (int i = 0; i < kWindow; ++i) {
    stops |= std::uint64_t{i >= end - p || !is_plain<kPlain>(p[i])} << i;
  }
  return stops;
}

#endif

// The first byte from `p` on that is not plain, or `end`.
template <Plain kPlain>
inline const char* skip_plain(const char* p, const char* end) noexcept {
  const char* const begin = p;
  for (;;) {
    const std::uint64_t stops = window_stops<kPlain>(begin, p, end);
    if (stops != 0) return p + std::countr_zero(stops);
    p = skip_plain_windows<kPlain>(p + kWindow, end);
  }
}

}  // namespace fairlead::json
