// Where values that must not be seen come from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/references.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::process {

// What a reference stands for.
struct ReferenceValue {
  std::string text;
  bool secret = true;  // to be redacted
};

// Whether every program expects this variable, as PATH and HOME: it is no secret, and not withheld from
// others.
bool is_common_variable(std::string_view name);

// The value of a variable, without a line break at its end that of a file. Kind validation, with a sentence
// that names the variable or the file, if there is none; for a reference to a secret store, always.
Result<ReferenceValue> look_up(const Reference& reference);

// `reference` with its references replaced; what they stand for is added to `secrets`, or all of it when
// there is none in it. Kind spawn when a variable is not set or a file cannot be read.
Result<std::string> resolve_secret(const std::string& name, std::string_view reference,
                                   std::vector<std::string>& secrets);

}  // namespace fairlead::process
