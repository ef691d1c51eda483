// Reads the body of a request to the admin API. Private to the layer.
#pragma once

#include <cstddef>

#include "admin/route.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::admin {

inline constexpr std::size_t kMaxBodyDepth = 64;  // nesting of arrays and objects

// Returns the body as JSON: an object, or absent if the route has no body. Fails with `body_too_large`,
// `unsupported_media_type`, `malformed_json` or `invalid_row`.
Result<json::Raw> read_body(const http::Request& request, Body expected, std::size_t max_body_bytes);

// Fails with `invalid_row` and the pointer of the member if `object` has a member that is not one of `known`,
// or the same member twice.
Result<void> check_members(json::View object, std::initializer_list<std::string_view> known);

// Returns `name` as one segment of a JSON pointer, with its slash.
std::string pointer_to(std::string_view name);

}  // namespace fairlead::admin
