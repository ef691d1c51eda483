// UriTemplate: RFC 6570, read backwards: does a URI fit a template, and what are then its variables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::mcp {

class UriTemplate {
 public:
  static Result<UriTemplate> parse(std::string_view text);

  // The variables, percent-decoded, when `uri` fits.
  std::optional<std::map<std::string, std::string>> match(std::string_view uri) const;
  std::vector<std::string> variables() const;

 private:
  struct Part {
    std::string literal;  // or, when empty, an expression:
    char op = 0;          // 0 + # . / ; ? &
    std::vector<std::string> names;
  };
  class Matcher;
  std::vector<Part> parts_;
};

}  // namespace fairlead::mcp
