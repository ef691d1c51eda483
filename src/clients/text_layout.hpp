// Lays JSON out as people write it: indented JSON, YAML and TOML. Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fairlead/json/view.hpp"

namespace fairlead::clients {

// JSON with two spaces for each level. Arrays and objects without nested ones are on one line if they are
// short.
std::string indented_json(json::View value);

// A YAML document: the members of an object, in blocks; lists of scalars are on one line.
std::string yaml_text(json::View object);

// TOML with one table for each server below the key `container`, or an array of tables if `servers` is an
// array.
std::string toml_text(std::string_view container, json::View servers);

}  // namespace fairlead::clients
