#include "gateway/config_text.hpp"

#include "base/printable.hpp"
#include "base/read_file.hpp"
#include "json/jsonc.hpp"
#include "json/toml.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::size_t kMaxConfigBytes = 1u << 20;
constexpr std::size_t kMaxConfigDepth = 64;
constexpr std::size_t kMaxSyntaxErrorBytes = 500;

Error error_at_line(const std::string& name, std::size_t line, std::string_view message) {
  return Error(ErrorKind::validation,
               name + ":" + std::to_string(line) + ": " + shortened(message, kMaxSyntaxErrorBytes));
}

Result<json::Raw> parse_json_config(const std::string& text, const std::string& name) {
  json::Scanner scanner(text);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return json::Raw::parse(value);
  return error_at_line(name, json::line_at(text, scanner.offset()), scanner.error().message());
}

Result<json::Raw> parse_toml_config(std::string_view text, const std::string& name) {
  const auto json = json::toml_to_json(text, json::TomlLimits{kMaxConfigDepth, "max_config_depth"});
  if (json) return *json;
  const json::TomlProblem& problem = json.error();
  if (problem.line != 0) return error_at_line(name, problem.line, problem.message);
  return Error(ErrorKind::validation, name + ": " + problem.message);
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
  Result<json::Raw> json =
      is_client_json ? parse_json_config(json::blank_comments(text), name) : parse_toml_config(text, name);
  if (!json) return Error(ErrorKind::validation, json.error().message());
  return ConfigText{std::move(*json), is_client_json};
}

Result<std::string> read_config_file(const std::string& path) {
  Result<std::string> text = read_regular_file(path, FileLimit{"max_config_bytes", kMaxConfigBytes});
  if (text) return text;
  return Error(ErrorKind::validation, "cannot read `" + path + "`: " + text.error().message());
}

}  // namespace fairlead::gateway
