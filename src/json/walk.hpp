// Walks the members or elements of JSON that was validated before, several times faster than a Scanner: it
// looks for the ends of values only. For lookups in large texts.
#pragma once

#include <string_view>

#include "json/text_scan.hpp"

namespace fairlead::json {

// The position after the object or array at `p`. REQUIRES: valid JSON up to there, and [p, end) in one text.
const char* skip_container(const char* p, const char* end) noexcept;

// The closing quote of the string whose inside is at `p`, or `end`. Sets `escaped` if there is an escape in
// it.
const char* find_far_quote(const char* p, const char* end, bool& escaped) noexcept;
// The same, for strings that are mostly short.
inline const char* find_closing_quote(const char* p, const char* end, bool& escaped) noexcept {
  constexpr int kShort = 16;
  for (int i = 0; i < kShort && p < end; ++i, ++p) {
    if (*p == '"') return p;
    if (*p != '\\') continue;
    escaped = true;
    ++p;
  }
  if (p >= end) return end;
  return find_far_quote(p, end, escaped);
}

inline const char* skip_any_space(const char* p, const char* end) noexcept {
  while (p < end && is_space(*p)) ++p;
  return p;
}

// The position after the value at `p`.
inline const char* skip_trusted(const char* p, const char* end) noexcept {
  bool escaped = false;
  if (*p == '"') return find_closing_quote(p + 1, end, escaped) + 1;
  if (*p == '{' || *p == '[') return skip_container(p, end);
  while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_space(*p)) ++p;
  return p;
}

// The members of an object one by one, so that a walk over many can be interrupted. REQUIRES: `text` begins
// with a valid object, and has no white space at its end.
class MemberWalk {
 public:
  explicit MemberWalk(std::string_view text) noexcept
      : p_(text.data() + 1), end_(text.data() + text.size() - 1) {}

  // Moves to the next member; false if there is none.
  bool next() noexcept {
    if (!next_key()) return false;
    value_ends_at(skip_trusted(p_, end_));
    return true;
  }
  // The same in two steps, for values whose end is found otherwise: rest() begins with the value until
  // value_ends_at() is called.
  bool next_key() noexcept {
    while (p_ < end_ && (is_space(*p_) || *p_ == ',')) ++p_;
    if (p_ >= end_ || *p_ == '}') return false;
    const char* const key = p_ + 1;
    escaped_ = false;
    const char* const quote = find_closing_quote(key, end_, escaped_);
    p_ = skip_any_space(quote + 1, end_);
    p_ = skip_any_space(p_ + 1, end_);
    if (p_ >= end_) return false;
    key_ = std::string_view(key, static_cast<std::size_t>(quote - key));
    return true;
  }
  void value_ends_at(const char* after) noexcept {
    value_ = std::string_view(p_, static_cast<std::size_t>(after - p_));
    p_ = after;
  }
  // What is not walked over yet. At the end of an object that is not all of the text, it begins with the
  // closing brace.
  std::string_view rest() const noexcept { return {p_, static_cast<std::size_t>(end_ - p_)}; }
  std::string_view key() const noexcept { return key_; }  // as spelled, without its quotes
  bool escaped() const noexcept { return escaped_; }      // whether there are escapes in the key
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
    while (p_ < end_ && (is_space(*p_) || *p_ == ',')) ++p_;
    if (p_ >= end_) return false;
    const char* const value = p_;
    p_ = skip_trusted(p_, end_);
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
