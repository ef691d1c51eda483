// The documentation page at /docs. Private to the layer.
#pragma once

#include "fairlead/http/server.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::admin {

// Returns the page: one HTML document that contains the OpenAPI document, renders it in the browser, and
// needs no other asset. It can be saved as a file.
http::Response docs_page(const json::Raw& openapi);

}  // namespace fairlead::admin
