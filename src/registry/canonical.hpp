// Compares the entries of servers' lists by meaning. Private to the library.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/json/view.hpp"

namespace fairlead::registry {

// Returns the value with the members of all objects sorted and without white space: equal for two texts if
// they differ only in the order of members, white space and escapes. Numbers that are integers are equal
// however they are spelled; others only if they are spelled alike.
std::string canonical_json(json::View value);

// Returns whether two entries of a list are equal as far as drift is concerned. `kind` is as in Drift::kind.
// Resources and templates are compared by name, title, description and type only, because their size,
// annotations and metadata change with their content.
bool same_entry(std::string_view kind, json::View a, json::View b);

}  // namespace fairlead::registry
