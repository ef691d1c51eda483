#include "cli/call_arguments.hpp"

#include <map>

#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "cli/argument_schema.hpp"
#include "cli/common.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

namespace {

using json::Type;
using json::View;

// The values of a key, as JSON, in the order of the command line.
using Values = std::vector<std::string>;

Error argument_error(const std::string& key, const std::string& problem) {
  return Error(ErrorKind::validation, "argument `" + printable_line(shortened(key, 100)) + "` " + problem);
}

std::string quoted_value(const std::string& value) {
  return "`" + printable_line(shortened(value, 100)) + "`";
}

// Returns `value` as JSON of the type; empty if it is not of that type.
std::string converted(const std::string& value, const std::string& type) {
  if (type == "string") return std::string(json::string(value).text());
  if (type == "boolean" && (value == "yes" || value == "no")) return value == "yes" ? "true" : "false";
  const Result<json::Raw> parsed = json::Raw::parse(value);
  if (!parsed) return {};
  const View view(*parsed);
  const bool fits = (type == "boolean" && view.is(Type::boolean)) || (type == "integer" && view.as_int()) ||
                    (type == "number" && view.is(Type::number)) || (type == "null" && view.is(Type::null)) ||
                    (type == "array" && view.is(Type::array)) || (type == "object" && view.is(Type::object));
  return fits ? std::string(view.text()) : std::string();
}

// Converts a value to the first of the types that it fits. A string is taken literally: `key=5` is "5" where
// the schema allows a string.
Result<std::string> converted_value(const std::string& key, const std::string& value,
                                    const std::set<std::string>& types) {
  if (types.empty() || types.contains("string")) return converted(value, "string");
  std::string names;
  for (const std::string& type : types) {
    std::string result = converted(value, type);
    if (!result.empty()) return result;
    names += (names.empty() ? "" : " or ") + printable_line(type);
  }
  return argument_error(key, "is " + quoted_value(value) + ", but the tool wants " + names);
}

std::string array_of(const Values& elements) {
  std::string text = "[";
  for (const std::string& element : elements) text += (text.size() > 1 ? "," : "") + element;
  return text + "]";
}

Error unknown_argument(const std::string& key, const std::vector<std::string>& known) {
  const std::string_view closest = closest_word(key, known);
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + printable_line(name);
  return argument_error(
             key, "is unknown" +
                      (closest.empty() ? std::string() : " (did you mean `" + std::string(closest) + "`?)"))
      .with([&](ErrorDetail& detail) {
        detail.remedy = (known.empty() ? "The tool takes no arguments."
                                       : "The tool takes: " + shortened(names, 500) + ".") +
                        " Write `" + printable_line(shortened(key, 100)) + ":=JSON` to send it all the same.";
      });
}

// The arguments of a tool, converted by its schema.
class ToolArguments {
 public:
  explicit ToolArguments(View schema) : schema_(schema), known_(property_names(schema, schema)) {}

  void add_json(const std::string& key, const std::string& text) { value_of(key).push_back(text); }

  Result<void> add_text(const std::string& key, const std::string& text) {
    const View property = resolved_schema(schema_, schema_)["properties"][key];
    if (property.absent() && rejects(key)) return unknown_argument(key, known_);
    const std::set<std::string> types = allowed_types(schema_, property);
    const bool is_element = types.contains("array") && !types.contains("string") && !text.starts_with('[');
    const View element = resolved_schema(schema_, property)["items"];
    Result<std::string> value =
        converted_value(key, text, is_element ? allowed_types(schema_, element) : types);
    if (!value) return value.error();
    if (types.contains("array") && (is_element || types.contains("string"))) lists_[key] = is_element;
    value_of(key).push_back(std::move(*value));
    return {};
  }

  Result<json::Raw> finish() const {
    json::Writer out;
    out.begin_object();
    for (const std::string& key : order_) {
      const Values& values = values_.at(key);
      const auto list = lists_.find(key);
      const bool is_list = list != lists_.end() && (list->second || values.size() > 1);
      if (!is_list && values.size() > 1) return argument_error(key, "is given more than once");
      out.key(key).raw(is_list ? array_of(values) : values.front());
    }
    return out.end_object().finish();
  }

 private:
  Values& value_of(const std::string& key) {
    if (!values_.contains(key)) order_.push_back(key);
    return values_[key];
  }

  // An unknown key is an error if the schema excludes it, or if it is probably a misspelling.
  bool rejects(const std::string& key) const {
    const View additional = resolved_schema(schema_, schema_)["additionalProperties"];
    return additional.as_bool() == false || !closest_word(key, known_).empty();
  }

  View schema_;
  std::vector<std::string> known_;
  std::vector<std::string> order_;
  std::map<std::string, Values> values_;
  std::map<std::string, bool> lists_;  // the keys that may be repeated; true: always an array
};

}  // namespace

Result<CallArguments::Word> CallArguments::parse_word(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || text.starts_with(":="))
    return Error(ErrorKind::validation, "argument `" + printable_line(shortened(text, 100)) +
                                            "` is neither key=value nor key:=json, nor a JSON object");
  Word word;
  word.is_json = text[equals - 1] == ':';
  word.key = text.substr(0, word.is_json ? equals - 1 : equals);
  word.value = text.substr(equals + 1);
  if (!word.is_json) return word;
  const Result<json::Raw> parsed = json::Raw::parse(word.value);
  if (!parsed) return argument_error(word.key, "is not JSON: " + parsed.error().message());
  return word;
}

Result<CallArguments> CallArguments::parse(const std::vector<std::string>& words) {
  CallArguments arguments;
  const bool is_json =
      words.size() == 1 && (words.front().starts_with('{') || words.front().find('=') == std::string::npos);
  if (is_json) {
    Result<json::Raw> object = parse_json_argument("ARGS", words.front());
    if (!object) return object.error();
    const View view(*object);
    if (!view.absent() && !view.is(Type::object))
      return Error(ErrorKind::validation, "ARGS is not a JSON object");
    arguments.object_ = std::move(*object);
    return arguments;
  }
  for (const std::string& text : words) {
    Result<Word> word = parse_word(text);
    if (!word) return word.error();
    arguments.words_.push_back(std::move(*word));
  }
  return arguments;
}

bool CallArguments::needs_schema() const {
  for (const Word& word : words_)
    if (!word.is_json) return true;
  return false;
}

Result<json::Raw> CallArguments::for_tool(View schema) const {
  if (words_.empty()) return object_;
  ToolArguments arguments(schema);
  for (const Word& word : words_) {
    if (word.is_json) {
      arguments.add_json(word.key, word.value);
    } else {
      const Result<void> added = arguments.add_text(word.key, word.value);
      if (!added) return added.error();
    }
  }
  return arguments.finish();
}

Result<json::Raw> CallArguments::for_prompt() const {
  if (words_.empty()) return object_;
  ToolArguments arguments{View()};
  for (const Word& word : words_) {
    if (word.is_json && !View(word.value).is(Type::string))
      return argument_error(word.key, "is not a string: the arguments of a prompt are strings");
    arguments.add_json(word.key, word.is_json ? word.value : converted(word.value, "string"));
  }
  return arguments.finish();
}

}  // namespace fairlead::cli
