// Decimal: a JSON number of any size, exactly. Schemas compare numbers as they are written, so 1 and 1.0 and
// 10e-1 are the same, 9007199254740993 is not 9007199254740992, and 0.3 is a multiple of 0.1.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead::json {

class Decimal {
 public:
  // REQUIRES: `number` is a JSON number. (Other text gives some number.)
  explicit Decimal(std::string_view number);

  bool is_zero() const noexcept { return digits_.empty(); }
  bool is_negative() const noexcept { return negative_; }
  bool is_integer() const noexcept { return exponent_ >= 0; }
  const std::string& digits() const noexcept { return digits_; }
  std::int64_t exponent() const noexcept { return exponent_; }

  // Where the value is a plain int64.
  std::optional<std::int64_t> small() const noexcept { return small_; }

  std::strong_ordering operator<=>(const Decimal& other) const noexcept;
  bool operator==(const Decimal& other) const noexcept { return (*this <=> other) == 0; }

  // REQUIRES: not zero, with at most kDivisorDigits digits.
  bool is_multiple_of(const Decimal& divisor) const noexcept;
  static constexpr std::size_t kDivisorDigits = 18;

 private:
  std::strong_ordering compare_size(const Decimal& other) const noexcept;

  bool negative_ = false;
  std::int64_t exponent_ = 0;  // value = digits * 10^exponent; saturates
  std::string digits_;         // without zeros at either end; none for zero
  std::optional<std::int64_t> small_;
};

// The number, where it is written as a plain integer of up to 18 digits: the quick way for most of them.
std::optional<std::int64_t> small_integer(std::string_view number) noexcept;

}  // namespace fairlead::json
