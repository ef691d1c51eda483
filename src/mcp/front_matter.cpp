#include "mcp/front_matter.hpp"

#include <algorithm>

#include "json/utf8.hpp"
#include "json/yaml.hpp"

namespace fairlead::mcp {

namespace {

Error front_matter_error(const std::string& reason) {
  return Error(ErrorKind::validation, "front matter: " + reason);
}

// Removes the first line of `text` and returns it without trailing white space.
std::string_view remove_first_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view() : line.substr(0, last + 1);
}

// Returns whether `text` is UTF-8 without control characters other than white space.
bool is_text(std::string_view text) {
  const auto forbidden = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  };
  return json::find_invalid_utf8(text.data(), text.data() + text.size()) == text.data() + text.size() &&
         std::none_of(text.begin(), text.end(), forbidden);
}

bool same_number(json::View a, json::View b) {
  const std::optional<std::int64_t> left = a.as_int();
  const std::optional<std::int64_t> right = b.as_int();
  if (left && right) return *left == *right;
  return a.text() == b.text() || (a.as_double() && a.as_double() == b.as_double());
}

bool same_object(json::View a, json::View b) {
  bool same = a.size() == b.size();
  a.each_member([&](std::string_view key, bool escaped, json::View value) {
    const json::View other = b[escaped ? json::unescape(key) : std::string(key)];
    same = same && !other.absent() && same_value(value, other);
    return same;
  });
  return same;
}

bool same_array(json::View a, json::View b) {
  if (a.size() != b.size()) return false;
  std::vector<json::View> others;
  b.each_element([&](json::View element) {
    others.push_back(element);
    return true;
  });
  bool same = true;
  std::size_t index = 0;
  a.each_element([&](json::View element) {
    same = same_value(element, others[index++]);
    return same;
  });
  return same;
}

}  // namespace

Result<json::Raw> read_front_matter(std::string_view markdown) {
  if (markdown.starts_with("\xef\xbb\xbf")) markdown.remove_prefix(3);
  if (remove_first_line(markdown) != "---")
    return front_matter_error("the file does not begin with a line `---`");
  const std::string_view body = markdown;
  while (!markdown.empty()) {
    const auto length = static_cast<std::size_t>(markdown.data() - body.data());
    if (length > kMaxFrontMatterBytes) return front_matter_error("it is longer than 65536 bytes");
    if (remove_first_line(markdown) != "---") continue;
    const std::string_view yaml = body.substr(0, length);
    if (!is_text(yaml)) return front_matter_error("it is not UTF-8 text");
    json::YamlOptions options;
    options.first_line = 2;
    Result<json::Raw> parsed = json::yaml_to_json(yaml, options);
    if (!parsed) return front_matter_error(parsed.error().message());
    return parsed;
  }
  return front_matter_error("it is not closed by a line `---`");
}

bool same_value(json::View a, json::View b) {
  if (a.absent() || b.absent() || a.type() != b.type()) return a.absent() && b.absent();
  switch (a.type()) {
    case json::Type::object: return same_object(a, b);
    case json::Type::array: return same_array(a, b);
    case json::Type::string: return a.as_string() == b.as_string();
    case json::Type::number: return same_number(a, b);
    default: return a.text() == b.text();
  }
}

}  // namespace fairlead::mcp
