// Decimal: an exact JSON number of any size. Schemas compare numbers by their exact value, so 1, 1.0 and
// 10e-1 are equal, 9007199254740993 differs from 9007199254740992, and 0.3 is a multiple of 0.1.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead::json {

class Decimal {
 public:
  // REQUIRES: `number` is a JSON number. (Other text results in an unspecified number.)
  explicit Decimal(std::string_view number);

  bool is_zero() const noexcept { return digits_.empty(); }
  bool is_negative() const noexcept { return negative_; }
  bool is_integer() const noexcept { return exponent_ >= 0; }
  const std::string& digits() const noexcept { return digits_; }
  std::int64_t exponent() const noexcept { return exponent_; }

  // Returns the value if the number is written as an integer of up to 18 digits; otherwise nullopt.
  std::optional<std::int64_t> as_int64() const noexcept { return int64_; }

  std::strong_ordering operator<=>(const Decimal& other) const noexcept;
  bool operator==(const Decimal& other) const noexcept { return (*this <=> other) == 0; }

  // REQUIRES: `divisor` is not zero and has at most kMaxDivisorDigits significant digits.
  bool is_multiple_of(const Decimal& divisor) const noexcept;
  static constexpr std::size_t kMaxDivisorDigits = 18;

 private:
  std::strong_ordering compare_magnitude(const Decimal& other) const noexcept;

  bool negative_ = false;
  std::int64_t exponent_ = 0;  // value = digits * 10^exponent; saturates
  std::string digits_;         // without leading and trailing zeros; empty for zero
  std::optional<std::int64_t> int64_;
};

// Returns the value of a number that is written as an integer in up to 18 characters; otherwise nullopt. Most
// numbers are such integers and need no Decimal.
std::optional<std::int64_t> parse_small_integer(std::string_view number) noexcept;

}  // namespace fairlead::json
