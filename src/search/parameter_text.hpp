// Private to the library.
#pragma once

#include <string>

#include "fairlead/json/view.hpp"

namespace fairlead::search {

// Returns the names and descriptions of the parameters in a JSON schema, also those of nested objects,
// separated by spaces: at most `max_bytes`.
std::string parameter_text(json::View schema, std::size_t max_bytes);

}  // namespace fairlead::search
