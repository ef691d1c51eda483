// Reads what the JSON Schema of a tool says about one argument. The schema is data of a server: its nesting
// is bounded here, and nothing of it is trusted.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/view.hpp"

namespace fairlead::cli {

// Returns the schema that `schema` refers to by `$ref`, or `schema` itself. Only references into `root` are
// followed.
json::View resolved_schema(json::View root, json::View schema);

// Returns the names of the JSON types that the schema allows ("string", "integer", …); empty: any.
std::set<std::string> allowed_types(json::View root, json::View schema);

// Returns the keys of `properties`.
std::vector<std::string> property_names(json::View root, json::View schema);

// Describes the values that the schema allows, such as `integer, 1 to 7`.
std::string value_description(json::View root, json::View schema);

}  // namespace fairlead::cli
