#include "fairlead/json/scanner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "json/characters.hpp"
#include "json/text_scan.hpp"
#include "json/utf8.hpp"

namespace fairlead::json {

namespace {

constexpr std::array<bool, 256> kShortEscapes = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// Returns the closing bracket for `open`. In ASCII it is two after the opening bracket, for both kinds.
constexpr char closing_bracket(char open) noexcept {
  return static_cast<char>(open + 2);
}

std::optional<Type> type_by_first_byte(char c) noexcept {
  switch (c) {
    case '{': return Type::object;
    case '[': return Type::array;
    case '"': return Type::string;
    case 't':
    case 'f': return Type::boolean;
    case 'n': return Type::null;
    default: break;
  }
  if (is_digit(c) || c == '-') return Type::number;
  return std::nullopt;
}

}  // namespace

Type type_of(std::string_view value) noexcept {
  return value.empty() ? Type::null : type_by_first_byte(value.front()).value_or(Type::null);
}

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

const char* Scanner::skip_space(const char* p) noexcept {
  return skip_white_space(p, end_, line_break_);
}

bool Scanner::check_utf8(const char* from) noexcept {
  if (utf8_checked_) return true;
  const char* invalid = find_invalid_utf8(from, end_);
  if (invalid != end_) return fail(invalid, Problem::bad_utf8);
  utf8_checked_ = true;
  window_ = end_;  // invalid: stops_ was computed with PlainBytes::ascii
  stops_ = ~std::uint64_t{0};
  return true;
}

// REQUIRES: `p` is at the backslash.
inline const char* Scanner::scan_escape(const char* p) noexcept {
  if (end_ - p >= 2 && kShortEscapes[static_cast<unsigned char>(p[1])]) return p + 2;
  ++p;
  if (byte_at(p) != 'u') return fail(p, p == end_ ? Problem::end_in_string : Problem::bad_escape), nullptr;
  for (int i = 0; i < 4; ++i) {
    ++p;
    if (!is_hex(byte_at(p)))
      return fail(p, p == end_ ? Problem::end_in_string : Problem::bad_escape), nullptr;
  }
  return p + 1;
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

// Continues find_stop() after the cached window. Windows begin at multiples of 64 from the beginning of the
// text.
const char* Scanner::find_stop_beyond(const char* p, std::size_t ahead) noexcept {
  const char* window = window_ + kWindowBytes;
  if (ahead >= 2 * kWindowBytes) window = begin_ + ((p - begin_) & -kWindowBytes);
  for (;;) {
    window_ = window;
    stops_ = utf8_checked_ ? window_stops<PlainBytes::utf8>(begin_, window, end_)
                           : window_stops<PlainBytes::ascii>(begin_, window, end_);
    if (p < window) p = window;
    if (const std::uint64_t stops = stops_ >> (p - window); stops != 0) return p + std::countr_zero(stops);
    window = utf8_checked_ ? skip_plain_windows<PlainBytes::utf8>(window + kWindowBytes, end_)
                           : skip_plain_windows<PlainBytes::ascii>(window + kWindowBytes, end_);
  }
}

// Returns the first stop in the string whose opening quote is at `p`. If the scan paused inside the string,
// returns the stop at which it paused.
template <bool kPauses>
[[gnu::always_inline]] inline const char* Scanner::first_stop(const char* p) noexcept {
  if constexpr (kPauses) {
    if (pauses_->string_pos_ != nullptr) return std::exchange(pauses_->string_pos_, nullptr);
  }
  return find_stop(p + 1);
}

// REQUIRES: `p` is at the opening quote.
template <bool kPauses>
[[gnu::always_inline]] inline const char* Scanner::scan_string(const char* p) noexcept {
  p = first_stop<kPauses>(p);
  if (p != end_ && *p == '"') return p + 1;
  return scan_string_rest<kPauses>(p);
}

// REQUIRES: `p` is at the first byte of the string that is not plain.
template <bool kPauses>
const char* Scanner::scan_string_rest(const char* p) noexcept {
  while (p != end_ && *p != '"') {
    if (*p == '\\') {
      saw_escape_ = true;
      p = scan_escape(p);
      if (p == nullptr) return nullptr;
    } else if (static_cast<unsigned char>(*p) < 0x20) {
      return fail(p, Problem::control_character), nullptr;
    } else if (!check_utf8(p)) {
      return nullptr;
    }
    p = find_stop(p);
    if constexpr (kPauses) {
      if (p >= pauses_->pause_at_ && p != end_) return pauses_->string_pos_ = pauses_->pause_at_ = p, nullptr;
    }
  }
  if (p == end_) return fail(p, Problem::end_in_string), nullptr;
  return p + 1;
}

// Scans one or more digits.
const char* Scanner::scan_digits(const char* p) noexcept {
  if (!is_digit(byte_at(p)))
    return fail(p, p == end_ ? Problem::end_in_number : Problem::unexpected), nullptr;
  do ++p;
  while (is_digit(byte_at(p)));
  return p;
}

// Scans any number. The slow path of scan_number().
const char* Scanner::scan_any_number(const char* p) noexcept {
  if (*p == '-') ++p;
  if (byte_at(p) == '0') {
    ++p;
  } else if (p = scan_digits(p); p == nullptr) {
    return nullptr;
  }
  if (byte_at(p) == '.') {
    p = scan_digits(p + 1);
    if (p == nullptr) return nullptr;
  }
  if ((byte_at(p) | 0x20) != 'e') return p;
  ++p;
  if (byte_at(p) == '+' || byte_at(p) == '-') ++p;
  return scan_digits(p);
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

[[gnu::always_inline]] inline const char* Scanner::scan_literal(const char* p,
                                                                std::string_view literal) noexcept {
  if (static_cast<std::size_t>(end_ - p) >= literal.size() &&
      std::memcmp(p, literal.data(), literal.size()) == 0) {
    return p + literal.size();
  }
  for (const char c : literal) {
    if (byte_at(p) != c) break;
    ++p;
  }
  return fail(p, Problem::unexpected), nullptr;
}

// REQUIRES: `c` is the byte at `p`.
template <bool kPauses>
[[gnu::always_inline]] inline const char* Scanner::scan_scalar(const char* p, char c) noexcept {
  if (c == '"') return scan_string<kPauses>(p);
  if (is_digit(c) || c == '-') return scan_number(p, c);
  if (c == 't') return scan_literal(p, "true");
  if (c == 'f') return scan_literal(p, "false");
  if (c == 'n') return scan_literal(p, "null");
  return fail(p, Problem::unexpected), nullptr;
}

// Scans a key and the colon, and returns the position of the value. `c` is the byte at `p`; it is set to the
// first byte of the value.
template <bool kPauses>
[[gnu::always_inline]] inline const char* Scanner::scan_key(const char* p, char& c) noexcept {
  if (c != '"') return fail(p, Problem::unexpected), nullptr;
  p = first_stop<kPauses>(p);
  if (end_ - p > 2 && p[0] == '"' && p[1] == ':') {  // the common case: no escape, no white space
    p += 2;
    c = *p;
    if (static_cast<unsigned char>(c) <= ' ') c = next_token(p);
    return p;
  }
  p = scan_string_rest<kPauses>(p);
  if (p == nullptr) return nullptr;
  if (next_token(p) != ':') return fail(p, Problem::unexpected), nullptr;
  ++p;
  c = next_token(p);
  return p;
}

// REQUIRES: `p` is at an opening bracket. Each iteration handles one value, and its key in an object. If the
// value is a container, the iteration opens it; otherwise it scans the value and closes the containers that
// end after it. The scan pauses before a value or inside a string.
template <bool kPauses>
const char* Scanner::scan_container(const char* p) {
  const std::size_t max_depth = max_depth_ - depth_;
  std::size_t depth = 0;
  std::uint64_t objects = 0;  // a bit for each of the innermost 64 containers, lowest first: 1 for an object
  OuterLevels outer;
  char close = 0;  // the closing bracket of the innermost container
  bool after_key = false;
  if constexpr (kPauses) {
    if (pauses_->depth_ != 0) {
      depth = std::exchange(pauses_->depth_, 0);
      objects = pauses_->objects_;
      outer = std::move(pauses_->outer_);
      after_key = pauses_->after_key_;
      close = objects & 1 ? '}' : ']';
    }
  }
  const auto save_state = [&]([[maybe_unused]] const char* token,
                              [[maybe_unused]] bool key_scanned) -> const char* {
    if constexpr (kPauses) {
      if (!failed()) pauses_->save(token, key_scanned, depth, objects, std::move(outer));
    }
    return nullptr;
  };
  char c = byte_at(p);
  for (;;) {
    const char* token = p;
    if constexpr (kPauses) {
      if (p >= pauses_->pause_at_ && p != end_) return pauses_->pause_at_ = p, save_state(token, false);
    }
    if (close == '}' && !(kPauses && after_key)) {
      p = scan_key<kPauses>(p, c);
      if (p == nullptr) return save_state(token, false);
    }
    after_key = false;
    if (c == '{' || c == '[') {
      if (depth == max_depth) return fail(p, Problem::too_deep), nullptr;
      if (depth % 64 == 0 && depth != 0) outer.push(objects);
      ++depth;
      objects = objects << 1 | (c == '{');
      close = closing_bracket(c);
      ++p;
      c = next_token(p);
      if (c != close) continue;
    } else {
      token = p;
      p = scan_scalar<kPauses>(p, c);
      if (p == nullptr) return save_state(token, close == '}');
      c = next_token(p);
    }
    while (c == close) {
      ++p;
      if (--depth == 0) return p;
      objects = depth % 64 == 0 ? outer.pop() : objects >> 1;
      close = objects & 1 ? '}' : ']';
      c = next_token(p);
    }
    if (c != ',') return fail(p, Problem::unexpected), nullptr;
    ++p;
    c = next_token(p);
  }
}

bool Scanner::value(std::string_view& out) {
  if (failed()) return false;
  if (pauses_ != nullptr) [[unlikely]]
    return value_with_pauses(out);
  const char* from = p_;
  const char c = next_token(from);
  const char* to = c == '{' || c == '[' ? scan_container<false>(from) : scan_scalar<false>(from, c);
  if (to == nullptr) return false;
  out = std::string_view(from, static_cast<std::size_t>(to - from));
  p_ = to;
  return true;
}

[[gnu::noinline]] bool Scanner::value_with_pauses(std::string_view& out) {
  const bool resumes = paused();
  if (resumes) schedule_pause();
  const char* from = resumes ? std::exchange(pauses_->value_begin_, nullptr) : p_;
  const char c = next_token(from);
  const bool container = c == '{' || c == '[';
  const char* to =
      container ? scan_container<true>(resumes ? pauses_->token_ : from) : scan_scalar<true>(from, c);
  if (to == nullptr) {
    if (!failed()) pauses_->value_begin_ = from;
    return false;
  }
  out = std::string_view(from, static_cast<std::size_t>(to - from));
  p_ = to;
  return true;
}

void Scanner::pause_with(ScanPauses& pauses) noexcept {
  pauses_ = &pauses;
  pauses.pause_at_ = p_;
  schedule_pause();
}

void Scanner::schedule_pause() noexcept {
  pauses_->pause_at_ +=
      std::min(pauses_->interval_bytes_, static_cast<std::size_t>(end_ - pauses_->pause_at_));
}

bool Scanner::begin_container(char open) noexcept {
  if (failed()) return false;
  const char* p = p_;
  if (next_token(p) != open) return fail(p, Problem::unexpected);
  if (depth_ == max_depth_) return fail(p, Problem::too_deep);
  ++depth_;
  at_first_item_ = true;
  p_ = p + 1;
  return true;
}

// Moves `p` past the comma to the next member or element. Returns false at `close` or on an error.
inline bool Scanner::next_item(char close, const char*& p) noexcept {
  if (failed()) return false;
  p = p_;
  const char c = next_token(p);
  const bool first = at_first_item_;
  at_first_item_ = false;
  if (c == close) {
    --depth_;
    p_ = p + 1;
    return false;
  }
  if (first) return true;
  if (c != ',') return fail(p, Problem::unexpected);
  ++p;
  return true;
}

bool Scanner::begin_object() {
  return begin_container('{');
}

bool Scanner::begin_array() {
  return begin_container('[');
}

bool Scanner::next_member(std::string_view& key, bool& escaped) {
  if (pauses_ != nullptr) [[unlikely]]
    return next_member_with_pauses(key, escaped);
  const char* p = nullptr;
  if (!next_item('}', p)) return false;
  if (next_token(p) != '"') return fail(p, Problem::unexpected);
  const char* const from = p + 1;
  saw_escape_ = false;
  p = scan_string<false>(p);
  if (p == nullptr) return false;
  key = std::string_view(from, static_cast<std::size_t>(p - 1 - from));
  escaped = saw_escape_;
  if (next_token(p) != ':') return fail(p, Problem::unexpected);
  p_ = p + 1;
  return true;
}

// Pauses before a member or inside its key.
[[gnu::noinline]] bool Scanner::next_member_with_pauses(std::string_view& key, bool& escaped) {
  const bool resumes = paused();
  if (resumes) schedule_pause();
  const char* p = std::exchange(pauses_->value_begin_, nullptr);
  if (pauses_->string_pos_ == nullptr) {
    if (!resumes && !failed() && p_ >= pauses_->pause_at_ && p_ != end_) {
      pauses_->pause_at_ = pauses_->value_begin_ = p_;
      return false;
    }
    if (!next_item('}', p)) return false;
    if (next_token(p) != '"') return fail(p, Problem::unexpected);
    saw_escape_ = false;
  }
  const char* const after = scan_string<true>(p);
  if (after == nullptr && !failed()) pauses_->value_begin_ = p;
  return end_key(p, after, key, escaped);
}

// Sets `key` and `escaped` after a key was scanned. `from` is at the opening quote. `p` is after the closing
// quote; null if scanning the key failed or paused, and then returns false.
[[gnu::always_inline]] inline bool Scanner::end_key(const char* from, const char* p, std::string_view& key,
                                                    bool& escaped) noexcept {
  if (p == nullptr) return false;
  key = std::string_view(from + 1, static_cast<std::size_t>(p - from - 2));
  escaped = saw_escape_;
  if (next_token(p) != ':') return fail(p, Problem::unexpected);
  p_ = p + 1;
  return true;
}

bool Scanner::next_element() {
  const char* p = nullptr;
  if (!next_item(']', p)) return false;
  // A comma must be followed by an element. value() would report the error, but the caller may not call it.
  if (next_token(p) == ']') return fail(p, Problem::unexpected);
  p_ = p;
  return true;
}

std::optional<Type> Scanner::peek() {
  if (failed()) return std::nullopt;
  if (static_cast<unsigned char>(byte_at(p_)) <= ' ') p_ = skip_space(p_);
  return type_by_first_byte(byte_at(p_));
}

bool Scanner::finish() {
  if (failed()) return false;
  if (p_ != end_) p_ = skip_space(p_);
  return p_ == end_ || fail(p_, Problem::trailing);
}

std::optional<Error> validate(std::string_view text, std::size_t max_depth) {
  Scanner scanner(text, max_depth);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return std::nullopt;
  return scanner.error();
}

}  // namespace fairlead::json
