// The parts of Scanner that are inlined: into its other functions, and into ObjectScan.
#pragma once

#include <bit>

#include "fairlead/json/scanner.hpp"
#include "json/characters.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

inline bool Scanner::fail(const char* position, Problem problem) noexcept {
  problem_ = problem;
  p_ = position;
  return false;
}

// Skips white space and returns the byte after it, or NUL at the end. JSON allows NUL nowhere, so callers
// need not distinguish the end from a NUL byte. Usually there is no white space, or one space.
[[gnu::always_inline]] inline char Scanner::next_token(const char*& p) noexcept {
  if (p != end_ && static_cast<unsigned char>(*p) > ' ') return *p;
  if (end_ - p >= 2 && p[0] == ' ' && static_cast<unsigned char>(p[1]) > ' ') return *++p;
  p = skip_space(p);
  return byte_at(p);
}

// The same at a position before the end.
[[gnu::always_inline]] inline char Scanner::next_token_inside(const char*& p) noexcept {
  return static_cast<unsigned char>(*p) > ' ' ? *p : next_token(p);
}

// Returns the first byte from `p` on that is not plain, or the end. Most strings are short, so the stops of
// 64 bytes are computed at once and cached: finding the end of a string then costs a shift and a count of
// zeros, and the processor can compute the stops before it knows where the previous string ends.
[[gnu::always_inline]] inline const char* Scanner::find_stop(const char* p) noexcept {
  const auto ahead = static_cast<std::size_t>(p - window_);
  if (ahead < kWindowBytes) {
    if (const std::uint64_t stops = stops_ >> ahead; stops != 0) return p + std::countr_zero(stops);
  }
  return find_stop_beyond(p, ahead);
}

// The same for a short text, in which computing the stops of whole windows would take longer.
[[gnu::always_inline]] inline const char* Scanner::find_near_stop(const char* p) noexcept {
  const char* const stop = stop_in_block<PlainBytes::ascii>(p, end_);
  return stop != nullptr ? stop : find_far_stop(p);
}

// REQUIRES: `c` is the byte at `p`. Handles most numbers (up to seven digits, optionally a point and up to
// six more digits) without a loop, because the processor cannot predict how often a loop over digits repeats.
[[gnu::always_inline]] inline const char* Scanner::scan_number(const char* p, char c) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    if (end_ - p >= 2 && c != '-' && (p[1] == ',' || p[1] == ']')) return p + 1;
    if (end_ - p >= 16 && c > '0') {
      const int whole = count_digits(p);
      if (whole < 8 && p[whole] != '.' && (p[whole] | 0x20) != 'e') return p + whole;
      if (whole < 8 && p[whole] == '.') {
        const int part = count_digits(p + whole + 1);
        const char* after = p + whole + 1 + part;
        if (part > 0 && part < 7 && (*after | 0x20) != 'e') return after;
      }
    }
  }
  return scan_any_number(p);
}

}  // namespace fairlead::json
