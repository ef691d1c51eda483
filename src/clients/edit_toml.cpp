// Editing TOML by whole lines: the lines of a table, by the positions of its nodes.
#include <algorithm>
#include <optional>

#include "clients/edit_text.hpp"
#include "json/toml_parser.hpp"

namespace fairlead::clients::edit {

namespace {

// Lines from 1, both included.
struct LineRange {
  std::size_t first = 0;
  std::size_t last = 0;
  bool is_header_table = false;  // begins with [a.b] or [[a]]
};

std::string toml_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? std::string(key) : toml_string(key);
}

std::string toml_value(json::View value) {
  std::string out;
  if (value.is(json::Type::object)) {
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      out += (out.empty() ? " " : ", ") + toml_key(escaped ? json::unescape(key) : std::string(key)) + " = " +
             toml_value(member);
      return true;
    });
    return "{" + out + (out.empty() ? "}" : " }");
  }
  if (value.is(json::Type::array)) {
    value.each_element([&](json::View element) {
      out += (out.empty() ? "" : ", ") + toml_value(element);
      return true;
    });
    return "[" + out + "]";
  }
  return value.is(json::Type::string) ? toml_string(value.as_string().value_or(""))
                                      : std::string(value.text());
}

// The lines of the members of a table, nested objects as inline tables.
std::string toml_lines(json::View object, std::string_view line_end) {
  std::string out;
  object.each_member([&](std::string_view key, bool escaped, json::View member) {
    if (member.is(json::Type::null)) return true;  // TOML has no null
    out += toml_key(escaped ? json::unescape(key) : std::string(key)) + " = " + toml_value(member);
    out += line_end;
    return true;
  });
  return out;
}

std::string toml_table(const Path& container, bool is_list, std::string_view name, json::View value,
                       std::string_view line_end) {
  std::string header;
  for (const std::string& key : container) header += (header.empty() ? "" : ".") + toml_key(key);
  if (!is_list) header += "." + toml_key(name);
  const std::string brackets = is_list ? "[[" + header + "]]" : "[" + header + "]";
  return brackets + std::string(line_end) + toml_lines(value, line_end);
}

std::size_t last_line_of(const toml::node& node) {
  std::size_t last = std::max(node.source().begin.line, node.source().end.line);
  if (const toml::table* const table = node.as_table()) {
    for (const auto& [key, member] : *table)
      last = std::max({last, static_cast<std::size_t>(key.source().end.line), last_line_of(member)});
  }
  if (const toml::array* const array = node.as_array()) {
    for (const toml::node& element : *array) last = std::max(last, last_line_of(element));
  }
  return last;
}

std::optional<LineRange> range_in_map(const toml::table& parent, std::string_view name) {
  for (const auto& [key, node] : parent) {
    if (key.str() != name) continue;
    const toml::table* const table = node.as_table();
    const bool inline_value = !table || table->is_inline();
    const std::size_t first = inline_value ? key.source().begin.line : node.source().begin.line;
    return LineRange{first, last_line_of(node), !inline_value};
  }
  return std::nullopt;
}

std::optional<LineRange> range_in_list(const toml::array& list, std::string_view name) {
  for (const toml::node& element : list) {
    const toml::table* const table = element.as_table();
    if (!table || (*table)["name"].value<std::string_view>() != name) continue;
    return LineRange{element.source().begin.line, last_line_of(element), !table->is_inline()};
  }
  return std::nullopt;
}

// The lines of the entry; nullopt if there is none.
std::optional<LineRange> entry_range(std::string_view text, const Path& container, bool is_list,
                                     std::string_view name) {
  const toml::table document = toml::parse(text);
  const toml::node* at = &document;
  for (const std::string& key : container) {
    const toml::table* const table = at ? at->as_table() : nullptr;
    at = table ? table->get(key) : nullptr;
  }
  if (!at) return std::nullopt;
  if (is_list) return at->as_array() ? range_in_list(*at->as_array(), name) : std::nullopt;
  return at->as_table() ? range_in_map(*at->as_table(), name) : std::nullopt;
}

Result<std::optional<LineRange>> find_range(std::string_view text, const Path& container, bool is_list,
                                            std::string_view name) {
  try {
    return entry_range(text, container, is_list, name);
  } catch (const std::exception& problem) {
    return Error(ErrorKind::validation, problem.what());
  }
}

std::size_t begin_of_line(std::string_view text, std::size_t line) {
  return line_begin(text, offset_of(text, line - 1, 0));
}

}  // namespace

Result<std::string> put_toml(std::string_view text, const Path& container, bool is_list,
                             std::string_view name, json::View value) {
  const Result<std::optional<LineRange>> found = find_range(text, container, is_list, name);
  if (!found) return found.error();
  const std::string_view line_end = line_end_of(text);
  const std::string table = toml_table(container, is_list, name, value, line_end);
  std::string out(text);
  if (!*found) {
    if (!out.empty() && !out.ends_with('\n')) out += line_end;
    const bool separated = out.empty() || out.ends_with("\n\n") || out.ends_with("\n\r\n");
    return out + (separated ? "" : std::string(line_end)) + table;
  }
  const LineRange range = **found;
  const std::size_t begin = begin_of_line(text, range.first);
  const std::size_t end = next_line(text, begin_of_line(text, range.last));
  if (range.is_header_table) return out.replace(begin, end - begin, table);
  return out.replace(begin, end - begin, toml_key(name) + " = " + toml_value(value) + std::string(line_end));
}

Result<std::string> remove_toml(std::string_view text, const Path& container, bool is_list,
                                std::string_view name) {
  const Result<std::optional<LineRange>> found = find_range(text, container, is_list, name);
  if (!found) return found.error();
  if (!*found) return std::string(text);
  std::size_t begin = begin_of_line(text, (*found)->first);
  const std::size_t end = next_line(text, begin_of_line(text, (*found)->last));
  std::string out(text);
  // The blank line before a table goes with it, unless that would join two other tables.
  const std::size_t before = begin == 0 ? 0 : line_begin(text, begin - 1);
  const bool blank_before =
      begin > 0 && text.substr(before, begin - before).find_first_not_of(" \t\r\n") == std::string_view::npos;
  const bool blank_after = end >= text.size() || text[end] == '\n' || text[end] == '\r';
  if (blank_before && blank_after) begin = before;
  return out.erase(begin, end - begin);
}

}  // namespace fairlead::clients::edit
