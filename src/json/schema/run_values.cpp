// Keywords about values as a whole, numbers and strings.
#include <algorithm>

#include "json/code_points.hpp"
#include "json/schema/run.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kStatesPerStep = 4;  // of patterns
constexpr std::size_t kStepsPerSearch = 4;

std::uint32_t as_detail(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kNone));
}

// Most numbers are small integers, and so are most bounds: those are compared without being taken apart.
class Measured {
 public:
  Measured(std::string_view text, bool plain) noexcept : text_(text) {
    if (plain) small_ = small_integer(text);
  }

  std::strong_ordering operator<=>(const Decimal& bound) {
    if (small_ && bound.small()) return *small_ <=> *bound.small();
    return exact() <=> bound;
  }
  bool is_multiple_of(const Decimal& divisor) {
    if (small_ && divisor.small()) return *small_ % *divisor.small() == 0;
    return exact().is_multiple_of(divisor);
  }

 private:
  const Decimal& exact() {
    if (!exact_) exact_.emplace(text_);
    return *exact_;
  }

  std::string_view text_;
  std::optional<std::int64_t> small_;
  std::optional<Decimal> exact_;
};

}  // namespace

bool Run::check_values(NodeId id, const Node& node, Index at) {
  for (std::uint32_t i = node.first_values; i != node.last_values; ++i) {
    const ValueRules& rules = table_.values[i];
    if (is_one_of(rules, table_.locations[id].document, at)) continue;
    return stopped() == Stop::none && fail(id, rules.keyword, at);
  }
  return true;
}

bool Run::is_one_of(const ValueRules& rules, std::uint32_t document, Index at) {
  if (tape_.type(at) == Type::string) {
    if (!pay_for_string(tape_, at, work_)) return false;
    std::string room;
    return std::ranges::binary_search(rules.strings, tape_.string(at, room));
  }
  const Tape& schema = table_.documents[document]->tape;
  return std::ranges::any_of(rules.others, [&](Index value) {
    return equal({schema, value}, {tape_, at}, work_);
  });
}

bool Run::check_number(NodeId id, const NumberRules& rules, Index at) {
  const std::string_view text = tape_.text(at);
  if (!work_.spend_bytes(text.size() * 4)) return false;  // digits take longer than other bytes
  Measured value(text, !tape_.special(at));
  bool ok = true;
  const auto require = [&](bool holds, Keyword keyword) {
    if (!holds && (ok || !done())) ok = fail(id, keyword, at);
  };
  if (rules.minimum) require(value >= *rules.minimum, Keyword::minimum);
  if (rules.exclusive_minimum) require(value > *rules.exclusive_minimum, Keyword::exclusive_minimum);
  if (rules.maximum) require(value <= *rules.maximum, Keyword::maximum);
  if (rules.exclusive_maximum) require(value < *rules.exclusive_maximum, Keyword::exclusive_maximum);
  if (rules.multiple_of) require(value.is_multiple_of(*rules.multiple_of), Keyword::multiple_of);
  return ok;
}

bool Run::check_string(NodeId id, const StringRules& rules, Index at) {
  if (!pay_for_string(tape_, at, work_)) return false;
  std::string room;
  const std::string_view text = tape_.string(at, room);
  bool ok = true;
  if (rules.min_length > 0 || rules.max_length != kUnlimited) {
    const std::size_t length = count_code_points(text);
    if (length < rules.min_length) ok = fail(id, Keyword::min_length, at, as_detail(length));
    if (length > rules.max_length) ok = fail(id, Keyword::max_length, at, as_detail(length));
  }
  if (!ok && done()) return false;
  if (rules.pattern != kNone && !matches(rules.pattern, text))
    ok = stopped() == Stop::none && fail(id, Keyword::pattern, at);
  if (!ok && done()) return false;
  if (!has_format(text, rules.format))
    ok = fail(id, Keyword::format, at, static_cast<std::uint32_t>(rules.format));
  return ok;
}

bool Run::matches(std::uint32_t pattern, std::string_view text) {
  const std::size_t budget = work_.left() > kNone ? work_.left() : work_.left() * kStatesPerStep;
  std::size_t left = budget;
  const Regex::Match match = table_.patterns[pattern].search(text, left);
  work_.spend(match == Regex::Match::gave_up ? work_.left() + 1
                                             : (budget - left) / kStatesPerStep + kStepsPerSearch);
  return match == Regex::Match::yes && !work_.exhausted();
}

}  // namespace fairlead::json::schema
