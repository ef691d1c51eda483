#include "base/decoded_text.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace fairlead {

namespace {

std::optional<unsigned> parse_hex_digits(std::string_view text, std::size_t offset, std::size_t count) {
  const std::string_view digits = text.substr(std::min(offset, text.size()), count);
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != count || problem != std::errc() || end != digits.data() + count) return std::nullopt;
  return value;
}

// Returns the code unit of the escape \uXXXX at `offset`; nullopt if there is no such escape.
std::optional<unsigned> parse_code_unit(std::string_view text, std::size_t offset) {
  if (text.substr(std::min(offset, text.size()), 2) != "\\u") return std::nullopt;
  return parse_hex_digits(text, offset + 2, 4);
}

std::string encode_utf8(unsigned code) {
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
  for (std::size_t offset = 0; offset < text_.size();) offset += decoded.append_decoded_json(*this, offset);
  decoded.finish(*this);
  return decoded;
}

std::size_t DecodedText::append_decoded_json(const DecodedText& from, std::size_t offset) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
  const std::string_view text = from.text_;
  const std::size_t origin = from.origins_[offset];
  const std::size_t letter = text[offset] == '\\' && offset + 1 < text.size()
                                 ? kLetters.find(text[offset + 1])
                                 : std::string_view::npos;
  if (letter != std::string_view::npos) {
    append(kBytes.substr(letter, 1), origin);
    return 2;
  }
  const std::optional<unsigned> high = parse_code_unit(text, offset);
  if (!high) {
    append(text.substr(offset, 1), origin);
    return 1;
  }
  const std::optional<unsigned> low = *high >> 10 == 0x36 ? parse_code_unit(text, offset + 6) : std::nullopt;
  const bool pair = low && *low >> 10 == 0x37;
  append(encode_utf8(pair ? 0x10000 + ((*high & 0x3ff) << 10 | (*low & 0x3ff)) : *high), origin);
  return pair ? 12 : 6;
}

DecodedText DecodedText::without_percent_encoding(bool plus_is_space) const {
  DecodedText decoded;
  decoded.text_.reserve(text_.size());
  decoded.origins_.reserve(origins_.size());
  for (std::size_t offset = 0; offset < text_.size();) {
    const std::optional<unsigned> byte =
        text_[offset] == '%' ? parse_hex_digits(text_, offset + 1, 2) : std::nullopt;
    const char plain = plus_is_space && text_[offset] == '+' ? ' ' : text_[offset];
    const char decoded_byte = byte ? static_cast<char>(*byte) : plain;
    decoded.append({&decoded_byte, 1}, origins_[offset]);
    offset += byte ? 3 : 1;
  }
  decoded.finish(*this);
  return decoded;
}

}  // namespace fairlead
