#include "json/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "json/characters.hpp"

namespace fairlead::json {

namespace {

__extension__ using Uint128 = unsigned __int128;

// Larger exponents are reduced to this, so that calculations with exponents do not overflow.
constexpr std::int64_t kMaxExponent = std::numeric_limits<std::int64_t>::max() / 16;

std::int64_t read_exponent(std::string_view text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  for (const char c : text) value = std::min(kMaxExponent, value * 10 + (is_digit(c) ? c - '0' : 0));
  return minus ? -value : value;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
  return static_cast<std::uint64_t>(Uint128{a} * b % modulus);
}

// Returns 10^exponent modulo `modulus`.
std::uint64_t power_of_ten(std::int64_t exponent, std::uint64_t modulus) {
  std::uint64_t result = 1 % modulus;
  for (std::uint64_t square = 10 % modulus; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(result, square, modulus);
    square = multiply(square, square, modulus);
  }
  return result;
}

}  // namespace

std::optional<std::int64_t> parse_small_integer(std::string_view number) noexcept {
  if (number.size() > 18) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, problem] = std::from_chars(number.data(), end, value);
  if (stop != end || problem != std::errc()) return std::nullopt;
  return value;
}

Decimal::Decimal(std::string_view number) : int64_(parse_small_integer(number)) {
  negative_ = number.starts_with('-');
  if (negative_) number.remove_prefix(1);
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  if (e < number.size()) exponent_ = read_exponent(number.substr(e + 1));
  const std::string_view mantissa = number.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  if (point < mantissa.size()) exponent_ -= static_cast<std::int64_t>(mantissa.size() - point - 1);
  digits_.reserve(mantissa.size());
  std::ranges::copy_if(mantissa, std::back_inserter(digits_), is_digit);

  const std::size_t used = digits_.find_last_not_of('0') + 1;
  exponent_ += static_cast<std::int64_t>(digits_.size() - used);
  digits_.resize(used);
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  if (is_zero()) {
    negative_ = false;
    exponent_ = 0;
  }
}

// Compares absolute values: first the power of ten of the first digit, then digit by digit.
std::strong_ordering Decimal::compare_magnitude(const Decimal& other) const noexcept {
  if (is_zero() || other.is_zero()) return !is_zero() <=> !other.is_zero();
  const auto top = [](const Decimal& d) { return d.exponent_ + static_cast<std::int64_t>(d.digits_.size()); };
  if (const auto order = top(*this) <=> top(other); order != 0) return order;
  return digits_.compare(other.digits_) <=> 0;
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const noexcept {
  if (int64_ && other.int64_) return *int64_ <=> *other.int64_;
  if (negative_ != other.negative_)
    return negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  return negative_ ? other.compare_magnitude(*this) : compare_magnitude(other);
}

// The quotient is digits / divisor's digits * 10^(difference of exponents). If the difference is negative,
// the quotient is not an integer: the digits would have to be a multiple of ten, but they have no trailing
// zero.
bool Decimal::is_multiple_of(const Decimal& divisor) const noexcept {
  if (is_zero()) return true;
  const std::int64_t shift = exponent_ - divisor.exponent_;
  if (shift < 0) return false;
  std::uint64_t modulus = 0;
  for (const char c : divisor.digits_) modulus = modulus * 10 + static_cast<std::uint64_t>(c - '0');
  std::uint64_t rest = 0;
  for (const char c : digits_)
    rest = static_cast<std::uint64_t>((Uint128{rest} * 10 + static_cast<std::uint64_t>(c - '0')) % modulus);
  return multiply(rest, power_of_ten(shift, modulus), modulus) == 0;
}

}  // namespace fairlead::json
