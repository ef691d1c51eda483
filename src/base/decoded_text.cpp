#include "base/decoded_text.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace fairlead {

namespace {

std::optional<unsigned> hex_digits(std::string_view text, std::size_t at, std::size_t count) {
  const std::string_view digits = text.substr(std::min(at, text.size()), count);
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != count || problem != std::errc() || end != digits.data() + count) return std::nullopt;
  return value;
}

// The code unit of the \uXXXX at `at`.
std::optional<unsigned> code_unit(std::string_view text, std::size_t at) {
  if (text.substr(std::min(at, text.size()), 2) != "\\u") return std::nullopt;
  return hex_digits(text, at + 2, 4);
}

std::string utf8(unsigned code) {
  const auto tail = [code](unsigned shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace

DecodedText::DecodedText(std::string_view original) : text_(original), origins_(original.size() + 1) {
  std::iota(origins_.begin(), origins_.end(), std::size_t{0});
}

void DecodedText::append(std::string_view bytes, std::size_t origin) {
  text_ += bytes;
  origins_.insert(origins_.end(), bytes.size(), origin);
}

DecodedText DecodedText::without_json_escapes() const {
  DecodedText decoded;
  decoded.text_.reserve(text_.size());
  decoded.origins_.reserve(origins_.size());
  for (std::size_t at = 0; at < text_.size();) at += decoded.append_json_escape(*this, at);
  decoded.finish(*this);
  return decoded;
}

std::size_t DecodedText::append_json_escape(const DecodedText& from, std::size_t at) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
  const std::string_view text = from.text_;
  const std::size_t origin = from.origins_[at];
  const std::size_t letter =
      text[at] == '\\' && at + 1 < text.size() ? kLetters.find(text[at + 1]) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    append(kBytes.substr(letter, 1), origin);
    return 2;
  }
  const std::optional<unsigned> high = code_unit(text, at);
  if (!high) {
    append(text.substr(at, 1), origin);
    return 1;
  }
  const std::optional<unsigned> low = *high >> 10 == 0x36 ? code_unit(text, at + 6) : std::nullopt;
  const bool pair = low && *low >> 10 == 0x37;
  append(utf8(pair ? 0x10000 + ((*high & 0x3ff) << 10 | (*low & 0x3ff)) : *high), origin);
  return pair ? 12 : 6;
}

DecodedText DecodedText::without_percent_encoding(bool plus_is_space) const {
  DecodedText decoded;
  decoded.text_.reserve(text_.size());
  decoded.origins_.reserve(origins_.size());
  for (std::size_t at = 0; at < text_.size();) {
    const std::optional<unsigned> byte = text_[at] == '%' ? hex_digits(text_, at + 1, 2) : std::nullopt;
    const char plain = plus_is_space && text_[at] == '+' ? ' ' : text_[at];
    const char decoded_byte = byte ? static_cast<char>(*byte) : plain;
    decoded.append({&decoded_byte, 1}, origins_[at]);
    at += byte ? 3 : 1;
  }
  decoded.finish(*this);
  return decoded;
}

}  // namespace fairlead
