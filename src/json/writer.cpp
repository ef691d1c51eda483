#include "fairlead/json/writer.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include "fairlead/base/buffer_cache.hpp"
#include "json/text_scan.hpp"
#include "json/utf8.hpp"

namespace fairlead::json {

namespace {

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> digits;
  const auto [end, problem] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  assert(problem == std::errc());
  static_cast<void>(problem);
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

// Makes room for `bytes` more bytes. The capacity at least doubles, so that many short strings do not cause
// many reallocations.
inline void make_room(std::string& out, std::size_t bytes) {
  const std::size_t needed = out.size() + bytes;
  if (needed > out.capacity()) detail::reserve_buffer(out, std::max(needed, 2 * out.capacity()));
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
  constexpr std::string_view kTo = "\"\\bfnrt";
  out.push_back('\\');
  if (const std::size_t at = kFrom.find(c); at != std::string_view::npos) {
    out.push_back(kTo[at]);
    return;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out.append("u00");
  out.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
  out.push_back(kHex[static_cast<unsigned char>(c) & 15]);
}

// Copies the UTF-8 sequence at `p`, or writes U+FFFD for an invalid byte. Returns the position after it.
const char* append_sequence(std::string& out, const char* p, const char* end) {
  const int length = utf8_length(p, end);
  if (length == 0) {
    out.append("\xef\xbf\xbd");
    return p + 1;
  }
  out.append(p, static_cast<std::size_t>(length));
  return p + length;
}

// Returns the first character of `text` that needs an escape or is not ASCII, or the end of `text`.
inline const char* plain_end(std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if (text.size() >= 16) return skip_plain<PlainBytes::ascii>(p, end);
  while (p != end && is_plain<PlainBytes::ascii>(*p)) ++p;
  return p;
}

// Appends `value` with quotes. REQUIRES: it needs no escapes.
inline void append_plain(std::string& out, std::string_view value) {
  const std::size_t begin = out.size();
  out.resize_and_overwrite(begin + value.size() + 2, [&](char* text, std::size_t size) {
    text[begin] = '"';
    value.copy(text + begin + 1, value.size());
    text[size - 1] = '"';
    return size;
  });
}

// Appends `value`, whose first `plain` bytes need no escapes.
void append_escaped(std::string& out, std::string_view value, std::size_t plain) {
  enum class Utf8 { unknown, valid, broken };  // whether the text from the first byte over 0x7f on is UTF-8
  Utf8 utf8 = Utf8::unknown;
  const char* p = value.data() + plain;
  const char* const end = value.data() + value.size();
  out.push_back('"');
  out.append(value, 0, plain);
  while (p != end) {
    const char* const from = p;
    p = utf8 == Utf8::valid ? skip_plain<PlainBytes::utf8>(p, end) : skip_plain<PlainBytes::ascii>(p, end);
    out.append(from, static_cast<std::size_t>(p - from));
    if (p == end) break;
    if (static_cast<unsigned char>(*p) < 0x80) {
      append_escape(out, *p++);
    } else if (utf8 == Utf8::unknown) {
      utf8 = find_invalid_utf8(p, end) == end ? Utf8::valid : Utf8::broken;
    } else {
      p = append_sequence(out, p, end);
    }
  }
  out.push_back('"');
}

}  // namespace

// Most strings need no escapes.
void append_string(std::string& out, std::string_view value) {
  make_room(out, value.size() + 2);
  const auto plain = static_cast<std::size_t>(plain_end(value) - value.data());
  if (plain == value.size()) return append_plain(out, value);
  append_escaped(out, value, plain);
}

Raw string(std::string_view value) {
  std::string out;
  append_string(out, value);
  return Raw::trusted(Bytes::adopt(std::move(out)), true);
}

void Writer::before_value() {
  assert(!open_.empty() || out_.empty());                      // one value at the top level
  assert(open_.empty() || open_.back() != '}' || after_key_);  // members have keys
  if (after_key_) {
    after_key_ = false;
  } else if (!open_.empty()) {
    if (has_items_) out_.push_back(',');
  }
  has_items_ = true;
}

Writer& Writer::begin_container(char open) {
  before_value();
  out_.push_back(open);
  open_.push_back(static_cast<char>(open + 2));  // in ASCII, the closing bracket
  has_items_ = false;
  return *this;
}

Writer& Writer::end_container(char close) {
  assert(!open_.empty() && open_.back() == close && !after_key_);
  out_.push_back(close);
  open_.pop_back();
  has_items_ = true;
  return *this;
}

Writer& Writer::begin_object() {
  return begin_container('{');
}
Writer& Writer::end_object() {
  return end_container('}');
}
Writer& Writer::begin_array() {
  return begin_container('[');
}
Writer& Writer::end_array() {
  return end_container(']');
}

Writer& Writer::key(std::string_view name) {
  assert(!open_.empty() && open_.back() == '}' && !after_key_);
  if (has_items_) out_.push_back(',');
  append_string(out_, name);
  out_.push_back(':');
  after_key_ = true;
  return *this;
}

Writer& Writer::insert(std::string_view json, bool one_line) {
  before_value();
  make_room(out_, json.size());
  out_.append(json);
  one_line_ = one_line_ && one_line;
  return *this;
}

Writer& Writer::null() {
  return insert("null", true);
}
Writer& Writer::boolean(bool value) {
  return insert(value ? "true" : "false", true);
}
Writer& Writer::raw(std::string_view json) {
  return insert(json, false);
}
Writer& Writer::raw(const Raw& json) {
  return insert(json.text(), json.is_one_line());
}

Writer& Writer::integer(std::int64_t value) {
  before_value();
  append_number(out_, value);
  return *this;
}

Writer& Writer::unsigned_integer(std::uint64_t value) {
  before_value();
  append_number(out_, value);
  return *this;
}

Writer& Writer::number(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  append_number(out_, value);
  return *this;
}

Writer& Writer::string(std::string_view value) {
  before_value();
  append_string(out_, value);
  return *this;
}

Writer& Writer::raw_with_string(std::string_view before, std::string_view value, std::string_view after) {
  before_value();
  make_room(out_, before.size() + value.size() + after.size() + 2);
  out_.append(before);
  append_string(out_, value);
  out_.append(after);
  return *this;
}

Writer& Writer::reserve(std::size_t bytes) {
  make_room(out_, bytes);
  return *this;
}

Raw Writer::finish() {
  assert(open_.empty() && !out_.empty());
  return Raw::trusted(Bytes::adopt(std::move(out_)), one_line_);
}

}  // namespace fairlead::json
