#include "fairlead/json/scanner.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "json/scanner_inline.hpp"
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

// Continues find_stop() after the cached window. The next window begins where the cached one ends, so that it
// does not depend on `p`, unless `p` is far behind it.
const char* Scanner::find_stop_beyond(const char* p, std::size_t ahead) noexcept {
  const char* const window = ahead < 2 * kWindowBytes ? window_ + kWindowBytes : p;
  return utf8_checked_ ? find_stop_from<PlainBytes::utf8>(window, p)
                       : find_stop_from<PlainBytes::ascii>(window, p);
}

// Finds the first stop at or after both `window` and `p`, and caches the window that contains it.
template <PlainBytes kPlain>
[[gnu::always_inline]] inline const char* Scanner::find_stop_from(const char* window,
                                                                  const char* p) noexcept {
  p = std::max(p, window);
  std::uint64_t stops = window_stops<kPlain>(begin_, window, end_);
  std::uint64_t stops_ahead = stops >> (p - window);
  if (stops_ahead == 0) {
    p = window = skip_plain_windows<kPlain>(window + kWindowBytes, end_);
    stops_ahead = stops = window_stops<kPlain>(begin_, window, end_);
  }
  window_ = window;
  stops_ = stops;
  return p + std::countr_zero(stops_ahead);
}

template <Scanner::Mode kMode>
[[gnu::always_inline]] inline char Scanner::next_token_in(const char*& p) noexcept {
  return kMode == Mode::small ? next_token_inside(p) : next_token(p);
}

// Returns the first stop in the string whose opening quote is at `p`. If the scan paused inside the string,
// returns the stop at which it paused.
template <Scanner::Mode kMode>
[[gnu::always_inline]] inline const char* Scanner::first_stop(const char* p) noexcept {
  if constexpr (kMode == Mode::pausing) {
    if (pauses_->string_pos_ != nullptr) return std::exchange(pauses_->string_pos_, nullptr);
  }
  return kMode == Mode::small ? find_near_stop(p + 1) : find_stop(p + 1);
}

// REQUIRES: `p` is at the opening quote.
template <Scanner::Mode kMode>
[[gnu::always_inline]] inline const char* Scanner::scan_string(const char* p) noexcept {
  p = first_stop<kMode>(p);
  if (p != end_ && *p == '"') return p + 1;
  return scan_string_rest < kMode == Mode::pausing ? kMode : Mode::whole > (p);
}

// REQUIRES: `p` is at the first byte of the string that is not plain.
template <Scanner::Mode kMode>
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
    if constexpr (kMode == Mode::pausing) {
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
template <Scanner::Mode kMode>
[[gnu::always_inline]] inline const char* Scanner::scan_scalar(const char* p, char c) noexcept {
  if (c == '"') return scan_string<kMode>(p);
  if (is_digit(c) || c == '-') return scan_number(p, c);
  if (c == 't') return scan_literal(p, "true");
  if (c == 'f') return scan_literal(p, "false");
  if (c == 'n') return scan_literal(p, "null");
  return fail(p, Problem::unexpected), nullptr;
}

// Scans a key and the colon, and returns the position of the value. `c` is the byte at `p`; it is set to the
// first byte of the value.
template <Scanner::Mode kMode>
[[gnu::always_inline]] inline const char* Scanner::scan_key(const char* p, char& c) noexcept {
  if (c != '"') return fail(p, Problem::unexpected), nullptr;
  p = first_stop<kMode>(p);
  if ((kMode == Mode::small ? p != end_ : end_ - p > 2) && p[0] == '"' &&
      p[1] == ':') {  // the common case: no escape, no white space
    p += 2;
    c = *p;
    if (static_cast<unsigned char>(c) <= ' ') c = next_token(p);
    return p;
  }
  p = scan_string_rest < kMode == Mode::pausing ? kMode : Mode::whole > (p);
  if (p == nullptr) return nullptr;
  if (next_token(p) != ':') return fail(p, Problem::unexpected), nullptr;
  ++p;
  c = next_token(p);
  return p;
}

// REQUIRES: `p` is at an opening bracket. Each iteration handles one value, and its key in an object. If the
// value is a container, the iteration opens it; otherwise it scans the value and closes the containers that
// end after it. The scan pauses before a value or inside a string.
template <Scanner::Mode kMode>
const char* Scanner::scan_container(const char* p) {
  const std::size_t max_depth = max_depth_ - depth_;
  std::size_t depth = 0;
  std::uint64_t objects = 0;  // a bit for each of the innermost 64 containers, lowest first: 1 for an object
  std::conditional_t<kMode == Mode::small, SmallOuterLevels, OuterLevels> outer;
  char close = 0;  // the closing bracket of the innermost container
  bool after_key = false;
  if constexpr (kMode == Mode::pausing) {
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
    if constexpr (kMode == Mode::pausing) {
      if (!failed()) pauses_->save(token, key_scanned, depth, objects, std::move(outer));
    }
    return nullptr;
  };
  char c = kMode == Mode::small ? *p : byte_at(p);
  for (;;) {
    const char* token = p;
    if constexpr (kMode == Mode::pausing) {
      if (p >= pauses_->pause_at_ && p != end_) return pauses_->pause_at_ = p, save_state(token, false);
    }
    if (close == '}' && !(kMode == Mode::pausing && after_key)) {
      p = scan_key<kMode>(p, c);
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
      c = next_token_in<kMode>(p);
      if (c != close) continue;
    } else {
      token = p;
      p = scan_scalar<kMode>(p, c);
      if (p == nullptr) return save_state(token, close == '}');
      c = next_token_in<kMode>(p);
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
    c = next_token_in<kMode>(p);
  }
}

const char* Scanner::scan_unusual_key(const char* from, std::string_view& key, bool& escaped) noexcept {
  saw_escape_ = false;
  const char* p = scan_string<Mode::small>(from - 1);
  if (p == nullptr) return nullptr;
  key = std::string_view(from, static_cast<std::size_t>(p - 1 - from));
  escaped = saw_escape_;
  if (next_token(p) != ':') return fail(p, Problem::unexpected), nullptr;
  ++p;
  next_token(p);
  return p;
}

// Continues find_near_stop() if no stop is in the first block.
const char* Scanner::find_far_stop(const char* p) noexcept {
  constexpr int kMaxBlocks = 8;  // the stops of a longer string are found window by window
  for (int i = 0; i < kMaxBlocks && end_ - p >= kBlockBytes; ++i, p += kBlockBytes) {
    if (const char* const stop = stop_in_block<PlainBytes::ascii>(p, end_)) return stop;
  }
  if (end_ - p >= kBlockBytes) return find_stop(p);
  return p + std::countr_zero(window_stops<PlainBytes::ascii>(begin_, p, end_));
}

const char* Scanner::scan_long_string(const char* quote) noexcept {
  return scan_string<Mode::small>(quote);
}

const char* Scanner::scan_other_value(const char* p, char c) noexcept {
  if (c != '{' && c != '[') return scan_scalar<Mode::small>(p, c);
  const bool small = end_ - p <= static_cast<std::ptrdiff_t>(SmallOuterLevels::kMaxTextBytes);
  return small ? scan_container<Mode::small>(p) : scan_container<Mode::whole>(p);
}

bool Scanner::value(std::string_view& out) {
  if (failed()) return false;
  if (pauses_ != nullptr) [[unlikely]]
    return value_with_pauses(out);
  const char* from = p_;
  const char c = next_token(from);
  const char* to =
      c == '{' || c == '[' ? scan_container<Mode::whole>(from) : scan_scalar<Mode::whole>(from, c);
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
  const char* to = container ? scan_container<Mode::pausing>(resumes ? pauses_->token_ : from)
                             : scan_scalar<Mode::pausing>(from, c);
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
  p = scan_string<Mode::whole>(p);
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
  const char* const after = scan_string<Mode::pausing>(p);
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
