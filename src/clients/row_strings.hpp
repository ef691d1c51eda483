// Changes strings within the JSON form of a row. Private to the library.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

// Returns the new value of the string at `pointer` (a JSON pointer), or nullopt to keep it.
using StringChange = std::function<std::optional<std::string>(const std::string& pointer, std::string value)>;

// Calls `change` for each string of the document that is not the name of a member, and returns the document
// with the new values. Everything else keeps its bytes.
json::Raw change_strings(json::View document, const StringChange& change);

// Returns `document` after a merge patch (RFC 7396), or unchanged if the patch cannot be applied.
json::Raw merged(const json::Raw& document, const json::Raw& patch);

// Returns the value at a JSON pointer; absent if there is none.
json::View value_at(json::View document, std::string_view pointer);

}  // namespace fairlead::clients
