#include "fairlead/protocol/header_annotations.hpp"

#include <algorithm>
#include <set>

#include "base/lower_case.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kAnnotationKey = "x-mcp-header";

bool is_header_token(std::string_view text) {  // RFC 9110
  constexpr std::string_view kPunctuation = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPunctuation.find(c) != std::string_view::npos;
  });
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, key) != names.end();
}

// Reads a schema and its subschemas in one pass over the text. Only schemas that are reached through
// `properties` alone may have an annotation.
class AnnotationReader {
 public:
  AnnotationReader(json::View schema, const ListLimits& limits)
      : scanner_(json::Scanner::trusted(schema.text())), limits_(limits) {}

  HeaderAnnotations read() {
    read_schema(SchemaPosition::root);
    if (annotations_.problem) annotations_.params.clear();
    return std::move(annotations_);
  }

 private:
  // How a schema is reached from the root.
  enum class SchemaPosition {
    root,
    property,  // through `properties` alone
    other,     // through another keyword
  };

  std::string path_text() const {
    std::string text;
    for (const std::string& key : path_) text += "/" + key;
    return text;
  }

  // Each of the following functions reads one JSON value, or stops at the first problem.

  void skip_value() {
    std::string_view value;
    scanner_.value(value);
  }

  void read_schema(SchemaPosition position) {
    if (scanner_.peek() != json::Type::object) return skip_value();
    scanner_.begin_object();
    json::View name;
    json::View type;
    const SchemaPosition child_position =
        position == SchemaPosition::other ? SchemaPosition::other : SchemaPosition::property;
    std::string_view raw_key;
    bool escaped = false;
    while (!annotations_.problem && scanner_.next_member(raw_key, escaped)) {
      const std::string unescaped = escaped ? json::unescape(raw_key) : std::string();
      const std::string_view key = escaped ? std::string_view(unescaped) : raw_key;
      if (key == kAnnotationKey) {
        name = read_value();
      } else if (key == "type") {
        type = read_value();
      } else if (key == "properties") {
        read_schema_map({}, child_position);
      } else if (is_one_of(key, {"patternProperties", "dependentSchemas", "dependencies", "$defs",
                                 "definitions"})) {
        read_schema_map(key, SchemaPosition::other);
      } else if (is_one_of(key, {"items", "prefixItems", "contains", "additionalItems",
                                 "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
                                 "propertyNames", "oneOf", "anyOf", "allOf", "not", "if", "then", "else"})) {
        read_schema_or_array(key);
      } else {
        skip_value();
      }
    }
    if (!annotations_.problem && !name.absent()) add_param(name, type, position);
  }

  json::View read_value() {
    std::string_view text;
    scanner_.value(text);
    return json::View(text);
  }

  // Reads an object whose member values are schemas. `keyword` becomes part of the path, unless it is empty.
  void read_schema_map(std::string_view keyword, SchemaPosition position) {
    if (scanner_.peek() != json::Type::object) return skip_value();
    if (!keyword.empty()) path_.emplace_back(keyword);
    scanner_.begin_object();
    std::string_view key;
    bool escaped = false;
    while (!annotations_.problem && scanner_.next_member(key, escaped)) {
      path_.push_back(escaped ? json::unescape(key) : std::string(key));
      read_schema(position);
      path_.pop_back();
    }
    if (!keyword.empty()) path_.pop_back();
  }

  // Reads a schema or an array of schemas.
  void read_schema_or_array(std::string_view keyword) {
    path_.emplace_back(keyword);
    if (scanner_.peek() == json::Type::array) {
      scanner_.begin_array();
      while (!annotations_.problem && scanner_.next_element()) read_schema(SchemaPosition::other);
    } else {
      read_schema(SchemaPosition::other);
    }
    path_.pop_back();
  }

  void add_param(json::View name, json::View type_view, SchemaPosition position) {
    const std::string where = path_text();
    const std::optional<std::string> text = name.as_string();
    const std::string type = type_view.as_string().value_or("");
    if (position == SchemaPosition::root) return fail("is at the root of the schema");
    if (position == SchemaPosition::other)
      return fail("at " + where + " is not reached through `properties` alone");
    if (!text || !is_header_token(*text)) return fail("at " + where + " is not a header name");
    if (!is_one_of(type, {"string", "integer", "boolean"}))
      return fail("at " + where + " is on a type other than string, integer or boolean");
    if (!seen_.insert(lower_case(*text)).second)
      return fail("at " + where + " names `" + *text + "` a second time");
    if (annotations_.params.size() == limits_.max_header_params)
      return fail("occurs more often than max_header_params (" + std::to_string(limits_.max_header_params) +
                  ")");
    using Type = HeaderParam::Type;
    const Type kind = type == "string" ? Type::string : type == "integer" ? Type::integer : Type::boolean;
    annotations_.params.push_back(HeaderParam{path_, "Mcp-Param-" + *text, kind});
  }

  void fail(const std::string& reason) { annotations_.problem = std::string(kAnnotationKey) + " " + reason; }

  json::Scanner scanner_;
  const ListLimits& limits_;
  std::vector<std::string> path_;  // of the current schema
  std::set<std::string> seen_;
  HeaderAnnotations annotations_;
};

}  // namespace

// Most schemas have no annotation, so a substring search avoids reading them.
bool may_have_header_annotations(json::View schema) noexcept {
  const std::string_view text = schema.text();
  return text.find("x-mcp-h") != std::string_view::npos ||
         text.find("\\u") != std::string_view::npos;  // the only escape that can encode a letter
}

HeaderAnnotations read_header_annotations(json::View input_schema, const ListLimits& limits) {
  if (!may_have_header_annotations(input_schema)) return {};
  return AnnotationReader(input_schema, limits).read();
}

std::optional<std::string> schema_limit_problem(std::string_view schema_name, json::View schema,
                                                const ListLimits& limits) {
  const auto over = [&](std::string_view limit, std::size_t value) {
    return "its `" + std::string(schema_name) + "` is over the limit " + std::string(limit) + " (" +
           std::to_string(value) + ")";
  };
  if (schema.text().size() > limits.max_schema_bytes)
    return over("max_schema_bytes", limits.max_schema_bytes);
  if (!schema.absent() && json::validate(schema.text(), limits.max_schema_depth))
    return over("max_schema_depth", limits.max_schema_depth);
  return std::nullopt;
}

}  // namespace fairlead::mcp
