// Redacts secrets in JSON text and in errors.
#pragma once

#include "fairlead/base/error.hpp"
#include "fairlead/base/redactor.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {

// Returns `value` with the secrets in its strings and keys replaced. A number that contains a secret is
// replaced by a string. If there are no secrets, the result has the same bytes.
Raw redact(const Redactor& redactor, const Raw& value);
// The same, but numbers are kept.
Raw redact_strings(const Redactor& redactor, const Raw& value);

// Returns `error` with the secrets in all its texts replaced.
Error redact(const Redactor& redactor, Error error);

}  // namespace fairlead::json
