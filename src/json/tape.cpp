#include "json/tape.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "fairlead/json/view.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

namespace {

enum EscapeByte : std::uint8_t { kSimpleEscape = 1, kHexDigit = 2 };

constexpr std::array<std::uint8_t, 256> kEscapeBytes = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] |= kSimpleEscape;
  for (const char c : std::string_view("0123456789abcdefABCDEF"))
    table[static_cast<unsigned char>(c)] |= kHexDigit;
  return table;
}();

enum NumberByte : std::uint8_t { kNone, kDigit, kFraction };

constexpr std::array<std::uint8_t, 256> kNumberBytes = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : std::string_view("-0123456789")) table[static_cast<unsigned char>(c)] = kDigit;
  for (const char c : std::string_view("+.eE")) table[static_cast<unsigned char>(c)] = kFraction;
  return table;
}();

// The byte after white space, or NUL at the end.
inline char next_token(const char*& p, const char* end) noexcept {
  if (p != end && static_cast<unsigned char>(*p) > ' ') return *p;
  bool line_break = false;
  p = skip_white_space(p, end, line_break);
  return p != end ? *p : '\0';
}

// `p` is at a backslash. Null when no escape follows: decoding relies on it. Which escape it is, is decided
// without a branch: a processor cannot predict that of hostile text.
inline const char* skip_escape(const char* p, const char* end) noexcept {
  const auto left = static_cast<std::size_t>(end - p);
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < left ? kEscapeBytes[static_cast<unsigned char>(p[i])] : 0;
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

// Finds the bytes that end a run of plain text in a string, for 64 bytes at once, as the scanner does.
class Tape::Stops {
 public:
  explicit Stops(std::string_view text) noexcept
      : begin_(text.data()), end_(begin_ + text.size()), window_(end_) {}

  const char* find(const char* p) noexcept {
    const auto ahead = static_cast<std::size_t>(p - window_);
    if (ahead < kWindow) {
      if (const std::uint64_t stops = stops_ >> ahead; stops != 0) return p + std::countr_zero(stops);
    }
    return find_beyond(p);
  }

 private:
  const char* find_beyond(const char* p) noexcept {
    const char* window = begin_ + ((p - begin_) & -kWindow);
    if (window == window_) window += kWindow;
    for (;;) {
      window_ = window;
      stops_ = window_stops<Plain::utf8>(begin_, window, end_);
      p = std::max(p, window);
      if (const std::uint64_t stops = stops_ >> (p - window); stops != 0) return p + std::countr_zero(stops);
      window = skip_plain_windows<Plain::utf8>(window + kWindow, end_);
    }
  }

  const char* begin_;
  const char* end_;
  const char* window_;  // stops_ has a bit for each of the 64 bytes from here; the end before the first
  std::uint64_t stops_ = ~std::uint64_t{0};
};

void Tape::grow() {
  auto larger = std::make_unique_for_overwrite<Entry[]>(capacity_ * 4);
  std::copy_n(entries_, size_, larger.get());
  heap_ = std::move(larger);
  entries_ = heap_.get();
  capacity_ *= 4;
}

inline Index Tape::add(const char* begin, const char* end, Type type, bool special) {
  if (size_ == capacity_) grow();
  const auto at = static_cast<Index>(size_++);
  entries_[at] = {static_cast<std::uint32_t>(begin - text_), static_cast<std::uint32_t>(end - begin), at + 1,
                  static_cast<std::uint32_t>(type) | (special ? kSpecial : 0)};
  return at;
}

// `p` is at the opening quote.
inline const char* Tape::add_string(const char* p, const char* end, Stops& stops) {
  bool escaped = false;
  const char* stop = stops.find(p + 1);
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
  for (std::uint8_t byte; stop != end && (byte = kNumberBytes[static_cast<unsigned char>(*stop)]) != kNone;
       ++stop)
    seen |= byte;
  if (stop != p) return add(p, stop, Type::number, (seen & kFraction) != 0), stop;
  const std::size_t length = literal_length(p, end);
  if (length == 0) return nullptr;
  add(p, p + length, *p == 'n' ? Type::null : Type::boolean, false);
  return p + length;
}

// One turn of the loop is one value, with its key where it has one: it may open a container, or it closes
// those that end after it.
Tape::Problem Tape::read(std::string_view text, Bounds bounds) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if (text.size() >= kNowhere) return Problem::too_many;
  text_ = p;
  size_ = 0;
  Stops stops(text);
  Index open = kNowhere;
  std::size_t depth = 0;
  char close = 0;
  for (;;) {
    if (size_ >= std::min(bounds.max_values, kMaxValues)) return Problem::too_many;
    char c = next_token(p, end);
    if (close == '}') {
      if (c != '"' || (p = add_string(p, end, stops)) == nullptr) return Problem::not_json;
      if (next_token(p, end) != ':') return Problem::not_json;
      ++p;
      c = next_token(p, end);
    }
    if (open != kNowhere) entries_[open].info += kOne;
    if (c == '{' || c == '[') {
      if (depth++ == bounds.max_depth) return Problem::too_deep;
      const Index at = add(p, p + 1, c == '{' ? Type::object : Type::array, false);
      entries_[at].next = open;
      open = at;
      close = static_cast<char>(c + 2);  // in ASCII the closing bracket is two after the opening one
      ++p;
      c = next_token(p, end);
      if (c != close) continue;
    } else if (c == '\0' || (p = add_scalar(p, end, stops)) == nullptr) {
      return Problem::not_json;
    } else {
      c = next_token(p, end);
    }
    while (open != kNowhere && c == close) {
      ++p;
      Entry& ended = entries_[open];
      ended.length = static_cast<std::uint32_t>(p - text_) - ended.begin;
      open = std::exchange(ended.next, static_cast<Index>(size_));
      --depth;
      close = open == kNowhere ? '\0' : type(open) == Type::object ? '}' : ']';
      c = next_token(p, end);
    }
    if (open == kNowhere) return p == end ? Problem::none : Problem::not_json;
    if (c != ',') return Problem::not_json;
    ++p;
  }
}

std::string_view Tape::decoded(Index at, std::string& room) const {
  room = unescape(inside(at));
  return room;
}

Index Tape::member(Index object, std::string_view name) const {
  Index found = kNowhere;
  std::string room;
  for (Index key = object + 1; key != next(object); key = next(key + 1)) {
    if (string(key, room) == name) found = key + 1;
  }
  return found;
}

// From the top down to `at`: for each container around it the key or element that leads on, and which that
// is.
template <class Visit>
void Tape::descend(Index at, Visit&& visit) const {
  for (Index here = 0; here < at;) {
    const bool named = type(here) == Type::object;
    std::size_t ordinal = 0;
    Index child = here + 1;
    for (Index after; (after = next(named ? child + 1 : child)) <= at; child = after) ++ordinal;
    visit(child, named, ordinal);
    here = named && at > child ? child + 1 : child;
  }
}

std::string Tape::pointer(Index at) const {
  std::string pointer;
  std::string room;
  descend(at, [&](Index child, bool named, std::size_t ordinal) {
    append_pointer_step(pointer, named ? string(child, room) : std::string_view(std::to_string(ordinal)));
  });
  return pointer;
}

bool Tape::is_key(Index at) const {
  bool key = false;
  descend(at, [&](Index child, bool named, std::size_t) { key = named && child == at; });
  return key;
}

void append_pointer_step(std::string& pointer, std::string_view name) {
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
