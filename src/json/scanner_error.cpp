// The error messages of Scanner.
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json {

namespace {

std::string describe(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return std::string("unexpected character '") + c + "'";
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("unexpected byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

}  // namespace

std::string Scanner::describe_problem() const {
  switch (problem_) {
    case Problem::none: return "no error";
    case Problem::unexpected: return p_ == end_ ? "text ends too early" : describe(*p_);
    case Problem::too_deep: return "nested deeper than max_depth (" + std::to_string(max_depth_) + ")";
    case Problem::end_in_string: return "text ends inside a string";
    case Problem::end_in_number: return "text ends inside a number";
    case Problem::bad_utf8: return "invalid UTF-8";
    case Problem::bad_escape: return "invalid escape in a string";
    case Problem::control_character: return "unescaped control character in a string";
    case Problem::trailing: return "unexpected text after the value";
  }
  return {};
}

Error Scanner::error() const {
  return Error(ErrorKind::parse, describe_problem() + " at byte " + std::to_string(offset()));
}

}  // namespace fairlead::json
