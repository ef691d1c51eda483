// The OpenAPI 3.1 document of the admin API, generated from the table of routes. Private to the layer.
#pragma once

#include <string_view>

#include "admin/route.hpp"

namespace fairlead::admin {

// Returns the document. `version` is the version of the program.
json::Raw openapi_document(const RouteTable& routes, std::string_view version);

}  // namespace fairlead::admin
