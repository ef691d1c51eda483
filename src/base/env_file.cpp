#include "base/env_file.hpp"

#include <algorithm>
#include <optional>

namespace fairlead {

namespace {

std::string_view trimmed_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

bool is_env_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') && std::ranges::all_of(name, plain);
}

// Returns the end of the quoted text that begins `text`, after its closing quotation mark; npos if it has
// none.
std::size_t end_of_quoted(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text.front()) return i + 1;
    if (text[i] == '\\' && text.front() == '"') ++i;
  }
  return std::string_view::npos;
}

// Replaces the escapes in the content of double quotes.
std::string unescaped(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      value += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'n' || c == 't') {
      value += c == 'n' ? '\n' : '\t';
    } else {
      if (c != '"' && c != '\\' && c != '$') value += '\\';
      value += c;
    }
  }
  return value;
}

// Removes a value from the beginning of `text`: quoted text, which may have several lines, or the rest of the
// line up to a comment.
std::string take_value(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const bool is_quoted = text.starts_with('"') || text.starts_with('\'');
  const std::size_t end = is_quoted ? end_of_quoted(text) : std::string_view::npos;
  if (end != std::string_view::npos) {
    const std::string_view content = text.substr(1, end - 2);
    std::string value = text.front() == '"' ? unescaped(content) : std::string(content);
    text.remove_prefix(end);
    return value;
  }
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t comment = line.starts_with('#') ? 0 : std::min(line.find(" #"), line.find("\t#"));
  return std::string(trimmed_blanks(line.substr(0, comment)));
}

// Removes a line from the beginning of `text`.
void skip_line(std::string_view& text) {
  text.remove_prefix(std::min(std::min(text.find('\n'), text.size() - 1) + 1, text.size()));
}

}  // namespace

std::map<std::string, std::string> parse_env_file(std::string_view text) {
  std::map<std::string, std::string> values;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  for (; !text.empty(); skip_line(text)) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t equals = line.find('=');
    std::string_view name = trimmed_blanks(line.substr(0, equals));
    if (name.starts_with("export ")) name = trimmed_blanks(name.substr(7));
    if (equals == std::string_view::npos || !is_env_name(name)) continue;
    text.remove_prefix(equals + 1);
    values[std::string(name)] = take_value(text);
    if (text.empty()) break;
  }
  return values;
}

}  // namespace fairlead
