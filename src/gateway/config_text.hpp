// ConfigText: the content of a configuration file in any supported format, converted to JSON.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::gateway {

struct ConfigText {
  json::Raw json;
  bool is_client_json = false;  // the file was JSON, the format of desktop clients and editors
  std::string source;           // the text of the file, with spaces instead of the comments of JSON

  // Returns "NAME:LINE:COLUMN: " for the key that a JSON pointer names, or "NAME: " if it has no place.
  std::string location(const std::string& name, std::string_view pointer) const;
};

// Parses JSON if the text begins with `{` or `/`, otherwise TOML. JSON may have comments and trailing commas,
// as editors allow. `name` is the name of the file for error messages. Fails with kind validation; the
// message has the line and column of the error, and the key in TOML, or the limit that the text exceeds:
// max_config_bytes (1 MiB), max_config_depth (64; for JSON Limits::max_depth).
Result<ConfigText> parse_config_text(std::string_view text, const std::string& name);

// Reads a regular file. Fails with kind validation and the message of the operating system. If the file
// exceeds max_config_bytes, the result is truncated, but still long enough for parse_config_text() to reject
// it.
Result<std::string> read_config_file(const std::string& path);

}  // namespace fairlead::gateway
