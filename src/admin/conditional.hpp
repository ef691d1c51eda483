// Conditional requests (RFC 9110, section 13): entity tags are the versions of rows. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"

namespace fairlead::admin {

// Returns the entity tag of a version, such as "3" with its quotes.
std::string entity_tag(std::int64_t version);

// Evaluates If-Match for a row whose version in memory is `current`. Returns the version that the change
// requires; nullopt if the request has no condition. The change compares it with the row in the database,
// which another gateway may have changed. Fails with `version_mismatch` if the condition is false,
// and with `invalid_header` if the header is malformed.
Result<std::optional<std::int64_t>> required_version(const http::Headers& headers, std::int64_t current);

// Returns whether If-None-Match names `tag`, so that a GET is answered with 304.
bool is_not_modified(const http::Headers& headers, std::string_view tag);

}  // namespace fairlead::admin
