#include "json/jsonc.hpp"

#include <algorithm>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kJsoncSpace = " \t\r\n";

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

void blank(std::string& text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i)
    if (text[i] != '\n') text[i] = ' ';
}

}  // namespace

std::string blank_comments(std::string_view original) {
  std::string text(original);
  if (text.starts_with(kByteOrderMark)) blank(text, 0, kByteOrderMark.size());
  std::size_t comma = std::string::npos;  // the last comma, if only white space has followed it
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_comment_or_string(text, at);
    if (end == std::string::npos) break;
    if (end > at && text[at] == '/') {
      blank(text, at, end);
    } else if ((text[at] == '}' || text[at] == ']') && comma != std::string::npos) {
      text[comma] = ' ';
      comma = std::string::npos;
    } else if (!kJsoncSpace.contains(text[at])) {
      comma = text[at] == ',' ? at : std::string::npos;
    }
    at = std::max(end, at + 1);
  }
  return text;
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, offset), '\n')) + 1;
}

Result<std::string> strict_json(std::string_view text, std::size_t max_depth) {
  std::string strict = blank_comments(text);
  Scanner scanner(strict, max_depth);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) return strict;
  const Error problem = scanner.error();
  return Error(ErrorKind::validation,
               "line " + std::to_string(line_at(strict, scanner.offset())) + ": " + problem.message());
}

}  // namespace fairlead::json
