// describe_tool(): the definition of a tool as text for a person.
#pragma once

#include <string>

#include "fairlead/json/view.hpp"

namespace fairlead::cli {

// Returns the name, the description, and each argument with its type, default and description. `target` is
// the address of the server, for the example of a call. Control characters are shown as escapes.
std::string describe_tool(json::View tool, const std::string& target);

}  // namespace fairlead::cli
