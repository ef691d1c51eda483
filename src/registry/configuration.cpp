#include "registry/configuration.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/contains.hpp"
#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "fairlead/base/duration.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/codes.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

constexpr std::size_t kMaxShownKeyBytes = 100;

Error invalid_value(const Definition& definition, std::string_view problem) {
  return invalid_row("`" + std::string(definition.full_key) + "` " + std::string(problem), "/value");
}

std::string between(const Definition& definition, auto&& format) {
  return "must be " + std::string(format(definition.minimum)) + " to " +
         std::string(format(definition.maximum));
}

bool in_range(const Definition& definition, std::int64_t value) {
  return value >= definition.minimum && value <= definition.maximum;
}

Result<json::Raw> validate_boolean(const Definition& definition, json::View value) {
  if (!value.is(json::Type::boolean)) return invalid_value(definition, "must be true or false");
  return json::Raw::trusted(Bytes::copy_of(value.text()), true);
}

Result<json::Raw> validate_integer(const Definition& definition, json::View value) {
  const std::optional<std::int64_t> number = value.is(json::Type::number) ? value.as_int() : std::nullopt;
  const auto format = [](std::int64_t limit) { return std::to_string(limit); };
  if (!number || !in_range(definition, *number))
    return invalid_value(definition, between(definition, format) + ", a whole number");
  return json::Writer().integer(*number).finish();
}

std::optional<std::chrono::milliseconds> duration_of(json::View value) {
  const bool text = value.is(json::Type::string);
  if (!text && !value.is(json::Type::number)) return std::nullopt;
  const Result<std::chrono::milliseconds> read =
      parse_duration(text ? value.as_string(kMaxShownKeyBytes).value_or("") : std::string(value.text()));
  return read ? std::optional(*read) : std::nullopt;
}

Result<json::Raw> validate_duration(const Definition& definition, json::View value) {
  const std::optional<std::chrono::milliseconds> duration = duration_of(value);
  const auto format = [](std::int64_t limit) { return format_duration(std::chrono::milliseconds(limit)); };
  if (!duration || !in_range(definition, duration->count()))
    return invalid_value(definition, between(definition, format) + ", such as \"250ms\", \"30s\" or \"10m\"");
  return json::string(format_duration(*duration));
}

Result<json::Raw> validate_choice(const Definition& definition, json::View value) {
  const std::string word =
      value.is(json::Type::string) ? value.as_string(kMaxShownKeyBytes).value_or("") : "";
  if (contains(definition.choices, word)) return json::string(word);
  std::string words;
  for (const std::string_view known : definition.choices)
    words += (words.empty() ? "" : ", ") + std::string(known);
  return invalid_value(definition, "must be one of " + words);
}

Result<json::Raw> validate_string(const Definition& definition, json::View value) {
  const std::optional<std::string> text = value.is(json::Type::string) ? value.as_string() : std::nullopt;
  if (!text || !in_range(definition, static_cast<std::int64_t>(text->size())) || text->contains('\0'))
    return invalid_value(definition, "must be a text of " + std::to_string(definition.minimum) + " to " +
                                         std::to_string(definition.maximum) + " bytes");
  return json::string(*text);
}

Result<json::Raw> validate_list(const Definition& definition, json::View value) {
  json::Writer out;
  out.begin_array();
  std::int64_t count = 0;
  bool valid = value.is(json::Type::array);
  value.each_element([&](json::View element) {
    const std::optional<std::string> text = element.as_string(kMaxPatternBytes.value);
    valid = valid && text && !text->contains('\0') && ++count <= definition.maximum;
    if (valid) out.string(*text);
    return valid;
  });
  out.end_array();
  if (!valid || count < definition.minimum)
    return invalid_value(definition, "must be a list of " + std::to_string(definition.minimum) + " to " +
                                         std::to_string(definition.maximum) + " texts of at most " +
                                         std::to_string(kMaxPatternBytes.value) + " bytes");
  return out.finish();
}

Error unknown_key(std::string_view full_key) {
  std::vector<std::string> known;
  for (const Definition& definition : definitions()) known.emplace_back(definition.full_key);
  const std::string_view closest = closest_word(full_key, known);
  std::string message = "there is no configuration key `" + shortened(full_key, kMaxShownKeyBytes) + "`";
  if (!closest.empty()) message += " (did you mean `" + std::string(closest) + "`?)";
  return Error(ErrorKind::validation, std::move(message)).with([](ErrorDetail& d) {
    d.failure_code = kNotFound;
  });
}

}  // namespace

std::string_view to_string(ValueType type) noexcept {
  constexpr std::array<std::string_view, 6> kNames = {"boolean", "integer", "duration",
                                                      "string",  "choice",  "string list"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view to_string(Applies applies) noexcept {
  return applies == Applies::at_once ? "at once" : "at restart";
}

Result<json::Raw> validate(const Definition& definition, json::View value) {
  if (value.absent()) return invalid_value(definition, "needs a value");
  switch (definition.type) {
    case ValueType::boolean: return validate_boolean(definition, value);
    case ValueType::integer: return validate_integer(definition, value);
    case ValueType::duration: return validate_duration(definition, value);
    case ValueType::string: return validate_string(definition, value);
    case ValueType::choice: return validate_choice(definition, value);
    case ValueType::string_list: return validate_list(definition, value);
  }
  return invalid_value(definition, "has an unknown type");
}

ConfigurationPtr Configuration::defaults() {
  return std::make_shared<const Configuration>();
}

Result<ConfigurationPtr> Configuration::with(std::string_view full_key, json::View value) const {
  const Definition* const definition = find_definition(full_key);
  if (!definition) return unknown_key(full_key);
  auto changed = std::make_shared<Configuration>(*this);
  if (const auto found = changed->values_.find(full_key); found != changed->values_.end())
    changed->values_.erase(found);
  if (value.absent()) return changed;
  Result<json::Raw> valid = validate(*definition, value);
  if (!valid) return valid.error();
  if (valid->text() != definition->default_json) changed->values_.emplace(full_key, std::move(*valid));
  return changed;
}

bool Configuration::is_default(std::string_view full_key) const {
  return values_.find(full_key) == values_.end();
}

json::Raw Configuration::value(std::string_view full_key) const {
  if (const auto found = values_.find(full_key); found != values_.end()) return found->second;
  const Definition* const definition = find_definition(full_key);
  assert(definition && "undefined configuration key");
  return definition ? json::Raw::trusted(Bytes::constant(definition->default_json), true) : json::Raw::null();
}

bool Configuration::boolean(std::string_view full_key) const {
  return json::View(value(full_key)).as_bool().value_or(false);
}

std::int64_t Configuration::integer(std::string_view full_key) const {
  return json::View(value(full_key)).as_int().value_or(0);
}

std::chrono::milliseconds Configuration::duration(std::string_view full_key) const {
  return duration_of(json::View(value(full_key))).value_or(std::chrono::milliseconds(0));
}

std::string Configuration::string(std::string_view full_key) const {
  return json::View(value(full_key)).as_string().value_or("");
}

std::vector<std::string> Configuration::string_list(std::string_view full_key) const {
  std::vector<std::string> texts;
  const json::Raw list = value(full_key);
  json::View(list).each_element([&](json::View element) {
    texts.push_back(element.as_string().value_or(""));
    return true;
  });
  return texts;
}

namespace {

void write_limit(json::Writer& out, std::string_view key, const Definition& definition, std::int64_t limit) {
  out.key(key);
  if (definition.type == ValueType::duration) {
    out.string(format_duration(std::chrono::milliseconds(limit)));
  } else {
    out.integer(limit);
  }
}

void write_limits(json::Writer& out, const Definition& definition) {
  if (definition.type == ValueType::choice) {
    out.key("choices").begin_array();
    for (const std::string_view word : definition.choices) out.string(word);
    out.end_array();
  } else if (definition.type != ValueType::boolean) {
    write_limit(out, "minimum", definition, definition.minimum);
    write_limit(out, "maximum", definition, definition.maximum);
  }
}

}  // namespace

json::Raw Configuration::to_json(const Definition& definition) const {
  json::Writer out;
  out.begin_object().key("key").string(definition.full_key);
  out.key("category").string(definition.category());
  out.key("type").string(to_string(definition.type));
  out.key("scope").string(definition.scope);
  out.key("value").raw(value(definition.full_key));
  out.key("default").raw(definition.default_json);
  out.key("isDefault").boolean(is_default(definition.full_key));
  write_limits(out, definition);
  out.key("description").string(definition.description);
  out.key("applies").string(to_string(definition.applies));
  out.end_object();
  return out.finish();
}

}  // namespace fairlead::registry
