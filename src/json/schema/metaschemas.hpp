// The metaschemas of both dialects, which schemas may refer to. They are the only built-in documents.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/schema.hpp"

namespace fairlead::json::schema {

// Returns the dialect that a value of $schema selects, or nullopt if it is unknown. The scheme may be http or
// https, and an empty fragment is ignored.
std::optional<SchemaDialect> find_dialect(std::string_view uri);

struct Metaschema {
  std::string uri;        // its $id
  std::string_view text;  // the document that contains it
};
// Returns nullopt if `uri` names no metaschema. REQUIRES: `uri` has no fragment.
std::optional<Metaschema> find_metaschema(std::string_view uri);

}  // namespace fairlead::json::schema
