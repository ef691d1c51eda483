#include "gateway/names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace fairlead::gateway {

namespace {

constexpr std::string_view kSeparator = "__";
constexpr std::size_t kDigestLength = 10;

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

// FNV-1a, because the digest must be the same on every machine and in every release. It need not be
// cryptographic.
std::string digest(std::string_view server, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&](char c) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  };
  std::ranges::for_each(server, mix);
  mix('\0');
  std::ranges::for_each(name, mix);
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuv";
  std::string text;
  for (std::size_t i = 0; i < kDigestLength; ++i) text += kLetters[hash >> (5 * i) & 31];
  return text;
}

}  // namespace

std::string public_name(std::string_view server, std::string_view name) {
  std::string result = std::string(server) + std::string(kSeparator) + std::string(name);
  bool unchanged = result.size() <= kMaxPublicNameBytes;
  std::ranges::for_each(result, [&](char& c) {
    if (is_plain(c) || c == '_') return;
    c = '_';
    unchanged = false;
  });
  if (unchanged) return result;
  result.resize(std::min(result.size(), kMaxPublicNameBytes - kDigestLength - 1));
  return result + "_" + digest(server, name);
}

}  // namespace fairlead::gateway
