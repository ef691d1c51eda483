#include "json/schema/keywords.hpp"

#include <algorithm>

namespace fairlead::json::schema {

namespace {

constexpr bool kYes = true;
constexpr bool kNo = false;

// In the order of the enumeration. It is the order of the names, except where the enumerator is named
// differently ("constant", "enumeration").
constexpr std::array<KeywordInfo, kKeywordCount> kKeywordInfo = {{
    {"additionalItems", SubschemaLayout::schema, kNo, kYes},
    {"additionalProperties", SubschemaLayout::schema},
    {"allOf", SubschemaLayout::list},
    {"$anchor", SubschemaLayout::none, kYes, kNo},
    {"anyOf", SubschemaLayout::list},
    {"const"},
    {"contains", SubschemaLayout::schema},
    {"contentSchema", SubschemaLayout::schema, kYes, kNo},
    {"definitions", SubschemaLayout::map},
    {"$defs", SubschemaLayout::map},
    {"dependencies", SubschemaLayout::dependencies, kNo, kYes},
    {"dependentRequired", SubschemaLayout::none, kYes, kNo},
    {"dependentSchemas", SubschemaLayout::map, kYes, kNo},
    {"$dynamicAnchor", SubschemaLayout::none, kYes, kNo},
    {"$dynamicRef", SubschemaLayout::none, kYes, kNo},
    {"else", SubschemaLayout::schema},
    {"enum"},
    {"exclusiveMaximum"},
    {"exclusiveMinimum"},
    {"format"},
    {"$id"},
    {"if", SubschemaLayout::schema},
    {"items", SubschemaLayout::schema},
    {"maxContains", SubschemaLayout::none, kYes, kNo},
    {"maxItems"},
    {"maxLength"},
    {"maxProperties"},
    {"maximum"},
    {"minContains", SubschemaLayout::none, kYes, kNo},
    {"minItems"},
    {"minLength"},
    {"minProperties"},
    {"minimum"},
    {"multipleOf"},
    {"not", SubschemaLayout::schema},
    {"oneOf", SubschemaLayout::list},
    {"pattern"},
    {"patternProperties", SubschemaLayout::map},
    {"prefixItems", SubschemaLayout::list, kYes, kNo},
    {"properties", SubschemaLayout::map},
    {"propertyNames", SubschemaLayout::schema},
    {"$ref"},
    {"required"},
    {"$schema"},
    {"then", SubschemaLayout::schema},
    {"type"},
    {"unevaluatedItems", SubschemaLayout::schema, kYes, kNo},
    {"unevaluatedProperties", SubschemaLayout::schema, kYes, kNo},
    {"uniqueItems"},
}};
static_assert(kKeywordInfo.back().name == "uniqueItems");

constexpr auto kKeywordsByName = [] {
  std::array<Keyword, kKeywordCount> sorted{};
  for (std::size_t i = 0; i < kKeywordCount; ++i) sorted[i] = static_cast<Keyword>(i);
  std::ranges::sort(sorted, {}, [](Keyword k) { return kKeywordInfo[static_cast<std::size_t>(k)].name; });
  return sorted;
}();

}  // namespace

const KeywordInfo& keyword_info(Keyword keyword) noexcept {
  static constexpr KeywordInfo kNoKeyword{""};
  return keyword == Keyword::none ? kNoKeyword : kKeywordInfo[static_cast<std::size_t>(keyword)];
}

SubschemaLayout subschema_layout(Keyword keyword, SchemaDialect dialect) noexcept {
  if (keyword == Keyword::items && dialect == SchemaDialect::draft7) return SubschemaLayout::schema_or_list;
  return keyword_info(keyword).layout;
}

Keyword find_keyword(std::string_view name, SchemaDialect dialect) noexcept {
  const auto found =
      std::ranges::lower_bound(kKeywordsByName, name, {}, [](Keyword k) { return keyword_info(k).name; });
  if (found == kKeywordsByName.end()) return Keyword::none;
  const KeywordInfo& entry = keyword_info(*found);
  const bool known = dialect == SchemaDialect::draft7 ? entry.in_draft7 : entry.in_2020_12;
  return known && entry.name == name ? *found : Keyword::none;
}

}  // namespace fairlead::json::schema
