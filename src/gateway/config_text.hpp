// The text of a config file, whichever kind it is of, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::gateway {

struct ConfigText {
  json::Raw json;
  bool of_a_client = false;  // written as JSON, as other programs have it
};

// JSON, with comments and commas before a closing bracket as editors take it, when it begins like that;
// otherwise TOML. Kind validation, with the line that is wrong, or the limit that the text exceeds:
// max_config_bytes (1 MiB), max_config_depth (64; for JSON Limits::max_depth).
Result<ConfigText> config_text(std::string_view text, const std::string& name);

// Kind validation, with the system's reason. Of a file over max_config_bytes only as much is read as makes
// config_text() refuse it.
Result<std::string> read_config_file(const std::string& path);

}  // namespace fairlead::gateway
