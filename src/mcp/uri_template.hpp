// UriTemplate: RFC 6570 in reverse: decides whether a URI fits a template, and extracts the variables.
// Templates and URIs may both be hostile: matching takes time proportional to the URI's length times the
// number of the template's parts, and needs no stack.
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

// The work that matching one URI against many templates may still cause. A step is one byte of the URI
// examined for one part of a template; fetching a template from memory takes as long as kStepsPerTemplate.
class MatchBudget {
 public:
  static constexpr std::size_t kStepsPerTemplate = 128;

  explicit MatchBudget(std::size_t steps) noexcept : left_(steps) {}

  // To be called before each template: false if no more may be compared.
  bool spend_on_template() noexcept { return spend(kStepsPerTemplate); }

  // False, now and from then on, if fewer than `steps` are left.
  bool spend(std::size_t steps) noexcept {
    exhausted_ = exhausted_ || steps > left_;
    if (!exhausted_) left_ -= steps;
    return !exhausted_;
  }
  bool exhausted() const noexcept { return exhausted_; }
  std::size_t left() const noexcept { return left_; }

 private:
  std::size_t left_;
  bool exhausted_ = false;
};

class UriTemplate {
 public:
  using Variables = std::map<std::string, std::string>;

  // Fails with `validation` for a malformed template, and for one over `max_uri_bytes` or
  // `max_template_variables`.
  static Result<UriTemplate> parse(std::string_view text, const ListLimits& limits = {});

  // Whether `uri` fits. False if the budget is exhausted.
  bool fits(std::string_view uri, MatchBudget& budget) const;
  // The variables, percent-decoded, if `uri` fits. Each has the longest value that lets the rest fit, the
  // first variable first. nullopt if a value cannot be decoded, or the budget is exhausted.
  std::optional<Variables> match(std::string_view uri, MatchBudget& budget) const;

  std::vector<std::string> variables() const;
  // Whether the literal text that it begins with has the scheme of a URI: `db://{x}` does, `{+x}` and
  // `{scheme}://x` match URIs of any scheme.
  bool names_scheme() const noexcept { return prefix_.find(':') != std::string::npos; }

 private:
  // A literal, one variable, or a whole query expression.
  struct Part {
    std::string literal;             // if not empty, a literal
    std::vector<std::string> names;  // one; for a query expression all that may occur
    char op = 0;                     // 0 + # . / ; ? &
    char lead = 0;                   // the character in front of the variable's value; 0: none
    bool ends_at_comma = false;      // another variable of the same expression follows

    bool is_query() const noexcept { return op == '?' || op == '&'; }
  };
  class Matcher;

  static Part variable(char op, std::string name, bool first, bool last);
  void take_literal_ends();
  // The bytes of `uri` between the literals at both ends, if it has these.
  std::optional<std::string_view> middle_of(std::string_view uri) const noexcept;

  std::string prefix_;  // the literal it begins with
  std::string suffix_;  // and ends with
  std::vector<Part> parts_;
};

}  // namespace fairlead::mcp
