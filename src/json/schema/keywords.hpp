// The keywords of both dialects, and where in their values further schemas stand.
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
  none,  // of a finding: the schema `false`
};
inline constexpr std::size_t kKeywords = static_cast<std::size_t>(Keyword::none);

// What a keyword's value is made of.
enum class Shape : std::uint8_t {
  plain,           // no schemas
  schema,          // one
  list,            // an array of them
  map,             // an object of them
  schema_or_list,  // items of draft 7
  dependencies,    // an object of schemas and arrays of names
};

struct KeywordInfo {
  std::string_view name;
  Shape shape = Shape::plain;
  bool in_2020_12 = true;
  bool in_draft7 = true;
};

const KeywordInfo& info(Keyword keyword) noexcept;
Shape shape(Keyword keyword, SchemaDialect dialect) noexcept;

// Keyword::none when the dialect has no such keyword.
Keyword find_keyword(std::string_view name, SchemaDialect dialect) noexcept;

}  // namespace fairlead::json::schema
