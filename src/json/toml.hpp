// Converts TOML to JSON, so that one reader serves both formats. Private to the library.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"

namespace fairlead::json {

struct TomlProblem {
  std::size_t line = 0;  // 0: not known
  std::string message;
  std::size_t column = 0;  // in characters; 0: not known
};

struct TomlLimits {
  std::size_t max_depth = 64;  // nested tables and arrays; each part of a dotted key is a level
  std::string_view depth_name = "max_config_depth";  // for the message
};

// Dates and times become strings.
std::expected<Raw, TomlProblem> toml_to_json(std::string_view text, const TomlLimits& limits);

}  // namespace fairlead::json
