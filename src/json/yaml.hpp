// Converts YAML to JSON with libyaml. Private to the library.
#pragma once

#include <cstddef>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {

struct YamlOptions {
  YamlOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::size_t first_line = 1;  // the number of the first line of the text, for messages
  // The limit max_alias_bytes: aliases and merge keys (`<<`) expand to at most this many bytes of JSON. 0:
  // anchors, aliases and merge keys are rejected.
  std::size_t max_alias_bytes = 0;
};

// Parses one document, which must be a mapping. Plain scalars are resolved by the core schema of YAML 1.2.
// Fails with `validation` and the line of the error. Rejects tags, directives, duplicate keys, keys that are
// not scalars, and nesting of more than 32 levels.
Result<Raw> yaml_to_json(std::string_view text, const YamlOptions& options = YamlOptions());

}  // namespace fairlead::json
