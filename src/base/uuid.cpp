#include "base/uuid.hpp"

#include "base/random_bytes.hpp"

namespace fairlead {

namespace {

constexpr unsigned kMaxCounter = 0xfff;
constexpr unsigned kMaxInitialCounter = 0x7ff;  // leaves room to count within the millisecond

std::string with_dashes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<std::string> UuidGenerator::next(Time now) {
  Result<std::string> bytes = random_bytes(16);
  if (!bytes) return bytes;
  const std::int64_t ms = now.time_since_epoch().count();
  if (ms > last_ms_) {
    last_ms_ = ms;
    counter_ = static_cast<unsigned char>((*bytes)[6]) * 8U & kMaxInitialCounter;
  } else if (counter_ == kMaxCounter) {
    ++last_ms_;
    counter_ = 0;
  } else {
    ++counter_;
  }
  for (std::size_t i = 0; i < 6; ++i) (*bytes)[i] = static_cast<char>(last_ms_ >> (40 - 8 * i));
  (*bytes)[6] = static_cast<char>(0x70 | counter_ >> 8);
  (*bytes)[7] = static_cast<char>(counter_ & 0xff);
  (*bytes)[8] = static_cast<char>((static_cast<unsigned char>((*bytes)[8]) & 0x3f) | 0x80);
  return with_dashes(*bytes);
}

}  // namespace fairlead
