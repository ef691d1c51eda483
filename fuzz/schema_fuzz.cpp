// Validates with arbitrary schemas, values and patterns. An input is a schema, then NUL (or, without one, a
// line break), then a value. Nothing may crash or take long, and two ways to the same result must agree.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/scanner.hpp"
#include "fairlead/json/schema.hpp"
#include "json/regex.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::json;

constexpr std::size_t kPatternStates = 5'000;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_value(const Schema& schema, std::string_view value) {
  const auto first = schema.validate(value);
  const auto several = schema.violations(value, 5);
  if (first && first->limit_reached) return;  // violations() may take slightly more or fewer steps
  if (!several.empty() && several.front().limit_reached) return;
  require(first.has_value() == !several.empty() && several.size() <= 5);
  if (first) require(!first->message.empty() && first->message == several.front().message);
  if (validate(value)) return;

  const std::string small = minify(value);
  const auto again = schema.validate(small);
  if (again && again->limit_reached) return;
  require(again.has_value() == first.has_value());
}

void check_schema(std::string_view text, std::string_view value, SchemaOptions options) {
  const auto schema = Schema::compile(text, options);
  if (!schema) return require(!schema.error().message().empty());
  check_value(*schema, value);
}

// A pattern with a lookahead gets no DFA. Adds one that always holds: both ways of matching must agree.
void check_pattern(std::string_view pattern, std::string_view text) {
  const auto quick = Regex::compile(pattern, kPatternStates);
  if (!quick) return;
  const auto slow = Regex::compile("(?:" + std::string(pattern) + ")(?=)", kPatternStates * 2);
  require(slow.has_value() || slow.error().message().find("too many") != std::string::npos ||
          slow.error().message().find("too deeply") != std::string::npos);
  if (!slow) return;
  std::size_t budget = 1'000'000;
  const auto match = quick->search(text, budget);
  budget = 1'000'000;
  const auto other = slow->search(text, budget);
  require(match == other || match == Regex::Match::undecided || other == Regex::Match::undecided);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Copies of exactly these sizes, so that the sanitizer detects a read past the end.
  const std::uint8_t* const end = data + size;
  const std::uint8_t* split = std::find(data, end, 0);
  if (split == end) split = std::find(data, end, '\n');
  const std::vector<char> left(data, split);
  const std::vector<char> right(split == end ? end : split + 1, end);
  const std::string_view schema(left.data(), left.size());
  const std::string_view value(right.data(), right.size());

  SchemaOptions options;
  options.max_subschemas = 2'000;
  options.max_pattern_states = kPatternStates;
  options.max_validation_steps = 100'000;
  check_schema(schema, value, options);
  options.dialect = SchemaDialect::draft7;
  options.assert_formats = true;
  options.max_validation_depth = 100;
  check_schema(schema, value, options);
  if (schema.size() < 200) check_pattern(schema, value);
  return 0;
}
