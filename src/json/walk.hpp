// Iterates over the members or elements of valid JSON. Several times faster than a Scanner, because only the
// ends of values are searched for. For lookups in large texts.
#pragma once

#include <string_view>

#include "json/text_scan.hpp"

namespace fairlead::json {

// Returns the position after the object or array at `p`. REQUIRES: the container is valid JSON, and [p, end)
// is in one text.
const char* skip_container(const char* p, const char* end) noexcept;

// Returns the closing quote of the string whose content begins at `p`, or `end`. Sets `escaped` if the string
// has an escape. For long strings.
const char* find_closing_quote_by_windows(const char* p, const char* end, bool& escaped) noexcept;
// The same, fast for short strings.
inline const char* find_closing_quote(const char* p, const char* end, bool& escaped) noexcept {
  constexpr int kShort = 16;
#if defined(__SSE2__) && !defined(FAIRLEAD_NO_SIMD)
  constexpr int kMaxBlocks = 4;
  for (int blocks = 0; end - p >= kBlockBytes; ++blocks, p += kBlockBytes) {
    if (blocks == kMaxBlocks) return find_closing_quote_by_windows(p, end, escaped);
    const __m128i block = load_block(p);
    const __m128i quotes = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const std::uint64_t stops = bits_of(_mm_or_si128(quotes, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))));
    if (stops == 0) continue;
    const char* const stop = p + std::countr_zero(stops);
    if (*stop == '"') return stop;
    break;
  }
#endif
  for (int i = 0; i < kShort && p < end; ++i, ++p) {
    if (*p == '"') return p;
    if (*p != '\\') continue;
    escaped = true;
    ++p;
  }
  if (p >= end) return end;
  return find_closing_quote_by_windows(p, end, escaped);
}

// Between the tokens of valid JSON, a byte in this range is white space.
constexpr bool is_space_or_control(char c) noexcept {
  return static_cast<unsigned char>(c) <= ' ';
}

inline const char* skip_space(const char* p, const char* end) noexcept {
  while (p < end && is_space_or_control(*p)) ++p;
  return p;
}

// Returns the position after the value at `p`. REQUIRES: valid JSON.
inline const char* skip_value(const char* p, const char* end) noexcept {
  bool escaped = false;
  if (*p == '"') return find_closing_quote(p + 1, end, escaped) + 1;
  if (*p == '{' || *p == '[') return skip_container(p, end);
  while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_space_or_control(*p)) ++p;
  return p;
}

// Iterates over the members of an object; the caller can interrupt the iteration. REQUIRES: `text` begins
// with a valid object and has no trailing white space.
class MemberWalk {
 public:
  explicit MemberWalk(std::string_view text) noexcept
      : p_(text.data() + 1), end_(text.data() + text.size() - 1) {}

  // Moves to the next member. Returns false if there is none.
  bool next() noexcept {
    if (!next_key()) return false;
    set_value_end(skip_value(p_, end_));
    return true;
  }
  // The same in two steps, for a caller that finds the end of the value itself. After next_key(), rest()
  // begins with the value; the caller then calls set_value_end() with the position after the value.
  bool next_key() noexcept {
    while (p_ < end_ && (is_space_or_control(*p_) || *p_ == ',')) ++p_;
    if (p_ >= end_ || *p_ == '}') return false;
    const char* const key = p_ + 1;
    escaped_ = false;
    const char* const quote = find_closing_quote(key, end_, escaped_);
    p_ = skip_space(quote + 1, end_);
    p_ = skip_space(p_ + 1, end_);
    if (p_ >= end_) return false;
    key_ = std::string_view(key, static_cast<std::size_t>(quote - key));
    return true;
  }
  void set_value_end(const char* end) noexcept {
    value_ = std::string_view(p_, static_cast<std::size_t>(end - p_));
    p_ = end;
  }
  // Returns the text that was not read yet. After the last member, if the object is not the whole text, it
  // begins with the closing brace.
  std::string_view rest() const noexcept { return {p_, static_cast<std::size_t>(end_ - p_)}; }
  std::string_view key() const noexcept { return key_; }  // as spelled, without quotes
  bool escaped() const noexcept { return escaped_; }      // whether the key has escapes
  std::string_view value() const noexcept { return value_; }

 private:
  const char* p_;
  const char* end_;
  std::string_view key_;
  std::string_view value_;
  bool escaped_ = false;
};

// The same for the elements of an array.
class ElementWalk {
 public:
  explicit ElementWalk(std::string_view text) noexcept
      : p_(text.data() + 1), end_(text.data() + text.size() - 1) {}

  bool next() noexcept {
    while (p_ < end_ && (is_space_or_control(*p_) || *p_ == ',')) ++p_;
    if (p_ >= end_) return false;
    const char* const value = p_;
    p_ = skip_value(p_, end_);
    value_ = std::string_view(value, static_cast<std::size_t>(p_ - value));
    return true;
  }
  std::string_view value() const noexcept { return value_; }

 private:
  const char* p_;
  const char* end_;
  std::string_view value_;
};

// Calls visit(key, escaped, value) for each member, until it returns false. REQUIRES: as MemberWalk.
template <class Visit>
void walk_members(std::string_view text, Visit&& visit) {
  MemberWalk walk(text);
  while (walk.next()) {
    if (!visit(walk.key(), walk.escaped(), walk.value())) return;
  }
}

// Calls visit(value) for each element, until it returns false. REQUIRES: as ElementWalk.
template <class Visit>
void walk_elements(std::string_view text, Visit&& visit) {
  ElementWalk walk(text);
  while (walk.next()) {
    if (!visit(walk.value())) return;
  }
}

}  // namespace fairlead::json
