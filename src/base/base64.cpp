#include "fairlead/base/base64.hpp"

#include <cstdint>

namespace fairlead {

namespace {

constexpr std::string_view kStandardAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    bit_count += 8;
    while (bit_count >= 6) {
      bit_count -= 6;
      out += alphabet[bits >> bit_count & 63];
    }
  }
  if (bit_count > 0) out += alphabet[bits << (6 - bit_count) & 63];
  return out;
}

std::optional<std::string> decode(std::string_view text, std::string_view alphabet) {
  std::string out;
  std::uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      out += static_cast<char>(bits >> bit_count & 255);
    }
  }
  if (bit_count >= 6 || (bits & ((1u << bit_count) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out = encode(bytes, kStandardAlphabet);
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string base64url_encode(std::string_view bytes) {
  return encode(bytes, kUrlAlphabet);
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::string_view unpadded = text.substr(0, text.find_last_not_of('=') + 1);
  if (text.size() - unpadded.size() > 2) return std::nullopt;
  return decode(unpadded, kStandardAlphabet);
}

std::optional<std::string> base64url_decode(std::string_view text) {
  return decode(text, kUrlAlphabet);
}

}  // namespace fairlead
