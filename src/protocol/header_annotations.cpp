#include "fairlead/protocol/header_annotations.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace fairlead::mcp {

namespace {

constexpr std::string_view kAnnotation = "x-mcp-header";

bool is_token(std::string_view text) {  // RFC 9110
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, key) != names.end();
}

// Walks a schema and its subschemas; only what is reached through `properties` alone may be annotated.
class Walk {
 public:
  void root(json::View schema) { visit(schema, {}, Place::root); }
  const std::optional<std::string>& problem() const noexcept { return problem_; }
  std::vector<HeaderParam> params() && { return problem_ ? std::vector<HeaderParam>() : std::move(params_); }

 private:
  enum class Place { root, property, elsewhere };

  using Path = std::vector<std::string>;
  static std::string shown(const Path& path) {
    std::string text;
    for (const std::string& key : path) text += "/" + key;
    return text;
  }
  static Path below(const Path& path, std::string key) {
    Path longer = path;
    longer.push_back(std::move(key));
    return longer;
  }

  void visit(json::View schema, const Path& path, Place place) {
    if (problem_ || !schema.is(json::Type::object)) return;
    if (const json::View name = schema[kAnnotation]; !name.absent()) check(name, schema, path, place);
    const Place place_below = place == Place::elsewhere ? Place::elsewhere : Place::property;
    schema.each_member([&](std::string_view spelled, bool escaped, json::View value) {
      const std::string key = escaped ? json::unescape(spelled) : std::string(spelled);
      if (key == "properties") {
        each(value, path, place_below);
      } else if (is_one_of(key, {"patternProperties", "dependentSchemas", "dependencies", "$defs",
                                 "definitions"})) {
        each(value, below(path, key), Place::elsewhere);
      } else if (is_one_of(key, {"items", "prefixItems", "contains", "additionalItems",
                                 "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
                                 "propertyNames", "oneOf", "anyOf", "allOf", "not", "if", "then", "else"})) {
        visit(value, below(path, key), Place::elsewhere);
        value.each_element([&](json::View one) {
          visit(one, below(path, key), Place::elsewhere);
          return !problem_;
        });
      }
      return !problem_;
    });
  }

  void each(json::View schemas, const Path& path, Place place) {
    schemas.each_member([&](std::string_view spelled, bool escaped, json::View schema) {
      visit(schema, below(path, escaped ? json::unescape(spelled) : std::string(spelled)), place);
      return !problem_;
    });
  }

  void check(json::View name, json::View schema, const Path& path, Place place) {
    const std::string where = shown(path);
    const std::optional<std::string> text = name.as_string();
    const std::string type = schema["type"].as_string().value_or("");
    if (place == Place::root) return fail("stands at the root of the schema");
    if (place == Place::elsewhere) return fail("at " + where + " is not reached through `properties` alone");
    if (!text || !is_token(*text)) return fail("at " + where + " is not a header name");
    if (!is_one_of(type, {"string", "integer", "boolean"}))
      return fail("at " + where + " is on a type other than string, integer or boolean");
    std::string lower = *text;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!seen_.insert(lower).second) return fail("at " + where + " names `" + *text + "` a second time");
    using Type = HeaderParam::Type;
    const Type kind = type == "string" ? Type::string : type == "integer" ? Type::integer : Type::boolean;
    params_.push_back(HeaderParam{path, "Mcp-Param-" + *text, kind});
  }

  void fail(const std::string& why) { problem_ = std::string(kAnnotation) + " " + why; }

  std::set<std::string> seen_;
  std::vector<HeaderParam> params_;
  std::optional<std::string> problem_;
};

// Hardly any schema has one.
bool may_be_annotated(json::View schema) {
  return schema.text().find("x-mcp-h") != std::string_view::npos ||
         schema.text().find('\\') != std::string_view::npos;
}

}  // namespace

std::optional<std::string> header_annotation_problem(json::View input_schema) {
  if (!may_be_annotated(input_schema)) return std::nullopt;
  Walk walk;
  walk.root(input_schema);
  return walk.problem();
}

std::vector<HeaderParam> header_params(json::View input_schema) {
  if (!may_be_annotated(input_schema)) return {};
  Walk walk;
  walk.root(input_schema);
  return std::move(walk).params();
}

}  // namespace fairlead::mcp
