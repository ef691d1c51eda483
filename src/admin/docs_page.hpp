// The documentation page at /docs. Private to the layer.
#pragma once

#include "fairlead/http/server.hpp"

namespace fairlead::admin {

// Returns the page: one HTML document that renders /openapi.json in the browser and needs no other asset.
http::Response docs_page();

}  // namespace fairlead::admin
