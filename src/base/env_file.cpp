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

// Reads the content of a string in double quotes up to the closing one.
std::string unquoted(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size() && text[i] != '"'; ++i) {
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

std::string value_in(std::string_view text) {
  if (text.starts_with('"')) return unquoted(text.substr(1));
  if (text.starts_with('\'')) return std::string(text.substr(1, text.find('\'', 1) - 1));
  const std::size_t comment = text.starts_with('#') ? 0 : std::min(text.find(" #"), text.find("\t#"));
  return std::string(trimmed_blanks(text.substr(0, comment)));
}

}  // namespace

std::map<std::string, std::string> parse_env_file(std::string_view text) {
  std::map<std::string, std::string> values;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("export ")) line = trimmed_blanks(line.substr(7));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view name = trimmed_blanks(line.substr(0, equals));
    if (is_env_name(name)) values[std::string(name)] = value_in(trimmed_blanks(line.substr(equals + 1)));
  }
  return values;
}

}  // namespace fairlead
