// The keywords of both dialects, and where their values contain subschemas.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "fairlead/json/schema.hpp"

namespace fairlead::json::schema {

enum class Keyword : std::uint8_t {
  additional_items,
  additional_properties,
  all_of,
  anchor,
  any_of,
  constant,
  contains,
  content_schema,
  definitions,
  defs,
  dependencies,
  dependent_required,
  dependent_schemas,
  dynamic_anchor,
  dynamic_ref,
  else_branch,
  enumeration,
  exclusive_maximum,
  exclusive_minimum,
  format,
  id,
  if_branch,
  items,
  max_contains,
  max_items,
  max_length,
  max_properties,
  maximum,
  min_contains,
  min_items,
  min_length,
  min_properties,
  minimum,
  multiple_of,
  negation,
  one_of,
  pattern,
  pattern_properties,
  prefix_items,
  properties,
  property_names,
  ref,
  required,
  schema,
  then_branch,
  type,
  unevaluated_items,
  unevaluated_properties,
  unique_items,
  none,  // no keyword; in a KeywordFailure, the schema is `false`
};
inline constexpr std::size_t kKeywordCount = static_cast<std::size_t>(Keyword::none);

// Where the value of a keyword contains subschemas.
enum class SubschemaLayout : std::uint8_t {
  none,            // no subschemas
  schema,          // the value is a schema
  list,            // an array of schemas
  map,             // an object whose values are schemas
  schema_or_list,  // `items` of draft 7
  dependencies,    // an object whose values are schemas or arrays of names
};

struct KeywordInfo {
  std::string_view name;
  SubschemaLayout layout = SubschemaLayout::none;
  bool in_2020_12 = true;  // the dialect 2020-12 defines the keyword
  bool in_draft7 = true;   // draft 7 defines it
};

// Returns the properties of a keyword.
const KeywordInfo& keyword_info(Keyword keyword) noexcept;
SubschemaLayout subschema_layout(Keyword keyword, SchemaDialect dialect) noexcept;

// Returns Keyword::none if the dialect has no such keyword.
Keyword find_keyword(std::string_view name, SchemaDialect dialect) noexcept;

}  // namespace fairlead::json::schema
