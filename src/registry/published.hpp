// The member `published` of a server: members of a server.json of the public registry. Private to the
// library.
#pragma once

#include <string_view>

#include "fairlead/json/view.hpp"
#include "json/config_reader.hpp"

namespace fairlead::registry {

// Fails in `row` if the value of `published` would not make a valid server.json.
void check_published(json::ConfigReader& row, json::View published);

// Whether the text names one version: not `latest`, and no range.
bool is_exact_version(std::string_view version) noexcept;

}  // namespace fairlead::registry
