#include "json/text_position.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>

#include "fairlead/json/scanner.hpp"
#include "fairlead/json/view.hpp"
#include "json/toml_parser.hpp"

namespace fairlead::json {

namespace {

// Removes the first token from a JSON pointer and returns it without escapes.
std::string take_token(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::string_view raw = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(raw.size());
  std::string token;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool escape = raw[i] == '~' && i + 1 < raw.size();
    token += !escape ? raw[i] : raw[++i] == '1' ? '/' : '~';
  }
  return token;
}

std::optional<std::size_t> index_of(const std::string& token) {
  std::size_t index = 0;
  const auto [end, problem] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (problem != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return index;
}

// Descends from `view` to the member or element `token` and sets `at` to the begin of the key or element.
View descend(View view, const std::string& token, const char*& at) {
  View found;
  view.each_member([&](std::string_view key, bool escaped, View value) {
    if (!key_equals(key, escaped, token)) return true;
    found = value;
    at = key.data() - 1;  // the quote
    return true;
  });
  const std::optional<std::size_t> index = view.is(Type::array) ? index_of(token) : std::nullopt;
  if (index) found = view[*index];
  if (index && !found.absent()) at = found.text().data();
  return found;
}

const toml::node* descend(const toml::node& node, const std::string& token, toml::source_position& at) {
  const toml::node* found = nullptr;
  if (const toml::table* const table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      if (key.str() != token) continue;
      found = &value;
      at = key.source().begin;
    }
  } else if (const toml::array* const array = node.as_array()) {
    const std::optional<std::size_t> index = index_of(token);
    found = index ? array->get(*index) : nullptr;
    if (found) at = found->source().begin;
  }
  return found;
}

}  // namespace

TextPosition position_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  TextPosition position;
  position.line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
  position.column = 1 + static_cast<std::size_t>(std::ranges::count_if(
                            before.substr(line_start), [](char c) { return (c & 0xc0) != 0x80; }));
  return position;
}

std::optional<TextPosition> json_position(std::string_view text, std::string_view pointer) {
  Scanner scanner(text);
  std::string_view root;
  if (!scanner.value(root)) return std::nullopt;
  const char* at = nullptr;
  for (View view(root); !pointer.empty() && !view.absent();) view = descend(view, take_token(pointer), at);
  if (!at) return std::nullopt;
  return position_at(text, static_cast<std::size_t>(at - text.data()));
}

std::optional<TextPosition> toml_position(std::string_view text, std::string_view pointer) {
  try {
    const toml::table root = toml::parse(text);
    toml::source_position at;
    for (const toml::node* node = &root; !pointer.empty() && node;)
      node = descend(*node, take_token(pointer), at);
    if (at.line == 0) return std::nullopt;
    return TextPosition{at.line, at.column};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace fairlead::json
