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
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kMaxConfigBytes = 1u << 20;
constexpr std::size_t kMaxConfigDepth = 64;
constexpr std::size_t kMaxSyntaxErrorBytes = 500;

// Where the comment or string that begins at `at` ends; `at` if none begins there, npos if it does not end.
std::size_t end_of_piece(std::string_view text, std::size_t at) {
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

// Blanks for the comments, and for commas with nothing behind them: every byte stays where it is.
std::string plain_json(std::string text) {
  std::size_t comma = std::string::npos;  // the last one, while only blanks have followed it
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_piece(text, at);
    if (end == std::string::npos) break;  // the scanner says where it begins
    if (end > at && text[at] == '/') {
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
          [](char c) { return c != '\n'; }, ' ');
    } else if ((text[at] == '}' || text[at] == ']') && comma != std::string::npos) {
      text[comma] = ' ';
      comma = std::string::npos;
    } else if (!kBlanks.contains(text[at])) {
      comma = text[at] == ',' ? at : std::string::npos;
    }
    at = std::max(end, at + 1);
  }
  return text;
}

Error at_line(const std::string& name, std::size_t line, std::string_view what) {
  return Error(ErrorKind::validation,
               name + ":" + std::to_string(line) + ": " + shortened(what, kMaxSyntaxErrorBytes));
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, offset), '\n')) + 1;
}

Result<json::Raw> read_json(const std::string& text, const std::string& name) {
  json::Scanner scanner(text);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return json::Raw::parse(value);
  return at_line(name, line_at(text, scanner.offset()), scanner.error().message());
}

Result<json::Raw> read_toml(std::string_view text, const std::string& name) {
  if (const auto too_deep = TomlDepth(text).first_beyond(kMaxConfigDepth)) {
    return at_line(name, line_at(text, *too_deep),
                   "nests deeper than max_config_depth (" + std::to_string(kMaxConfigDepth) + ")");
  }
  try {
    const toml::table table = toml::parse(text, name);
    std::ostringstream json;
    json << toml::json_formatter{table};
    return json::Raw::parse(json.str());
  } catch (const toml::parse_error& problem) {
    return at_line(name, problem.source().begin.line, problem.description());
  } catch (const std::logic_error& problem) {
    return Error(ErrorKind::validation, name + ": " + problem.what());
  }
}

}  // namespace

Result<ConfigText> config_text(std::string_view text, const std::string& name) {
  if (text.size() > kMaxConfigBytes) {
    return Error(ErrorKind::validation,
                 name + ": has more than max_config_bytes (" + std::to_string(kMaxConfigBytes) + ")");
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(kBlanks);
  // TOML begins with neither: its comments have a #.
  const bool of_a_client = first != std::string_view::npos && (text[first] == '{' || text[first] == '/');
  Result<json::Raw> json =
      of_a_client ? read_json(plain_json(std::string(text)), name) : read_toml(text, name);
  if (!json) return Error(ErrorKind::validation, json.error().message());
  return ConfigText{std::move(*json), of_a_client};
}

Result<std::string> read_config_file(const std::string& path) {
  Result<std::string> text = read_regular_file(path, FileLimit{"max_config_bytes", kMaxConfigBytes});
  if (text) return text;
  return Error(ErrorKind::validation, "cannot read `" + path + "`: " + text.error().message());
}

}  // namespace fairlead::gateway
