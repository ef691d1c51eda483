// JSON for people: indented, or as lines of keys and values.
#pragma once

#include <string>

#include "fairlead/json/view.hpp"

namespace fairlead::cli {

// Returns the JSON on lines that are indented by two spaces, without a line feed at the end.
std::string indented_json(json::View value);
// Returns the members of an object as lines "key: value"; nested objects and lists are indented, lists of
// short texts are on one line. Control characters are shown as escapes. Ends with a line feed unless empty.
std::string readable(json::View object);
// Returns a value on one line: a string without quotes, a list of scalars with commas, other values as JSON.
std::string one_line(json::View value);
// Returns the member as text; empty if it is absent or no string.
std::string string_of(json::View object, std::string_view key);

}  // namespace fairlead::cli
