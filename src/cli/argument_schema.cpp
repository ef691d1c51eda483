#include "cli/argument_schema.hpp"

#include <charconv>
#include <vector>

#include "base/printable.hpp"

namespace fairlead::cli {

namespace {

using json::Type;
using json::View;

constexpr int kMaxReferences = 8;
constexpr int kMaxTypeDepth = 6;
constexpr std::size_t kMaxShownValues = 20;
constexpr std::size_t kMaxShownBytes = 200;

std::string unescaped_pointer_token(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    out += !escape ? token[i] : token[++i] == '1' ? '/' : '~';
  }
  return out;
}

View at_pointer(View view, std::string_view pointer) {
  while (!pointer.empty() && !view.absent()) {
    pointer.remove_prefix(1);  // the slash
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    std::size_t index = 0;
    const bool number = std::from_chars(token.data(), token.data() + token.size(), index).ec == std::errc();
    view = view.is(Type::array) && number ? view[index] : view[unescaped_pointer_token(token)];
  }
  return view;
}

std::string_view type_name(View value) {
  switch (value.type()) {
    case Type::null: return "null";
    case Type::boolean: return "boolean";
    case Type::number: return value.as_int() ? "integer" : "number";
    case Type::string: return "string";
    case Type::array: return "array";
    case Type::object: return "object";
  }
  return "null";
}

void collect_types(View root, View unresolved, int depth, std::set<std::string>& types) {
  const View schema = resolved_schema(root, unresolved);
  if (depth == 0 || !schema.is(Type::object)) return;
  const View type = schema["type"];
  if (const auto name = type.as_string()) types.insert(*name);
  type.each_element([&](View name) {
    types.insert(name.as_string().value_or(""));
    return true;
  });
  if (type.absent() && !schema["const"].absent()) types.emplace(type_name(schema["const"]));
  if (type.absent()) {
    schema["enum"].each_element([&](View value) {
      types.emplace(type_name(value));
      return true;
    });
  }
  for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
    schema[key].each_element([&](View part) {
      collect_types(root, part, depth - 1, types);
      return true;
    });
  }
}

std::string shown_value(View value) {
  return shortened(printable_json(value.text()), kMaxShownBytes);
}

std::string joined(const std::vector<std::string>& words, const std::string& last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? last_separator : ", ") + words[i];
  return text;
}

std::string enum_description(View values) {
  std::vector<std::string> shown;
  values.each_element([&](View value) {
    shown.push_back(shown.size() < kMaxShownValues ? shown_value(value) : "…");
    return shown.size() <= kMaxShownValues;
  });
  return joined(shown, " or ");
}

std::string range_description(View schema, const char* least, const char* most, const std::string& unit) {
  const View low = schema[least];
  const View high = schema[most];
  if (low.absent() && high.absent()) return {};
  if (high.absent()) return ", at least " + shown_value(low) + unit;
  if (low.absent()) return ", at most " + shown_value(high) + unit;
  return ", " + shown_value(low) + " to " + shown_value(high) + unit;
}

std::string types_description(View root, View schema, int depth);

std::string array_description(View root, View schema, int depth) {
  const View items = schema["items"];
  return items.is(Type::object) && depth > 0 ? "array of " + types_description(root, items, depth - 1)
                                             : "array";
}

std::string types_description(View root, View unresolved, int depth) {
  const View schema = resolved_schema(root, unresolved);
  if (!schema["const"].absent()) return shown_value(schema["const"]);
  if (schema["enum"].is(Type::array)) return enum_description(schema["enum"]);
  std::vector<std::string> names;
  for (const std::string& type : allowed_types(root, schema))
    names.push_back(type == "array" ? array_description(root, schema, depth) : printable_line(type));
  return names.empty() ? "any" : joined(names, " or ");
}

}  // namespace

View resolved_schema(View root, View schema) {
  for (int i = 0; i < kMaxReferences; ++i) {
    const std::optional<std::string> reference = schema["$ref"].as_string();
    if (!reference || !reference->starts_with('#')) return schema;
    const std::string_view pointer = std::string_view(*reference).substr(1);
    if (!pointer.empty() && !pointer.starts_with('/')) return schema;
    schema = at_pointer(root, pointer);
  }
  return View();
}

std::set<std::string> allowed_types(View root, View schema) {
  std::set<std::string> types;
  collect_types(root, schema, kMaxTypeDepth, types);
  return types;
}

std::vector<std::string> property_names(View root, View schema) {
  std::vector<std::string> names;
  resolved_schema(root, schema)["properties"].each_member([&](std::string_view key, bool escaped, View) {
    names.push_back(escaped ? json::unescape(key) : std::string(key));
    return true;
  });
  return names;
}

std::string value_description(View root, View unresolved) {
  const View schema = resolved_schema(root, unresolved);
  std::string text = types_description(root, schema, 2);
  if (const auto format = schema["format"].as_string())
    text += " (" + printable_line(shortened(*format, kMaxShownBytes)) + ")";
  text += range_description(schema, "minimum", "maximum", "");
  text += range_description(schema, "minLength", "maxLength", " characters");
  text += range_description(schema, "minItems", "maxItems", " elements");
  if (const auto pattern = schema["pattern"].as_string())
    text += ", pattern " + printable_line(shortened(*pattern, kMaxShownBytes));
  return text;
}

}  // namespace fairlead::cli
