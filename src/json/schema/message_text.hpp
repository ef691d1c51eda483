// Text for error messages, shared by compiling and validating.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json::schema {

std::string_view type_name(Type type) noexcept;

// Returns `text` as a JSON string with quotes, truncated if it is long.
std::string quoted(std::string_view text);
// Returns the JSON text as it is, truncated if it is long.
std::string shortened_json(std::string_view json);

// Returns "problem (limit)", such as "nested deeper than max_validation_depth (1024)".
std::string limit_message(std::string_view problem, std::size_t limit);

}  // namespace fairlead::json::schema
