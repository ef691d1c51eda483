#include "cli/json_text.hpp"

#include "base/printable.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

namespace {

constexpr std::size_t kMaxLineOfList = 100;

void append_indented(std::string& out, json::View value, std::size_t depth);

void append_line_start(std::string& out, std::size_t depth) {
  out += '\n';
  out.append(2 * depth, ' ');
}

void append_members(std::string& out, json::View value, std::size_t depth) {
  out += '{';
  bool first = true;
  value.each_member([&](std::string_view key, bool, json::View member) {
    if (!std::exchange(first, false)) out += ',';
    append_line_start(out, depth + 1);
    ((out += '"') += key) += "\": ";
    append_indented(out, member, depth + 1);
    return true;
  });
  append_line_start(out, depth);
  out += '}';
}

void append_elements(std::string& out, json::View value, std::size_t depth) {
  out += '[';
  bool first = true;
  value.each_element([&](json::View element) {
    if (!std::exchange(first, false)) out += ',';
    append_line_start(out, depth + 1);
    append_indented(out, element, depth + 1);
    return true;
  });
  append_line_start(out, depth);
  out += ']';
}

void append_indented(std::string& out, json::View value, std::size_t depth) {
  const bool nested = value.is(json::Type::object) || value.is(json::Type::array);
  if (!nested || value.size() == 0) {
    out += value.text();
  } else if (value.is(json::Type::object)) {
    append_members(out, value, depth);
  } else {
    append_elements(out, value, depth);
  }
}

bool is_scalar(json::View value) {
  return !value.is(json::Type::object) && !value.is(json::Type::array);
}

bool has_only_scalars(json::View list) {
  bool all = true;
  list.each_element([&](json::View element) { return all = is_scalar(element); });
  return all;
}

std::string scalar_text(json::View value) {
  return printable_line(value.as_string().value_or(std::string(value.text())));
}

std::string joined(json::View list) {
  std::string out;
  list.each_element([&](json::View element) {
    out += (out.empty() ? "" : ", ") + scalar_text(element);
    return true;
  });
  return out;
}

void append_readable(std::string& out, json::View value, std::size_t depth);

void append_list(std::string& out, json::View list, std::size_t depth) {
  const std::string line = has_only_scalars(list) ? joined(list) : std::string();
  if (!line.empty() && line.size() <= kMaxLineOfList) {
    out += " " + line + "\n";
    return;
  }
  out += '\n';
  list.each_element([&](json::View element) {
    out.append(2 * depth + 2, ' ');
    out += "- ";
    if (is_scalar(element)) {
      out += scalar_text(element) + "\n";
    } else {
      out += printable_line(element.text()) + "\n";
    }
    return true;
  });
}

void append_entry(std::string& out, const std::string& key, json::View value, std::size_t depth) {
  out.append(2 * depth, ' ');
  out += printable_line(key) + ":";
  if (value.is(json::Type::object)) {
    out += value.size() == 0 ? " {}\n" : "\n";
    append_readable(out, value, depth + 1);
  } else if (value.is(json::Type::array) && value.size() > 0) {
    append_list(out, value, depth);
  } else {
    out += " " + scalar_text(value) + "\n";
  }
}

void append_readable(std::string& out, json::View value, std::size_t depth) {
  value.each_member([&](std::string_view key, bool escaped, json::View member) {
    append_entry(out, escaped ? json::unescape(key) : std::string(key), member, depth);
    return true;
  });
}

}  // namespace

std::string indented_json(json::View value) {
  std::string out;
  append_indented(out, value, 0);
  return out;
}

std::string readable(json::View object) {
  std::string out;
  append_readable(out, object, 0);
  return out;
}

std::string one_line(json::View value) {
  if (value.absent() || value.is(json::Type::null)) return {};
  if (value.is(json::Type::array) && has_only_scalars(value)) return joined(value);
  return scalar_text(value);
}

std::string string_of(json::View object, std::string_view key) {
  return object[key].as_string().value_or("");
}

}  // namespace fairlead::cli
