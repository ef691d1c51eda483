#include "fairlead/base/base64.hpp"

#include <cstdint>

namespace fairlead {

namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      out += alphabet[bits >> held & 63];
    }
  }
  if (held > 0) out += alphabet[bits << (6 - held) & 63];
  return out;
}

std::optional<std::string> decode(std::string_view text, std::string_view alphabet) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 255);
    }
  }
  if (held >= 6 || (bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out = encode(bytes, kStandard);
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string base64url_encode(std::string_view bytes) {
  return encode(bytes, kUrl);
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::string_view bare = text.substr(0, text.find_last_not_of('=') + 1);
  if (text.size() - bare.size() > 2) return std::nullopt;
  return decode(bare, kStandard);
}

std::optional<std::string> base64url_decode(std::string_view text) {
  return decode(text, kUrl);
}

}  // namespace fairlead
