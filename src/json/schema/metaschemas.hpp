// The metaschemas of both dialects, which schemas may refer to. They are the only documents known beforehand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/schema.hpp"

namespace fairlead::json::schema {

// What a value of $schema selects: with http or https, with or without an empty fragment.
std::optional<SchemaDialect> find_dialect(std::string_view uri);

struct Metaschema {
  std::string uri;        // as it calls itself
  std::string_view text;  // of the document that contains it
};
// `uri` has no fragment.
std::optional<Metaschema> find_metaschema(std::string_view uri);

}  // namespace fairlead::json::schema
