// References in configuration values: text in which ${…} stands for a value that is kept elsewhere.
//
//   ${NAME}, ${env:NAME}                         a variable of the environment
//   ${NAME:-default}, ${env:NAME:-default}       the same; `default` if it is unset or empty
//   ${secret:NAME}                               an entry of the secret store
//   ${file:/path}                                the content of a file
//   $$                                           a dollar
//
// A `$` in front of anything else is a dollar too. References do not nest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead {

struct Reference {
  enum class Source : std::uint8_t { environment, secret, file };

  Source source = Source::environment;
  std::string name;  // of the variable, the secret or the file
  std::optional<std::string> fallback;

  bool operator==(const Reference&) const = default;
};

// Text as it is, or a reference.
using TextPiece = std::variant<std::string, Reference>;

// Kind validation for a `${` that is not one of the forms above; the error does not name the text's origin.
Result<std::vector<TextPiece>> parse_references(std::string_view text);

// `text` with each reference replaced. Fails as parse_references() and `value_of` do.
Result<std::string> expand_references(std::string_view text,
                                      const std::function<Result<std::string>(const Reference&)>& value_of);

}  // namespace fairlead
