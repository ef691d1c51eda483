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

// Calls visit(key, escaped, value) for each member, the key as spelled and without its quotes, until it
// returns false. REQUIRES: `text` is a valid object without white space around it.
template <class Visit>
void walk_members(std::string_view text, Visit&& visit) {
  const char* p = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  for (;;) {
    while (p < end && (is_space(*p) || *p == ',')) ++p;
    if (p >= end) return;
    const char* const key = p + 1;
    bool escaped = false;
    const char* const quote = find_closing_quote(key, end, escaped);
    p = skip_any_space(quote + 1, end);
    p = skip_any_space(p + 1, end);
    if (p >= end) return;
    const char* const value = p;
    p = skip_trusted(p, end);
    if (!visit(std::string_view(key, static_cast<std::size_t>(quote - key)), escaped,
               std::string_view(value, static_cast<std::size_t>(p - value))))
      return;
  }
}

// Calls visit(value) for each element, until it returns false. REQUIRES: `text` is a valid array without
// white space around it.
template <class Visit>
void walk_elements(std::string_view text, Visit&& visit) {
  const char* p = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  for (;;) {
    while (p < end && (is_space(*p) || *p == ',')) ++p;
    if (p >= end) return;
    const char* const value = p;
    p = skip_trusted(p, end);
    if (!visit(std::string_view(value, static_cast<std::size_t>(p - value)))) return;
  }
}

}  // namespace fairlead::json
