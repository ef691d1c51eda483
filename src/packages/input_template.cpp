#include "packages/input_template.hpp"

#include "clients/fill_inputs.hpp"

namespace fairlead::packages {

namespace {

std::vector<std::string> strings_of(json::View array) {
  std::vector<std::string> strings;
  if (!array.is(json::Type::array)) return strings;
  array.each_element([&](json::View element) {
    if (std::optional<std::string> text = element.as_string()) strings.push_back(std::move(*text));
    return true;
  });
  return strings;
}

std::string description_of(json::View input) {
  std::string description = input["description"].as_string().value_or("");
  const std::string example = input["placeholder"].as_string().value_or("");
  if (!example.empty()) description += (description.empty() ? "such as " : ", such as ") + example;
  return description;
}

clients::ImportInput import_input(json::View input) {
  clients::ImportInput read;
  read.description = description_of(input);
  read.default_value = input["default"].as_string().value_or("");
  read.choices = strings_of(input["choices"]);
  read.secret = flag_member(input, "isSecret");
  read.required = flag_member(input, "isRequired");
  read.multiple = flag_member(input, "isRepeated");
  const std::string format = input["format"].as_string().value_or("");
  if (format == "number" || format == "boolean" || format == "filepath") read.format = format;
  return read;
}

InputText asked(RowBuilder& row, clients::ImportInput input, std::string_view hint,
                const std::string& same_as) {
  std::string placeholder = row.add_input(std::move(input), hint, same_as);
  return {placeholder, {placeholder}};
}

}  // namespace

json::View document_member(json::View object, std::string_view key) {
  const json::View member = object[key];
  if (!member.absent()) return member;
  std::string snake;
  for (const char c : key) {
    if (c >= 'A' && c <= 'Z') snake += '_';
    snake += c >= 'A' && c <= 'Z' ? char(c | 32) : c;
  }
  return object[snake];
}

std::string text_member(json::View object, std::string_view key) {
  return document_member(object, key).as_string().value_or("");
}

bool flag_member(json::View object, std::string_view key) {
  return document_member(object, key).as_bool().value_or(false);
}

InputText resolve_input(RowBuilder& row, json::View input, std::string_view hint,
                        const std::string& same_as) {
  const std::optional<std::string> value = input["value"].as_string();
  if (!value) return asked(row, import_input(input), hint, same_as);
  return resolve_template(row, *value, input["variables"], same_as, flag_member(input, "isRequired"));
}

InputText resolve_template(RowBuilder& row, std::string_view text, json::View variables,
                           const std::string& scope, bool required) {
  InputText result;
  while (true) {
    const std::size_t begin = text.find('{');
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) break;
    const std::string name(text.substr(begin + 1, end - begin - 1));
    const json::View variable = variables[name];
    if (!variable.is(json::Type::object)) {
      result.text += clients::literal_text(text.substr(0, begin + 1));
      text.remove_prefix(begin + 1);
      continue;
    }
    result.text += clients::literal_text(text.substr(0, begin));
    text.remove_prefix(end + 1);
    const std::optional<std::string> fixed = variable["value"].as_string();
    if (fixed) {
      result.text += clients::literal_text(*fixed);
      continue;
    }
    clients::ImportInput read = import_input(variable);
    read.required |= required;
    const InputText input =
        asked(row, std::move(read), name, scope.empty() ? std::string() : scope + "{" + name + "}");
    result.text += input.text;
    result.placeholders.insert(result.placeholders.end(), input.placeholders.begin(),
                               input.placeholders.end());
  }
  result.text += clients::literal_text(text);
  return result;
}

}  // namespace fairlead::packages
