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

// Walks a schema and its subschemas in one pass over its text; only what is reached through `properties`
// alone may be annotated.
class AnnotationReader {
 public:
  AnnotationReader(json::View schema, const ListLimits& limits)
      : scanner_(json::Scanner::trusted(schema.text())), limits_(limits) {}

  HeaderAnnotations read() {
    visit(Place::root);
    if (made_.problem) made_.params.clear();
    return std::move(made_);
  }

 private:
  enum class Place { root, property, elsewhere };

  std::string shown() const {
    std::string text;
    for (const std::string& key : path_) text += "/" + key;
    return text;
  }

  // Each of these reads one value, or stops at the first problem.
  void skip() {
    std::string_view value;
    scanner_.value(value);
  }

  void visit(Place place) {
    if (scanner_.peek() != json::Type::object) return skip();
    scanner_.begin_object();
    json::View name;
    json::View type;
    const Place below = place == Place::elsewhere ? Place::elsewhere : Place::property;
    std::string_view spelled;
    bool escaped = false;
    while (!made_.problem && scanner_.next_member(spelled, escaped)) {
      const std::string unescaped = escaped ? json::unescape(spelled) : std::string();
      const std::string_view key = escaped ? std::string_view(unescaped) : spelled;
      if (key == kAnnotation) {
        name = value();
      } else if (key == "type") {
        type = value();
      } else if (key == "properties") {
        each_property({}, below);
      } else if (is_one_of(key, {"patternProperties", "dependentSchemas", "dependencies", "$defs",
                                 "definitions"})) {
        each_property(key, Place::elsewhere);
      } else if (is_one_of(key, {"items", "prefixItems", "contains", "additionalItems",
                                 "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
                                 "propertyNames", "oneOf", "anyOf", "allOf", "not", "if", "then", "else"})) {
        one_or_all(key);
      } else {
        skip();
      }
    }
    if (!made_.problem && !name.absent()) check(name, type, place);
  }

  json::View value() {
    std::string_view text;
    scanner_.value(text);
    return json::View(text);
  }

  // An object of schemas.
  void each_property(std::string_view keyword, Place place) {
    if (scanner_.peek() != json::Type::object) return skip();
    if (!keyword.empty()) path_.emplace_back(keyword);
    scanner_.begin_object();
    std::string_view key;
    bool escaped = false;
    while (!made_.problem && scanner_.next_member(key, escaped)) {
      path_.push_back(escaped ? json::unescape(key) : std::string(key));
      visit(place);
      path_.pop_back();
    }
    if (!keyword.empty()) path_.pop_back();
  }

  // A schema, or an array of schemas.
  void one_or_all(std::string_view keyword) {
    path_.emplace_back(keyword);
    if (scanner_.peek() == json::Type::array) {
      scanner_.begin_array();
      while (!made_.problem && scanner_.next_element()) visit(Place::elsewhere);
    } else {
      visit(Place::elsewhere);
    }
    path_.pop_back();
  }

  void check(json::View name, json::View type_view, Place place) {
    const std::string where = shown();
    const std::optional<std::string> text = name.as_string();
    const std::string type = type_view.as_string().value_or("");
    if (place == Place::root) return fail("stands at the root of the schema");
    if (place == Place::elsewhere) return fail("at " + where + " is not reached through `properties` alone");
    if (!text || !is_token(*text)) return fail("at " + where + " is not a header name");
    if (!is_one_of(type, {"string", "integer", "boolean"}))
      return fail("at " + where + " is on a type other than string, integer or boolean");
    std::string lower = *text;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!seen_.insert(lower).second) return fail("at " + where + " names `" + *text + "` a second time");
    if (made_.params.size() == limits_.max_header_params)
      return fail("stands there more often than max_header_params (" +
                  std::to_string(limits_.max_header_params) + ")");
    using Type = HeaderParam::Type;
    const Type kind = type == "string" ? Type::string : type == "integer" ? Type::integer : Type::boolean;
    made_.params.push_back(HeaderParam{path_, "Mcp-Param-" + *text, kind});
  }

  void fail(const std::string& why) { made_.problem = std::string(kAnnotation) + " " + why; }

  json::Scanner scanner_;
  const ListLimits& limits_;
  std::vector<std::string> path_;  // of the schema at hand
  std::set<std::string> seen_;
  HeaderAnnotations made_;
};

}  // namespace

// Hardly any schema has one.
bool may_have_header_annotations(json::View schema) noexcept {
  const std::string_view text = schema.text();
  return text.find("x-mcp-h") != std::string_view::npos ||
         text.find("\\u") != std::string_view::npos;  // the only way to spell a letter with an escape
}

HeaderAnnotations read_header_annotations(json::View input_schema, const ListLimits& limits) {
  if (!may_have_header_annotations(input_schema)) return {};
  return AnnotationReader(input_schema, limits).read();
}

std::optional<std::string> schema_limit_problem(std::string_view which, json::View schema,
                                                const ListLimits& limits) {
  const auto over = [&](std::string_view limit, std::size_t value) {
    return "its `" + std::string(which) + "` is over the limit " + std::string(limit) + " (" +
           std::to_string(value) + ")";
  };
  if (schema.text().size() > limits.max_schema_bytes)
    return over("max_schema_bytes", limits.max_schema_bytes);
  if (!schema.absent() && json::validate(schema.text(), limits.max_schema_depth))
    return over("max_schema_depth", limits.max_schema_depth);
  return std::nullopt;
}

}  // namespace fairlead::mcp
