#include "json/tape.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "fairlead/json/view.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

namespace {

enum EscapeByteClass : std::uint8_t { kSimpleEscape = 1, kHexDigit = 2 };

constexpr std::array<std::uint8_t, 256> kEscapeByteClasses = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] |= kSimpleEscape;
  for (const char c : std::string_view("0123456789abcdefABCDEF"))
    table[static_cast<unsigned char>(c)] |= kHexDigit;
  return table;
}();

enum NumberByteClass : std::uint8_t { kNone, kDigit, kFraction };

constexpr std::array<std::uint8_t, 256> kNumberByteClasses = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : std::string_view("-0123456789")) table[static_cast<unsigned char>(c)] = kDigit;
  for (const char c : std::string_view("+.eE")) table[static_cast<unsigned char>(c)] = kFraction;
  return table;
}();

// Skips white space and returns the byte after it, or NUL at the end.
inline char next_token(const char*& p, const char* end) noexcept {
  if (p != end && static_cast<unsigned char>(*p) > ' ') return *p;
  bool line_break = false;
  p = skip_white_space(p, end, line_break);
  return p != end ? *p : '\0';
}

// Returns the position after the escape at `p`; null if the escape is invalid, because decoding relies on
// valid escapes. Has no branch on the kind of escape, which the processor could not predict for hostile text.
inline const char* skip_escape(const char* p, const char* end) noexcept {
  const auto left = static_cast<std::size_t>(end - p);
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < left ? kEscapeByteClasses[static_cast<unsigned char>(p[i])] : 0;
  };
  const unsigned unicode = left > 1 && p[1] == 'u' ? 1 : 0;
  const unsigned hex = (byte(2) & byte(3) & byte(4) & byte(5) & kHexDigit) / kHexDigit;
  const unsigned simple = byte(1) & kSimpleEscape;
  const unsigned valid = (unicode & hex) | ((unicode ^ 1) & simple);
  return valid != 0 ? p + 2 + 4 * unicode : nullptr;
}

std::size_t literal_length(const char* p, const char* end) noexcept {
  for (const std::string_view literal : {"true", "false", "null"}) {
    if (std::string_view(p, end).starts_with(literal)) return literal.size();
  }
  return 0;
}

}  // namespace

// Finds the bytes that are not plain, 64 at a time, as Scanner::find_stop() does.
class Tape::Stops {
 public:
  explicit Stops(std::string_view text) noexcept
      : begin_(text.data()), end_(begin_ + text.size()), window_(end_) {}

  const char* find(const char* p) noexcept {
    const auto ahead = static_cast<std::size_t>(p - window_);
    if (ahead < kWindowBytes) {
      if (const std::uint64_t stops = stops_ >> ahead; stops != 0) return p + std::countr_zero(stops);
    }
    return find_beyond(p);
  }
  // The same for the content of a string, but may pass over control characters. Faster if the string is long
  // and has no escapes.
  const char* find_in_string(const char* p) noexcept {
    const auto ahead = static_cast<std::size_t>(p - window_);
    if (ahead < kWindowBytes) {
      if (const std::uint64_t stops = stops_ >> ahead; stops != 0) return p + std::countr_zero(stops);
    }
    return find_byte('\\', p, find_byte('"', p, end_));
  }

 private:
  const char* find_beyond(const char* p) noexcept {
    const char* window = begin_ + ((p - begin_) & -kWindowBytes);
    if (window == window_) window += kWindowBytes;
    for (;;) {
      window_ = window;
      stops_ = window_stops<PlainBytes::utf8>(begin_, window, end_);
      p = std::max(p, window);
      if (const std::uint64_t stops = stops_ >> (p - window); stops != 0) return p + std::countr_zero(stops);
      window = skip_plain_windows<PlainBytes::utf8>(window + kWindowBytes, end_);
    }
  }

  const char* begin_;
  const char* end_;
  const char* window_;  // stops_ has a bit for each of the 64 bytes from here; the end: not computed yet
  std::uint64_t stops_ = ~std::uint64_t{0};
};

void Tape::grow() {
  auto larger = std::make_unique_for_overwrite<Entry[]>(capacity_ * 4);
  std::copy_n(entries_, size_, larger.get());
  heap_ = std::move(larger);
  entries_ = heap_.get();
  capacity_ *= 4;
}

inline TapeIndex Tape::add(const char* begin, const char* end, Type type, bool needs_decoding) {
  if (size_ == capacity_) grow();
  const auto entry = static_cast<TapeIndex>(size_++);
  entries_[entry] = {static_cast<std::uint32_t>(begin - text_), static_cast<std::uint32_t>(end - begin),
                     entry + 1, static_cast<std::uint32_t>(type) | (needs_decoding ? kNeedsDecoding : 0)};
  return entry;
}

// REQUIRES: `p` is at the opening quote.
inline const char* Tape::add_string(const char* p, const char* end, Stops& stops) {
  bool escaped = false;
  const char* stop = stops.find_in_string(p + 1);
  while (stop != end && *stop == '\\') {
    escaped = true;
    stop = skip_escape(stop, end);
    if (stop == nullptr) return nullptr;
    stop = stops.find(stop);
  }
  if (stop == end || *stop != '"') return nullptr;
  add(p, stop + 1, Type::string, escaped);
  return stop + 1;
}

inline const char* Tape::add_scalar(const char* p, const char* end, Stops& stops) {
  if (*p == '"') return add_string(p, end, stops);
  const char* stop = p;
  std::uint8_t seen = kNone;
  for (std::uint8_t byte;
       stop != end && (byte = kNumberByteClasses[static_cast<unsigned char>(*stop)]) != kNone; ++stop)
    seen |= byte;
  if (stop != p) return add(p, stop, Type::number, (seen & kFraction) != 0), stop;
  const std::size_t length = literal_length(p, end);
  if (length == 0) return nullptr;
  add(p, p + length, *p == 'n' ? Type::null : Type::boolean, false);
  return p + length;
}

// Each iteration handles one value, and its key in an object. If the value is a container, the iteration
// opens it; otherwise it adds the value and closes the containers that end after it.
Tape::Problem Tape::read(std::string_view text, Bounds bounds) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if (text.size() >= kNoIndex) return Problem::too_many_values;
  text_ = p;
  size_ = 0;
  Stops stops(text);
  TapeIndex open = kNoIndex;
  std::size_t depth = 0;
  char close = 0;
  for (;;) {
    if (size_ >= std::min(bounds.max_values, kMaxValues)) return Problem::too_many_values;
    char c = next_token(p, end);
    if (close == '}') {
      if (c != '"' || (p = add_string(p, end, stops)) == nullptr) return Problem::not_json;
      if (next_token(p, end) != ':') return Problem::not_json;
      ++p;
      c = next_token(p, end);
    }
    if (open != kNoIndex) entries_[open].info += kCountUnit;
    if (c == '{' || c == '[') {
      if (depth++ == bounds.max_depth) return Problem::too_deep;
      const TapeIndex entry = add(p, p + 1, c == '{' ? Type::object : Type::array, false);
      entries_[entry].next = open;
      open = entry;
      close = static_cast<char>(c + 2);  // in ASCII the closing bracket is two after the opening one
      ++p;
      c = next_token(p, end);
      if (c != close) continue;
    } else if (c == '\0' || (p = add_scalar(p, end, stops)) == nullptr) {
      return Problem::not_json;
    } else {
      c = next_token(p, end);
    }
    while (open != kNoIndex && c == close) {
      ++p;
      Entry& ended = entries_[open];
      ended.length = static_cast<std::uint32_t>(p - text_) - ended.begin;
      open = std::exchange(ended.next, static_cast<TapeIndex>(size_));
      --depth;
      close = open == kNoIndex ? '\0' : type(open) == Type::object ? '}' : ']';
      c = next_token(p, end);
    }
    if (open == kNoIndex) return p == end ? Problem::none : Problem::not_json;
    if (c != ',') return Problem::not_json;
    ++p;
  }
}

std::string_view Tape::decoded(TapeIndex entry, std::string& buffer) const {
  buffer = unescape(unquoted(entry));
  return buffer;
}

TapeIndex Tape::member(TapeIndex object, std::string_view name) const {
  TapeIndex found = kNoIndex;
  std::string buffer;
  for (TapeIndex key = object + 1; key != next(object); key = next(key + 1)) {
    if (string(key, buffer) == name) found = key + 1;
  }
  return found;
}

// For each container on the path from the top to `entry`, calls visit(child, named, ordinal): the key or
// element on the path, whether it is a key, and its position in the container.
template <class Visit>
void Tape::visit_path_to(TapeIndex entry, Visit&& visit) const {
  for (TapeIndex here = 0; here < entry;) {
    const bool named = type(here) == Type::object;
    std::size_t ordinal = 0;
    TapeIndex child = here + 1;
    for (TapeIndex after; (after = next(named ? child + 1 : child)) <= entry; child = after) ++ordinal;
    visit(child, named, ordinal);
    here = named && entry > child ? child + 1 : child;
  }
}

std::string Tape::pointer(TapeIndex entry) const {
  std::string pointer;
  std::string buffer;
  visit_path_to(entry, [&](TapeIndex child, bool named, std::size_t ordinal) {
    append_pointer_token(pointer, named ? string(child, buffer) : std::string_view(std::to_string(ordinal)));
  });
  return pointer;
}

bool Tape::is_key(TapeIndex entry) const {
  bool key = false;
  visit_path_to(entry, [&](TapeIndex child, bool named, std::size_t) { key = named && child == entry; });
  return key;
}

void append_pointer_token(std::string& pointer, std::string_view name) {
  pointer += '/';
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

}  // namespace fairlead::json
