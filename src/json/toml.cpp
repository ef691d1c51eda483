#include "json/toml.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "fairlead/json/writer.hpp"
#include "json/jsonc.hpp"
#include "json/text_position.hpp"
#include "json/toml_depth.hpp"
#include "json/toml_parser.hpp"

namespace fairlead::json {

namespace {

// TOML's basic strings are JSON strings, except that TOML also requires DEL (0x7f) to be escaped.
void append_toml_string(std::string& out, std::string_view text) {
  std::string json;
  append_string(json, text);
  for (const char c : json) {
    if (c == '\x7f') {
      out += "\\u007F";
    } else {
      out += c;
    }
  }
}

}  // namespace

std::expected<Raw, TomlProblem> toml_to_json(std::string_view text, const TomlLimits& limits) {
  if (const auto too_deep = TomlDepth(text).first_deeper_than(limits.max_depth)) {
    return std::unexpected(TomlProblem{
        line_at(text, *too_deep),
        "nests deeper than " + std::string(limits.depth_name) + " (" + std::to_string(limits.max_depth) + ")",
        position_at(text, *too_deep).column});
  }
  try {
    const toml::table table = toml::parse(text);
    std::ostringstream json;
    json << toml::json_formatter{table};
    Result<Raw> raw = Raw::parse(json.str());
    if (raw) return *raw;
    return std::unexpected(TomlProblem{0, raw.error().message()});
  } catch (const toml::parse_error& problem) {
    const toml::source_position at = problem.source().begin;
    return std::unexpected(TomlProblem{at.line, std::string(problem.description()), at.column});
  } catch (const std::logic_error& problem) {
    return std::unexpected(TomlProblem{0, problem.what()});
  }
}

void append_toml_key(std::string& out, std::string_view key) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (key.empty() || key.find_first_not_of(kBare) != std::string_view::npos)
    return append_toml_string(out, key);
  out += key;
}

void append_toml_value(std::string& out, View value) {
  if (value.is(Type::object)) {
    out += "{";
    std::string_view separator = " ";
    value.each_member([&](std::string_view key, bool escaped, View member) {
      out += std::exchange(separator, ", ");
      append_toml_member(out, escaped ? unescape(key) : std::string(key), member);
      return true;
    });
    out += " }";
  } else if (value.is(Type::array)) {
    out += "[";
    std::string_view separator;
    value.each_element([&](View element) {
      out += std::exchange(separator, ", ");
      append_toml_value(out, element);
      return true;
    });
    out += "]";
  } else if (value.is(Type::string)) {
    append_toml_string(out, *value.as_string());
  } else {
    out += value.text();
  }
}

void append_toml_member(std::string& out, std::string_view key, View value) {
  append_toml_key(out, key);
  out += " = ";
  append_toml_value(out, value);
}

}  // namespace fairlead::json
