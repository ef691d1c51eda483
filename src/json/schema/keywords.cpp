#include "json/schema/keywords.hpp"

#include <algorithm>

namespace fairlead::json::schema {

namespace {

constexpr bool kYes = true;
constexpr bool kNo = false;

// In the order of the enumeration, which is that of the names but for "constant", "enumeration" and the like.
constexpr std::array<KeywordInfo, kKeywords> kInfo = {{
    {"additionalItems", Shape::schema, kNo, kYes},
    {"additionalProperties", Shape::schema},
    {"allOf", Shape::list},
    {"$anchor", Shape::plain, kYes, kNo},
    {"anyOf", Shape::list},
    {"const"},
    {"contains", Shape::schema},
    {"contentSchema", Shape::schema, kYes, kNo},
    {"definitions", Shape::map},
    {"$defs", Shape::map},
    {"dependencies", Shape::dependencies, kNo, kYes},
    {"dependentRequired", Shape::plain, kYes, kNo},
    {"dependentSchemas", Shape::map, kYes, kNo},
    {"$dynamicAnchor", Shape::plain, kYes, kNo},
    {"$dynamicRef", Shape::plain, kYes, kNo},
    {"else", Shape::schema},
    {"enum"},
    {"exclusiveMaximum"},
    {"exclusiveMinimum"},
    {"format"},
    {"$id"},
    {"if", Shape::schema},
    {"items", Shape::schema},
    {"maxContains", Shape::plain, kYes, kNo},
    {"maxItems"},
    {"maxLength"},
    {"maxProperties"},
    {"maximum"},
    {"minContains", Shape::plain, kYes, kNo},
    {"minItems"},
    {"minLength"},
    {"minProperties"},
    {"minimum"},
    {"multipleOf"},
    {"not", Shape::schema},
    {"oneOf", Shape::list},
    {"pattern"},
    {"patternProperties", Shape::map},
    {"prefixItems", Shape::list, kYes, kNo},
    {"properties", Shape::map},
    {"propertyNames", Shape::schema},
    {"$ref"},
    {"required"},
    {"$schema"},
    {"then", Shape::schema},
    {"type"},
    {"unevaluatedItems", Shape::schema, kYes, kNo},
    {"unevaluatedProperties", Shape::schema, kYes, kNo},
    {"uniqueItems"},
}};
static_assert(kInfo.back().name == "uniqueItems");

constexpr auto kByName = [] {
  std::array<Keyword, kKeywords> sorted{};
  for (std::size_t i = 0; i < kKeywords; ++i) sorted[i] = static_cast<Keyword>(i);
  std::ranges::sort(sorted, {}, [](Keyword k) { return kInfo[static_cast<std::size_t>(k)].name; });
  return sorted;
}();

}  // namespace

const KeywordInfo& info(Keyword keyword) noexcept {
  static constexpr KeywordInfo kNoKeyword{""};
  return keyword == Keyword::none ? kNoKeyword : kInfo[static_cast<std::size_t>(keyword)];
}

Shape shape(Keyword keyword, SchemaDialect dialect) noexcept {
  if (keyword == Keyword::items && dialect == SchemaDialect::draft7) return Shape::schema_or_list;
  return info(keyword).shape;
}

Keyword find_keyword(std::string_view name, SchemaDialect dialect) noexcept {
  const auto found = std::ranges::lower_bound(kByName, name, {}, [](Keyword k) { return info(k).name; });
  if (found == kByName.end()) return Keyword::none;
  const KeywordInfo& entry = info(*found);
  const bool known = dialect == SchemaDialect::draft7 ? entry.in_draft7 : entry.in_2020_12;
  return known && entry.name == name ? *found : Keyword::none;
}

}  // namespace fairlead::json::schema
