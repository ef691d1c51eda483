// Hints for a TARGET that is not an address, such as `npx` or `localhost:8808`.
#pragma once

#include <string>
#include <vector>

#include "fairlead/base/error.hpp"

namespace fairlead::cli {

// `words` are the arguments that were given as TARGET and after it. Returns a sentence that names the address
// that was probably meant, or an empty string if the first word has the form of an address.
std::string address_hint(const std::vector<std::string>& words);

// Returns `error`, which reports that `target` is not an address, with the hint as its remedy. Returns other
// errors unchanged.
Error with_address_hint(Error error, const std::string& target);

}  // namespace fairlead::cli
