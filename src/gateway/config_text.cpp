#include "gateway/config_text.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "base/printable.hpp"
#include "base/read_file.hpp"
#include "gateway/toml_depth.hpp"
#include "gateway/toml_parser.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::size_t kMaxConfigBytes = 1u << 20;
constexpr std::size_t kMaxConfigDepth = 64;
constexpr std::size_t kMaxSyntaxErrorBytes = 500;

// Returns the end of the comment or string that begins at `at`. Returns `at` if none begins there, and npos
// if the comment or string is not terminated.
std::size_t end_of_comment_or_string(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) == "/*") {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? end : end + 2;
  }
  if (text[at] != '"') return at;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return std::string_view::npos;
}

// Replaces comments and trailing commas by spaces. The length stays the same, so that the offsets of errors
// stay correct.
std::string blank_comments_and_trailing_commas(std::string text) {
  std::size_t comma = std::string::npos;  // the last comma, if only white space has followed it
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_comment_or_string(text, at);
    if (end == std::string::npos) break;  // not terminated; the scanner reports the error
    if (end > at && text[at] == '/') {
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
          [](char c) { return c != '\n'; }, ' ');
    } else if ((text[at] == '}' || text[at] == ']') && comma != std::string::npos) {
      text[comma] = ' ';
      comma = std::string::npos;
    } else if (!kWhitespace.contains(text[at])) {
      comma = text[at] == ',' ? at : std::string::npos;
    }
    at = std::max(end, at + 1);
  }
  return text;
}

Error error_at_line(const std::string& name, std::size_t line, std::string_view message) {
  return Error(ErrorKind::validation,
               name + ":" + std::to_string(line) + ": " + shortened(message, kMaxSyntaxErrorBytes));
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, offset), '\n')) + 1;
}

Result<json::Raw> parse_json_config(const std::string& text, const std::string& name) {
  json::Scanner scanner(text);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return json::Raw::parse(value);
  return error_at_line(name, line_at(text, scanner.offset()), scanner.error().message());
}

Result<json::Raw> parse_toml_config(std::string_view text, const std::string& name) {
  if (const auto too_deep = TomlDepth(text).first_deeper_than(kMaxConfigDepth)) {
    return error_at_line(name, line_at(text, *too_deep),
                         "nests deeper than max_config_depth (" + std::to_string(kMaxConfigDepth) + ")");
  }
  try {
    const toml::table table = toml::parse(text, name);
    std::ostringstream json;
    json << toml::json_formatter{table};
    return json::Raw::parse(json.str());
  } catch (const toml::parse_error& problem) {
    return error_at_line(name, problem.source().begin.line, problem.description());
  } catch (const std::logic_error& problem) {
    return Error(ErrorKind::validation, name + ": " + problem.what());
  }
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
      is_client_json ? parse_json_config(blank_comments_and_trailing_commas(std::string(text)), name)
                     : parse_toml_config(text, name);
  if (!json) return Error(ErrorKind::validation, json.error().message());
  return ConfigText{std::move(*json), is_client_json};
}

Result<std::string> read_config_file(const std::string& path) {
  Result<std::string> text = read_regular_file(path, FileLimit{"max_config_bytes", kMaxConfigBytes});
  if (text) return text;
  return Error(ErrorKind::validation, "cannot read `" + path + "`: " + text.error().message());
}

}  // namespace fairlead::gateway
