#include "gateway/config_text.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/read_file.hpp"
#include "json/jsonc.hpp"
#include "json/text_position.hpp"
#include "json/toml.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::size_t kMaxConfigBytes = 1u << 20;
constexpr std::size_t kMaxConfigDepth = 64;
constexpr std::size_t kMaxSyntaxErrorBytes = 900;
constexpr std::size_t kMaxTomlErrorBytes = 500;

Error error_at(const std::string& name, json::TextPosition position, std::string_view message) {
  return Error(ErrorKind::validation, name + ":" + std::to_string(position.line) + ":" +
                                          std::to_string(position.column) + ": " +
                                          shortened(message, kMaxSyntaxErrorBytes));
}

Result<json::Raw> parse_json_config(const std::string& text, const std::string& name) {
  json::Scanner scanner(text);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return json::Raw::parse(value);
  return error_at(name, json::position_at(text, scanner.offset()), scanner.error().message());
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhitespace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhitespace) - first + 1);
}

// Returns the part of `text` up to the end of a line.
std::string_view up_to_line(std::string_view text, std::size_t line) {
  std::size_t end = 0;
  for (; line > 0 && end < text.size(); --line) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(0, end);
}

// Returns " (key `args` in [servers.files])" for the TOML at a line that cannot be parsed: the last key at or
// before that line, and the last header of a table. Empty if there is none.
std::string key_near(std::string_view text, std::size_t line) {
  std::string_view key;
  for (std::string_view before = up_to_line(text, line); !before.empty();) {
    before.remove_suffix(before.ends_with('\n') ? 1 : 0);
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view content = trimmed(before.substr(start));
    before = before.substr(0, start);
    const std::size_t equals = content.find('=');
    const std::string_view name = trimmed(content.substr(0, equals));
    if (content.starts_with('[') && content.ends_with(']'))
      return " (" + (key.empty() ? "" : "key `" + shortened(key, 100) + "` ") + "in " +
             shortened(content, 200) + ")";
    const bool has_key = equals != std::string_view::npos && !name.empty() && !name.contains('#');
    if (key.empty() && has_key) key = name;
  }
  return key.empty() ? "" : " (key `" + shortened(key, 100) + "`)";
}

Result<json::Raw> parse_toml_config(std::string_view text, const std::string& name) {
  const auto json = json::toml_to_json(text, json::TomlLimits{kMaxConfigDepth, "max_config_depth"});
  if (json) return *json;
  const json::TomlProblem& problem = json.error();
  if (problem.line == 0) return Error(ErrorKind::validation, name + ": " + problem.message);
  return error_at(name, {problem.line, problem.column},
                  shortened(problem.message, kMaxTomlErrorBytes) + key_near(text, problem.line));
}

}  // namespace

Result<ConfigText> parse_config_text(std::string_view text, const std::string& name) {
  if (text.size() > kMaxConfigBytes) {
    return Error(ErrorKind::validation,
                 name + ": has more than max_config_bytes (" + std::to_string(kMaxConfigBytes) + ")");
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(kWhitespace);
  // TOML begins with neither `{` nor `/`; its comments start with #.
  const bool is_client_json = first != std::string_view::npos && (text[first] == '{' || text[first] == '/');
  std::string source = is_client_json ? json::blank_comments(text) : std::string(text);
  Result<json::Raw> json = is_client_json ? parse_json_config(source, name) : parse_toml_config(source, name);
  if (!json) return Error(ErrorKind::validation, json.error().message());
  return ConfigText{std::move(*json), is_client_json, std::move(source)};
}

std::string ConfigText::location(const std::string& name, std::string_view pointer) const {
  const std::optional<json::TextPosition> position =
      is_client_json ? json::json_position(source, pointer) : json::toml_position(source, pointer);
  if (!position) return name + ": ";
  return name + ":" + std::to_string(position->line) + ":" + std::to_string(position->column) + ": ";
}

Result<std::string> read_config_file(const std::string& path) {
  Result<std::string> text = read_regular_file(path, FileLimit{"max_config_bytes", kMaxConfigBytes});
  if (text) return text;
  return Error(ErrorKind::validation, "cannot read `" + path + "`: " + text.error().message());
}

}  // namespace fairlead::gateway
