// Converts TOML to JSON, so that one reader serves both formats, and JSON to TOML. Private to the library.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

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

// Append a key, a value, or `key = value`. Objects become inline tables. TOML has no null: REQUIRES: there is
// none in `value`.
void append_toml_key(std::string& out, std::string_view key);
void append_toml_value(std::string& out, View value);
void append_toml_member(std::string& out, std::string_view key, View value);

}  // namespace fairlead::json
