// Secrets in JSON text and in errors.
#pragma once

#include "fairlead/base/error.hpp"
#include "fairlead/base/redactor.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {

// Returns `value` with the secrets in its strings and keys replaced, and numbers that contain a secret
// replaced by a string; the same bytes if it has none.
Raw redact(const Redactor& redactor, const Raw& value);
// The same, but numbers are kept.
Raw redact_strings(const Redactor& redactor, const Raw& value);

// Returns `error` with the secrets in all its texts replaced.
Error redact(const Redactor& redactor, Error error);

}  // namespace fairlead::json
