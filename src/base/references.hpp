// References in configuration values. ${…} is replaced by a value from the environment, the secret store or
// a file.
//
//   ${NAME}, ${env:NAME}                         a variable of the environment
//   ${NAME:-default}, ${env:NAME:-default}       the same, or `default` if the variable is unset or empty
//   ${secret:NAME}                               an entry of the secret store
//   ${file:/path}                                the content of a file
//   $$                                           a literal $
//
// A `$` before any other character is a literal $. References do not nest.
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
  std::string name;                     // name of the variable or secret, or path of the file
  std::optional<std::string> fallback;  // the `default` of ${NAME:-default}

  bool operator==(const Reference&) const = default;
};

// Literal text or a reference.
using TextPiece = std::variant<std::string, Reference>;

// Splits `text` into literal text and references. Fails with `validation` if a `${` does not begin one of the
// forms above; the message does not name the configuration key.
Result<std::vector<TextPiece>> parse_references(std::string_view text);

// Returns `text` with each reference replaced by its value. Fails if parse_references() or `value_of` fails.
Result<std::string> expand_references(std::string_view text,
                                      const std::function<Result<std::string>(const Reference&)>& value_of);

}  // namespace fairlead
