// Words for messages, the same when compiling and when validating.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json::schema {

std::string_view name_of(Type type) noexcept;

// In quotes, escaped as JSON, cut where it is long.
std::string quoted(std::string_view text);
// JSON as it is, cut where it is long.
std::string shortened(std::string_view json);

// "what (limit)"
std::string limit_message(std::string_view what, std::size_t limit);

}  // namespace fairlead::json::schema
