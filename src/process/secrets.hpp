// Resolves references to secret values: environment variables and files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/references.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::process {

// The value of a reference.
struct ReferenceValue {
  std::string text;
  bool secret = true;  // the text must be redacted
};

// Returns whether this is a variable that every program expects, such as PATH and HOME. Its value is not
// secret and is not withheld from other servers.
bool is_common_variable(std::string_view name);

// Returns the value of a variable, or the content of a file without its last line break. Fails with kind
// `validation` and a message that names the variable or the file if there is no value, and always for a
// reference to a secret store.
Result<ReferenceValue> resolve_reference(const Reference& reference);

// Returns `text` with the references in it replaced by their values, or the content of the file if `text`
// begins with `file:`. Adds the secret ones of these values to `secrets`; if the text contains no reference,
// adds the whole text. `name` is the environment variable that gets the result. Fails with kind `spawn` if a
// variable is not set or a file cannot be read.
Result<std::string> resolve_secret(const std::string& name, std::string_view text,
                                   std::vector<std::string>& secrets);

}  // namespace fairlead::process
