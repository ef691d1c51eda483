// Finds the end of a run of plain bytes in a string, of white space, or of digits, many bytes at once.
// The scanner and the writer spend most of their time here, so it reads 16 bytes at a time with SSE2 (every
// x86-64 has it), and single bytes elsewhere or with FAIRLEAD_NO_SIMD. It never reads outside the given
// range.
//
// A plain byte is one that a JSON string may contain without an escape. A stop is a byte that is not plain.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)
#include <emmintrin.h>
#endif

namespace fairlead::json {

// Which bytes are plain. `ascii`: ASCII characters that need no escape. `utf8`: also every byte over 0x7f.
enum class PlainBytes : std::uint8_t { ascii, utf8 };

inline constexpr std::ptrdiff_t kWindowBytes = 64;  // bytes for which one mask has the stops
inline constexpr int kBlockBytes = 16;              // bytes that are loaded at once

template <PlainBytes kPlain>
constexpr bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && c != '"' && c != '\\' && (kPlain == PlainBytes::utf8 || byte < 0x80);
}

// Returns whether `c` is white space between tokens.
constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Returns the first `byte` from `p` on, or `end`.
inline const char* find_byte(char byte, const char* p, const char* end) noexcept {
  const void* const found = p != end ? std::memchr(p, byte, static_cast<std::size_t>(end - p)) : nullptr;
  return found != nullptr ? static_cast<const char*>(found) : end;
}

// Returns the number of digits at the beginning of the eight bytes at `p`. The high half of a digit is 3, and
// adding 6 to its low half does not carry; a carry out of a byte that is not a digit affects later bytes
// only. REQUIRES: eight bytes at `p`, a little-endian machine.
inline int count_digits(const char* p) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  word ^= 0x3030303030303030;
  const std::uint64_t others = (word | (word + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0;
  return std::countr_zero(others) / 8;
}

#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)

inline __m128i load_block(const char* p) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Returns a block in which the highest bit of a byte is set if it is not plain.
template <PlainBytes kPlain>
inline __m128i not_plain(__m128i block) noexcept {
  const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
  const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
  // As signed numbers, bytes over 0x7f are also less than 0x20: one subtraction finds both.
  const __m128i low = kPlain == PlainBytes::ascii
                          ? _mm_subs_epi8(block, _mm_set1_epi8(0x20))
                          : _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
  return _mm_or_si128(_mm_or_si128(quote, backslash), low);
}

inline std::uint64_t bits_of(__m128i block) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(block));
}

template <PlainBytes kPlain>
inline std::uint64_t block_stops(const char* p) noexcept {
  return bits_of(not_plain<kPlain>(load_block(p)));
}

// Returns the first stop of the block at `p`. Returns null if it has none, and if less than a block is left.
template <PlainBytes kPlain>
[[gnu::always_inline]] inline const char* stop_in_block(const char* p, const char* end) noexcept {
  if (end - p < kBlockBytes) return nullptr;
  const std::uint64_t stops = block_stops<kPlain>(p);
  return stops != 0 ? p + std::countr_zero(stops) : nullptr;
}

// Skips whole windows without a stop, so that the window after them has one. Tests each window with one
// comparison.
template <PlainBytes kPlain>
inline const char* skip_plain_windows(const char* p, const char* end) noexcept {
  while (end - p >= kWindowBytes) {
    const __m128i a = not_plain<kPlain>(load_block(p));
    const __m128i b = not_plain<kPlain>(load_block(p + 16));
    const __m128i c = not_plain<kPlain>(load_block(p + 32));
    const __m128i d = not_plain<kPlain>(load_block(p + 48));
    if (bits_of(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) != 0) break;
    p += kWindowBytes;
  }
  return p;
}

// Computes the stops of a whole window.
template <PlainBytes kPlain>
inline std::uint64_t whole_window_stops(const char* p) noexcept {
  return block_stops<kPlain>(p) | (block_stops<kPlain>(p + 16) << 16) | (block_stops<kPlain>(p + 32) << 32) |
         (block_stops<kPlain>(p + 48) << 48);
}

// Computes the stops of the last window of a text; bytes beyond `end` count as stops. If the text is long
// enough, the window or block is loaded so that it ends where the text ends, and then shifted into place.
template <PlainBytes kPlain>
inline std::uint64_t last_window_stops(const char* begin, const char* p, const char* end) noexcept {
  int rest = static_cast<int>(end - p);
  if (rest == 0) return ~std::uint64_t{0};
  const std::uint64_t beyond = ~std::uint64_t{0} << rest;
  if (rest < kBlockBytes && end - begin >= kBlockBytes)
    return (block_stops<kPlain>(end - kBlockBytes) >> (kBlockBytes - rest)) | beyond;
  if (end - begin >= kWindowBytes)
    return (whole_window_stops<kPlain>(end - kWindowBytes) >> (kWindowBytes - rest)) | beyond;
  std::uint64_t stops = 0;
  int shift = 0;
  for (; rest >= 16; p += 16, rest -= 16, shift += 16) stops |= block_stops<kPlain>(p) << shift;
  if (end - begin >= kBlockBytes)
    return stops | ((block_stops<kPlain>(end - kBlockBytes) >> (kBlockBytes - rest)) << shift) | beyond;
  for (int i = 0; i < rest; ++i) stops |= std::uint64_t{!is_plain<kPlain>(p[i])} << (shift + i);
  return stops | beyond;
}

// Returns a mask in which bit i is set if p[i] is not plain or lies beyond `end`. REQUIRES: begin <= p <=
// end.
template <PlainBytes kPlain>
inline std::uint64_t window_stops(const char* begin, const char* p, const char* end) noexcept {
  return end - p < kWindowBytes ? last_window_stops<kPlain>(begin, p, end) : whole_window_stops<kPlain>(p);
}

// Returns the first byte from `p` on that is not white space, or `end`. Sets `line_break` if it skips a CR or
// LF.
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

// Overwrites every CR and LF in [p, end) with a space.
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

template <PlainBytes kPlain>
inline const char* stop_in_block(const char* p, const char* end) noexcept {
  if (end - p < kBlockBytes) return nullptr;
  for (int i = 0; i < kBlockBytes; ++i) {
    if (!is_plain<kPlain>(p[i])) return p + i;
  }
  return nullptr;
}

inline void replace_line_breaks(char* p, char* end) noexcept {
  for (; p != end; ++p) *p = *p == '\n' || *p == '\r' ? ' ' : *p;
}

inline const char* skip_white_space(const char* p, const char* end, bool& line_break) noexcept {
  for (; p != end && is_space(*p); ++p) line_break = line_break || *p == '\n' || *p == '\r';
  return p;
}

template <PlainBytes kPlain>
inline const char* skip_plain_windows(const char* p, const char* end) noexcept {
  while (p != end && is_plain<kPlain>(*p)) ++p;
  return p;
}

template <PlainBytes kPlain>
inline std::uint64_t window_stops(const char*, const char* p, const char* end) noexcept {
  std::uint64_t stops = 0;
  for (int i = 0; i < kWindowBytes; ++i) {
    stops |= std::uint64_t{i >= end - p || !is_plain<kPlain>(p[i])} << i;
  }
  return stops;
}

#endif

// Returns the first byte from `p` on that is not plain, or `end`.
template <PlainBytes kPlain>
inline const char* skip_plain(const char* p, const char* end) noexcept {
  const char* const begin = p;
  std::uint64_t stops = window_stops<kPlain>(begin, p, end);
  if (stops == 0) {
    p = skip_plain_windows<kPlain>(p + kWindowBytes, end);
    stops = window_stops<kPlain>(begin, p, end);
  }
  return p + std::countr_zero(stops);
}

}  // namespace fairlead::json
