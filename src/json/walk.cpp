#include "json/walk.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace fairlead::json {

namespace {

// Masks with a bit for each of 64 bytes: which bytes are quotes, backslashes and brackets.
struct ByteClasses {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opening = 0;  // [ and {
  std::uint64_t closing = 0;  // ] and }
};

#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)

ByteClasses classify(const char* p) noexcept {
  ByteClasses classes;
  for (int at = 0; at < kWindowBytes; at += 16) {
    const __m128i block = load_block(p + at);
    // Square and curly brackets differ in this bit only.
    const __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
    classes.quotes |= bits_of(_mm_cmpeq_epi8(block, _mm_set1_epi8('"'))) << at;
    classes.backslashes |= bits_of(_mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))) << at;
    classes.opening |= bits_of(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << at;
    classes.closing |= bits_of(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))) << at;
  }
  return classes;
}

#else

ByteClasses classify(const char* p) noexcept {
  ByteClasses classes;
  for (int i = 0; i < kWindowBytes; ++i) {
    const char folded = static_cast<char>(p[i] | 0x20);
    classes.quotes |= std::uint64_t{p[i] == '"'} << i;
    classes.backslashes |= std::uint64_t{p[i] == '\\'} << i;
    classes.opening |= std::uint64_t{folded == '{'} << i;
    classes.closing |= std::uint64_t{folded == '}'} << i;
  }
  return classes;
}

#endif

// Finds escaped bytes, window by window.
class EscapeFinder {
 public:
  // Returns the escaped bytes of a window. A run of backslashes escapes the byte after it if its length is
  // odd: adding the starts of runs to the runs carries into the position after each run.
  std::uint64_t escaped_in_window(std::uint64_t backslashes) noexcept {
    if (backslashes == 0) return std::exchange(carried_, 0);
    constexpr std::uint64_t kEven = 0x5555555555555555;
    backslashes &= ~carried_;
    const std::uint64_t follows = backslashes << 1 | carried_;
    const std::uint64_t odd_starts = backslashes & ~kEven & ~follows;
    const std::uint64_t sum = odd_starts + backslashes;
    carried_ = sum < backslashes ? 1 : 0;
    return (kEven ^ (sum << 1)) & follows;
  }

 private:
  std::uint64_t carried_ = 0;  // 1: the first byte of the next window is escaped
};

// The effect of four bytes on the nesting depth: the change after all four, and the lowest change after any
// of them. The index of the table has a bit for each opening bracket and, shifted by 4, for each closing
// bracket.
struct Nesting {
  std::int8_t change = 0;
  std::int8_t lowest = 0;
};
constexpr std::array<Nesting, 256> kNesting = [] {
  std::array<Nesting, 256> table{};
  for (unsigned both = 0; both < table.size(); ++both) {
    Nesting& nesting = table[both];
    for (int i = 0; i < 4; ++i) {
      const int change = static_cast<int>(both >> i & 1) - static_cast<int>(both >> (i + 4) & 1);
      nesting.change = static_cast<std::int8_t>(nesting.change + change);
      nesting.lowest = std::min(nesting.lowest, nesting.change);
    }
  }
  return table;
}();

// Finds the end of a container, window by window: tracks strings and the nesting depth.
class ContainerSkipper {
 public:
  // Returns the number of bytes up to the end of the container if it ends in this window; otherwise -1.
  int skip_window(const char* p) noexcept {
    const ByteClasses classes = classify(p);
    const std::uint64_t strings =
        in_strings(classes.quotes & ~escapes_.escaped_in_window(classes.backslashes));
    const std::uint64_t opening = classes.opening & ~strings;
    const std::uint64_t closing = classes.closing & ~strings;
    const auto closed = static_cast<std::size_t>(std::popcount(closing));
    if (closed >= depth_ && may_end(opening, closing)) return find_end(opening, closing);
    depth_ += static_cast<std::size_t>(std::popcount(opening)) - closed;
    return -1;
  }

 private:
  // Returns a mask of the bytes in strings, including the opening quotes but not the closing ones.
  std::uint64_t in_strings(std::uint64_t quotes) noexcept {
    std::uint64_t inside = quotes;
    for (int shift = 1; shift < 64; shift *= 2) inside ^= inside << shift;
    inside ^= string_carried_;
    string_carried_ = inside >> 63 != 0 ? ~std::uint64_t{0} : 0;
    return inside;
  }

  // Returns whether the container can end in a window with these brackets. The number of closing brackets
  // does not decide this: after many shallow values it is large, but each closes its own opening bracket.
  bool may_end(std::uint64_t opening, std::uint64_t closing) const noexcept {
    int depth = static_cast<int>(std::min(depth_, std::size_t{64}));
    int lowest = depth;
    for (; (opening | closing) != 0; opening >>= 4, closing >>= 4) {
      const Nesting& nesting = kNesting[(opening & 15) | (closing & 15) << 4];
      lowest = std::min(lowest, depth + nesting.lowest);
      depth += nesting.change;
    }
    return lowest <= 0;
  }

  int find_end(std::uint64_t opening, std::uint64_t closing) noexcept {
    for (std::uint64_t both = opening | closing; both != 0; both &= both - 1) {
      const int at = std::countr_zero(both);
      if ((opening >> at & 1) != 0) {
        ++depth_;
      } else if (--depth_ == 0) {
        return at + 1;
      }
    }
    return -1;
  }

  EscapeFinder escapes_;
  std::size_t depth_ = 0;
  std::uint64_t string_carried_ = 0;  // all ones: the next window begins in a string
};

}  // namespace

const char* find_closing_quote_by_windows(const char* p, const char* end, bool& escaped) noexcept {
  // Most strings have no escape: then their end is the first quote.
  const char* const quote = find_byte('"', p, end);
  p = find_byte('\\', p, quote);
  if (p == quote) return quote;
  EscapeFinder escapes;
  std::array<char, kWindowBytes> last;
  while (p < end) {
    const bool whole = end - p >= kWindowBytes;
    if (!whole) {
      last.fill(0);
      std::copy(p, end, last.begin());
    }
    const ByteClasses classes = classify(whole ? p : last.data());
    const std::uint64_t quotes = classes.quotes & ~escapes.escaped_in_window(classes.backslashes);
    const std::uint64_t before = quotes == 0 ? ~std::uint64_t{0} : (quotes & -quotes) - 1;
    escaped = escaped || (classes.backslashes & before) != 0;
    if (quotes != 0) return p + std::countr_zero(quotes);
    p += std::min(end - p, kWindowBytes);
  }
  return end;
}

namespace {

// Returns the position after a container of a few bytes without strings; null for other containers.
const char* skip_small_container(const char* p, const char* end) noexcept {
  constexpr std::ptrdiff_t kSmall = 16;
  if (end - p < kSmall) return nullptr;
  int depth = 0;
  for (const char* const last = p + kSmall; p < last; ++p) {
    if (*p == '"') return nullptr;
    const char folded = static_cast<char>(*p | 0x20);
    depth += int{folded == '{'} - int{folded == '}'};
    if (depth == 0) return p + 1;
  }
  return nullptr;
}

// Returns the position after a container of a few tokens; null for other containers. Tokens are strings,
// brackets, and all other single bytes.
const char* skip_container_of_few_tokens(const char* p, const char* end) noexcept {
  constexpr int kMaxTokens = 24;
  int depth = 0;
  bool escaped = false;
  for (int tokens = 0; tokens < kMaxTokens && p < end; ++tokens) {
    if (*p == '"') {
      p = find_closing_quote(p + 1, end, escaped) + 1;
      continue;
    }
    const char folded = static_cast<char>(*p++ | 0x20);
    depth += int{folded == '{'} - int{folded == '}'};
    if (depth == 0) return p;
  }
  return nullptr;
}

}  // namespace

const char* skip_container(const char* p, const char* end) noexcept {
  if (const char* after = skip_small_container(p, end)) return after;
  if (const char* after = skip_container_of_few_tokens(p, end)) return after;
  ContainerSkipper skipper;
  for (; end - p >= kWindowBytes; p += kWindowBytes) {
    const int size = skipper.skip_window(p);
    if (size >= 0) return p + size;
  }
  std::array<char, kWindowBytes> last{};
  std::copy(p, end, last.begin());
  const int size = skipper.skip_window(last.data());
  return size >= 0 ? std::min(p + size, end) : end;
}

}  // namespace fairlead::json
