#include "registry/tokens.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "base/random_bytes.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::registry {

namespace {

constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kRandomCharacters = 43;
constexpr std::size_t kChecksumCharacters = 6;
constexpr std::size_t kShownCharacters = 8;  // of the random part

// CRC-32 of IEEE 802.3, as in zlib.
std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
  }
  return ~crc;
}

std::string checksum_of(std::string_view text) {
  const std::uint32_t crc = crc32(text);
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(crc >> shift);
  return base64url_encode(bytes);
}

}  // namespace

Result<std::string> generate_token() {
  const Result<std::string> random = random_bytes(kRandomBytes);
  if (!random) return random.error();
  const std::string text = base64url_encode(*random);
  return std::string(kTokenPrefix) + text + checksum_of(text);
}

bool is_token_text(std::string_view text) {
  if (!text.starts_with(kTokenPrefix)) return false;
  text.remove_prefix(kTokenPrefix.size());
  if (text.size() != kRandomCharacters + kChecksumCharacters) return false;
  const std::string_view random = text.substr(0, kRandomCharacters);
  return base64url_decode(random).has_value() && text.substr(kRandomCharacters) == checksum_of(random);
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string token_prefix(std::string_view token) {
  return std::string(token.substr(0, kTokenPrefix.size() + kShownCharacters));
}

}  // namespace fairlead::registry
