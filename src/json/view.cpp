#include "fairlead/json/view.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "fairlead/base/buffer_cache.hpp"
#include "json/characters.hpp"
#include "json/utf8.hpp"
#include "json/walk.hpp"

namespace fairlead::json {

namespace {

constexpr std::uint32_t kReplacementCharacter = 0xfffd;

// A number as significant digits (without leading and trailing zeros) and an exponent. Exact for any
// magnitude, but stores only as many digits as an int64 can have.
struct SignificantDigits {
  static constexpr int kMaxStored = 19;

  bool negative = false;
  std::int64_t count = 0;     // significant digits; more than kMaxStored if not all are stored
  std::int64_t exponent = 0;  // value = digits * 10^exponent; saturates
  std::array<char, kMaxStored> digits{};

  explicit SignificantDigits(std::string_view number) noexcept;

 private:
  void add(char digit, std::int64_t& zeros) noexcept;
};

// Adds a digit. `zeros` counts the zeros since the last other digit: if no other digit follows, they are
// trailing zeros, which belong to the exponent.
void SignificantDigits::add(char digit, std::int64_t& zeros) noexcept {
  if (digit == '0') {
    if (count > 0) ++zeros;
    return;
  }
  for (; zeros > 0; --zeros, ++count) {
    if (count < kMaxStored) digits[static_cast<std::size_t>(count)] = '0';
  }
  if (count < kMaxStored) digits[static_cast<std::size_t>(count)] = digit;
  ++count;
}

SignificantDigits::SignificantDigits(std::string_view number) noexcept {
  const char* p = number.data();
  const char* const end = p + number.size();
  negative = *p == '-';
  if (negative) ++p;
  std::int64_t zeros = 0;
  std::int64_t fraction = 0;
  for (; p != end && is_digit(*p); ++p) add(*p, zeros);
  if (p != end && *p == '.') {
    for (++p; p != end && is_digit(*p); ++p, ++fraction) add(*p, zeros);
  }
  if (p == end) {
    exponent = zeros - fraction;
    return;
  }
  ++p;  // e or E
  const bool minus = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  std::int64_t written = 0;
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 16;
  for (; p != end; ++p) written = std::min(kFar, written * 10 + (*p - '0'));
  exponent = zeros - fraction + (minus ? -written : written);
}

std::uint32_t parse_four_hex_digits(const char* p) {
  std::uint32_t code = 0;
  std::from_chars(p, p + 4, code, 16);
  return code;
}

bool is_high_surrogate(std::uint32_t code) {
  return code >= 0xd800 && code < 0xdc00;
}
bool is_low_surrogate(std::uint32_t code) {
  return code >= 0xdc00 && code < 0xe000;
}

// Decodes \uXXXX, or the two escapes of a surrogate pair. `p` is after the first `\u`. Returns the position
// after the decoded escapes.
const char* append_unicode_escape(std::string& out, const char* p, const char* end) {
  std::uint32_t code = parse_four_hex_digits(p);
  p += 4;
  if (is_high_surrogate(code) && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
      is_low_surrogate(parse_four_hex_digits(p + 2))) {
    code = 0x10000 + ((code - 0xd800) << 10) + (parse_four_hex_digits(p + 2) - 0xdc00);
    p += 6;
  }
  append_utf8(out, code >= 0xd800 && code < 0xe000 ? kReplacementCharacter : code);
  return p;
}

char decode_short_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;  // quote, backslash or slash
  }
}

// Appends the decoded content of a string to `out`, which is empty.
void unescape_to(std::string& out, std::string_view content) {
  detail::reserve_buffer(out, content.size());
  const char* p = content.data();
  const char* const end = p + content.size();
  while (p != end) {
    const void* found = std::memchr(p, '\\', static_cast<std::size_t>(end - p));
    const char* escape = found != nullptr ? static_cast<const char*>(found) : end;
    out.append(p, static_cast<std::size_t>(escape - p));
    if (escape == end) break;
    p = escape + 2;
    if (escape[1] == 'u') {
      p = append_unicode_escape(out, p, end);
    } else {
      out.push_back(decode_short_escape(escape[1]));
    }
  }
}

}  // namespace

std::string_view View::trimmed(std::string_view text) noexcept {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kSpace);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

View View::operator[](std::string_view key) const {
  std::string_view found;
  if (is(Type::object)) {
    walk_members(text_, [&](std::string_view raw_key, bool escaped, std::string_view value) {
      if (key_equals(raw_key, escaped, key)) found = value;
      return true;
    });
  }
  return View(found);
}

View View::operator[](std::size_t index) const {
  std::string_view found;
  if (is(Type::array)) {
    walk_elements(text_, [&](std::string_view value) {
      if (index-- > 0) return true;
      found = value;
      return false;
    });
  }
  return View(found);
}

void View::walk(MemberVisitor* visitor, void* visit) const {
  if (!is(Type::object)) return;
  walk_members(text_, [&](std::string_view key, bool escaped, std::string_view value) {
    return visitor(visit, key, escaped, value);
  });
}

void View::walk(ElementVisitor* visitor, void* visit) const {
  if (!is(Type::array)) return;
  walk_elements(text_, [&](std::string_view value) { return visitor(visit, value); });
}

std::size_t View::size() const {
  std::size_t count = 0;
  if (is(Type::object))
    walk_members(text_, [&](std::string_view, bool, std::string_view) { return ++count, true; });
  if (is(Type::array)) walk_elements(text_, [&](std::string_view) { return ++count, true; });
  return count;
}

std::optional<bool> View::as_bool() const noexcept {
  if (!is(Type::boolean)) return std::nullopt;
  return text_ == "true";
}

std::optional<std::int64_t> View::as_int() const noexcept {
  if (!is(Type::number)) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto plain = std::from_chars(text_.data(), end, value);
  if (plain.ptr == end && plain.ec == std::errc()) return value;

  const SignificantDigits decimal(text_);
  if (decimal.count == 0) return 0;
  if (decimal.exponent < 0 || decimal.count + decimal.exponent > SignificantDigits::kMaxStored)
    return std::nullopt;
  std::array<char, SignificantDigits::kMaxStored + 1> digits;
  digits.fill('0');
  digits[0] = '-';
  std::copy_n(decimal.digits.begin(), decimal.count, digits.begin() + 1);
  const char* from = digits.data() + (decimal.negative ? 0 : 1);
  const char* to = digits.data() + 1 + decimal.count + decimal.exponent;
  if (std::from_chars(from, to, value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> View::as_double() const noexcept {
  if (!is(Type::number)) return std::nullopt;
  double value = 0;
  const auto [_, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
  if (problem == std::errc()) return value;
  // A number too small for a double is zero, as in other parsers. A number too large is out of range.
  const SignificantDigits decimal(text_);
  if (decimal.count + decimal.exponent > 0) return std::nullopt;
  return decimal.negative ? -0.0 : 0.0;
}

std::optional<std::string> View::as_string() const {
  std::optional<std::string> decoded;
  if (is(Type::string)) unescape_to(decoded.emplace(), unquoted());
  return decoded;
}

bool View::read_string(std::string& out) const {
  if (!is(Type::string)) return false;
  out.clear();
  unescape_to(out, unquoted());
  return true;
}

std::optional<std::string> View::as_string(std::size_t max_bytes) const {
  constexpr std::size_t kLongestEscape = 6;  // for one byte: \u0041
  if (text_.size() / kLongestEscape > max_bytes) return std::nullopt;
  std::optional<std::string> decoded = as_string();
  return decoded && decoded->size() <= max_bytes ? decoded : std::nullopt;
}

std::string unescape(std::string_view content) {
  std::string out;
  unescape_to(out, content);
  return out;
}

bool key_equals(std::string_view raw_key, bool escaped, std::string_view name) {
  if (!escaped) return raw_key == name;
  // An escape is at least as long as the bytes it stands for, and at most six times as long.
  return raw_key.size() >= name.size() && raw_key.size() <= 6 * name.size() && unescape(raw_key) == name;
}

}  // namespace fairlead::json
