// UriTemplate: matches URIs against a URI template (RFC 6570) and extracts the variables. Templates and URIs
// may both be hostile: matching takes time proportional to the length of the URI times the number of parts of
// the template, and does not recurse.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/protocol/list_limits.hpp"

namespace fairlead::mcp {

// Limits the work of matching one URI against many templates. A step is the examination of one byte of the
// URI for one part of a template. Each template also costs kStepsPerTemplate, for fetching it from memory.
class MatchBudget {
 public:
  static constexpr std::size_t kStepsPerTemplate = 128;

  explicit MatchBudget(std::size_t steps) noexcept : steps_left_(steps) {}

  // Called before each template. Returns false if the budget is exhausted.
  bool spend_on_template() noexcept { return spend(kStepsPerTemplate); }

  // Returns false, for this and all later calls, if fewer than `steps` are left.
  bool spend(std::size_t steps) noexcept {
    exhausted_ = exhausted_ || steps > steps_left_;
    if (!exhausted_) steps_left_ -= steps;
    return !exhausted_;
  }
  bool exhausted() const noexcept { return exhausted_; }
  std::size_t steps_left() const noexcept { return steps_left_; }

 private:
  std::size_t steps_left_;
  bool exhausted_ = false;
};

class UriTemplate {
 public:
  using Variables = std::map<std::string, std::string>;

  // Fails with `validation` if the template is malformed or exceeds `max_uri_bytes` or
  // `max_template_variables`.
  static Result<UriTemplate> parse(std::string_view text, const ListLimits& limits = {});

  // Returns whether `uri` matches the template; false if the budget is exhausted.
  bool matches(std::string_view uri, MatchBudget& budget) const;
  // Returns the percent-decoded variables if `uri` matches. Matching is greedy: each variable, from the first
  // to the last, has the longest value with which the rest still matches. Returns nullopt if `uri` does not
  // match, a value cannot be decoded, or the budget is exhausted.
  std::optional<Variables> extract_variables(std::string_view uri, MatchBudget& budget) const;

  std::vector<std::string> variable_names() const;
  // Returns whether the scheme of the URI is a literal at the start of the template: true for `db://{x}`,
  // false for `{+x}` and `{scheme}://x`, which match URIs of any scheme.
  bool has_literal_scheme() const noexcept { return prefix_.find(':') != std::string::npos; }

 private:
  // A literal, one variable, or a whole query expression.
  struct Part {
    std::string literal;             // not empty if the part is a literal
    std::vector<std::string> names;  // the variable; all variables of a query expression
    char op = 0;                     // 0 + # . / ; ? &
    char lead = 0;                   // the character before the variable's value; 0 if none
    bool ends_at_comma = false;      // another variable of the same expression follows

    bool is_query() const noexcept { return op == '?' || op == '&'; }
  };
  class Matcher;

  // `first` and `last`: the position of the variable in its expression.
  static Part make_variable_part(char op, std::string name, bool first, bool last);
  // Moves the leading and the trailing literal from parts_ to prefix_ and suffix_.
  void extract_literal_ends();
  // Returns the bytes of `uri` between prefix_ and suffix_; nullopt if it does not have both.
  std::optional<std::string_view> middle_of(std::string_view uri) const noexcept;

  std::string prefix_;       // leading literal
  std::string suffix_;       // trailing literal
  std::vector<Part> parts_;  // the parts between prefix_ and suffix_
};

}  // namespace fairlead::mcp
