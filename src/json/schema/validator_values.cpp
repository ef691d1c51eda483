// Checks `enum` and `const`, and the keywords that constrain numbers and strings.
#include <algorithm>

#include "json/code_points.hpp"
#include "json/schema/validator.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kStatesPerStep = 4;   // pattern states that may be visited for one step of the budget
constexpr std::size_t kStepsPerSearch = 4;  // fixed cost of one search

std::uint32_t saturated_count(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kNone));
}

// A number to compare with bounds. Most numbers and most bounds are small integers: those are compared as
// int64, without a Decimal.
class NumberValue {
 public:
  NumberValue(std::string_view text, bool is_integer_literal) noexcept : text_(text) {
    if (is_integer_literal) int64_ = parse_small_integer(text);
  }

  std::strong_ordering operator<=>(const Decimal& bound) {
    if (int64_ && bound.as_int64()) return *int64_ <=> *bound.as_int64();
    return exact() <=> bound;
  }
  bool is_multiple_of(const Decimal& divisor) {
    if (int64_ && divisor.as_int64()) return *int64_ % *divisor.as_int64() == 0;
    return exact().is_multiple_of(divisor);
  }

 private:
  const Decimal& exact() {
    if (!exact_) exact_.emplace(text_);
    return *exact_;
  }

  std::string_view text_;
  std::optional<std::int64_t> int64_;
  std::optional<Decimal> exact_;
};

}  // namespace

bool Validator::check_allowed_values(NodeId id, const Node& node, TapeIndex value) {
  for (std::uint32_t i = node.first_allowed_values; i != node.last_allowed_values; ++i) {
    const AllowedValues& rules = table_.allowed_values[i];
    if (is_one_of(rules, table_.locations[id].document, value)) continue;
    return stop_reason() == StopReason::none && fail(id, rules.keyword, value);
  }
  return true;
}

bool Validator::is_one_of(const AllowedValues& rules, std::uint32_t document, TapeIndex value) {
  if (tape_.type(value) == Type::string) {
    if (!charge_string(tape_, value, budget_)) return false;
    std::string buffer;
    return std::ranges::binary_search(rules.strings, tape_.string(value, buffer));
  }
  const Tape& schema = table_.documents[document]->tape;
  return std::ranges::any_of(rules.others, [&](TapeIndex allowed) {
    return equal({schema, allowed}, {tape_, value}, budget_);
  });
}

bool Validator::check_number(NodeId id, const NumberRules& rules, TapeIndex value) {
  const std::string_view text = tape_.text(value);
  if (!budget_.spend_bytes(text.size() * 4)) return false;  // parsing digits costs more than other bytes
  NumberValue number(text, !tape_.needs_decoding(value));
  bool ok = true;
  const auto require = [&](bool holds, Keyword keyword) {
    if (!holds && (ok || !should_stop())) ok = fail(id, keyword, value);
  };
  if (rules.minimum) require(number >= *rules.minimum, Keyword::minimum);
  if (rules.exclusive_minimum) require(number > *rules.exclusive_minimum, Keyword::exclusive_minimum);
  if (rules.maximum) require(number <= *rules.maximum, Keyword::maximum);
  if (rules.exclusive_maximum) require(number < *rules.exclusive_maximum, Keyword::exclusive_maximum);
  if (rules.multiple_of) require(number.is_multiple_of(*rules.multiple_of), Keyword::multiple_of);
  return ok;
}

bool Validator::check_string(NodeId id, const StringRules& rules, TapeIndex value) {
  if (!charge_string(tape_, value, budget_)) return false;
  std::string buffer;
  const std::string_view text = tape_.string(value, buffer);
  bool ok = true;
  if (rules.min_length > 0 || rules.max_length != kUnlimited) {
    const std::size_t length = count_code_points(text);
    if (length < rules.min_length) ok = fail(id, Keyword::min_length, value, saturated_count(length));
    if (length > rules.max_length) ok = fail(id, Keyword::max_length, value, saturated_count(length));
  }
  if (!ok && should_stop()) return false;
  if (rules.pattern != kNone && !matches(rules.pattern, text))
    ok = stop_reason() == StopReason::none && fail(id, Keyword::pattern, value);
  if (!ok && should_stop()) return false;
  if (!matches_format(text, rules.format))
    ok = fail(id, Keyword::format, value, static_cast<std::uint32_t>(rules.format));
  return ok;
}

bool Validator::matches(std::uint32_t pattern, std::string_view text) {
  const std::size_t budget = budget_.left() > kNone ? budget_.left() : budget_.left() * kStatesPerStep;
  std::size_t left = budget;
  const Regex::Match match = table_.patterns[pattern].search(text, left);
  budget_.spend(match == Regex::Match::undecided ? budget_.left() + 1
                                                 : (budget - left) / kStatesPerStep + kStepsPerSearch);
  return match == Regex::Match::yes && !budget_.exhausted();
}

}  // namespace fairlead::json::schema
