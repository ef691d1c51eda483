#include "clients/text_layout.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/contains.hpp"
#include "base/printable.hpp"
#include "fairlead/json/writer.hpp"
#include "json/toml.hpp"

namespace fairlead::clients {

namespace {

constexpr std::size_t kMaxLine = 80;

bool is_container(json::View value) {
  return value.is(json::Type::object) || value.is(json::Type::array);
}

bool has_containers(json::View value) {
  bool found = false;
  const auto look = [&](json::View element) { return !(found = found || is_container(element)); };
  value.each_element(look);
  value.each_member([&](std::string_view, bool, json::View member) { return look(member); });
  return found;
}

std::string key_text(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

// A string of JSON, with escapes for the characters that a YAML text cannot have.
std::string in_quotes(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string json;
  json::append_string(json, text);
  std::string out;
  for (std::string_view rest = json; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    const std::size_t length = std::max<std::size_t>(point.length, 1);
    const std::uint32_t value = point.value;
    const bool is_refused =
        (value >= 0x7f && value < 0xa0) || value == 0xfeff || value == 0xfffe || value == 0xffff;
    if (is_refused) {
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(value >> shift) & 0xf];
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return out;
}

// JSON on one line, with spaces after commas and colons.
std::string one_line(json::View value) {
  if (!is_container(value)) return std::string(value.text());
  const bool is_object = value.is(json::Type::object);
  std::string out = is_object ? "{" : "[";
  std::string_view separator = is_object ? " " : "";
  value.each_member([&](std::string_view key, bool escaped, json::View member) {
    out += std::string(std::exchange(separator, ", ")) + in_quotes(key_text(key, escaped)) + ": " +
           one_line(member);
    return true;
  });
  value.each_element([&](json::View element) {
    out += std::string(std::exchange(separator, ", ")) + one_line(element);
    return true;
  });
  if (is_object && separator == ", ") out += " ";
  return out + (is_object ? "}" : "]");
}

void append_indented(std::string& out, json::View value, std::size_t level) {
  if (!is_container(value) || (!has_containers(value) && value.text().size() <= kMaxLine)) {
    out += one_line(value);
    return;
  }
  const std::string indent(2 * (level + 1), ' ');
  const bool is_object = value.is(json::Type::object);
  std::string_view separator = is_object ? "{\n" : "[\n";
  value.each_member([&](std::string_view key, bool escaped, json::View member) {
    out += std::string(std::exchange(separator, ",\n")) + indent + in_quotes(key_text(key, escaped)) + ": ";
    append_indented(out, member, level + 1);
    return true;
  });
  value.each_element([&](json::View element) {
    out += std::string(std::exchange(separator, ",\n")) + indent;
    append_indented(out, element, level + 1);
    return true;
  });
  out += "\n" + std::string(2 * level, ' ') + (is_object ? "}" : "]");
}

// Words that YAML reads as something else than text.
bool is_yaml_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kYamlWords = {"true", "false", "null", "yes", "no",
                                                           "on",   "off",   "y",    "n",   "~"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  return contains(kYamlWords, std::string_view(lower));
}

std::string yaml_key(const std::string& key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  const bool begins_with_letter =
      !key.empty() && key.front() != '-' && !(key.front() >= '0' && key.front() <= '9');
  return begins_with_letter && std::ranges::all_of(key, plain) && !is_yaml_word(key) ? key : in_quotes(key);
}

// JSON that is YAML too.
void write_for_yaml(json::Writer& out, json::View value) {
  if (value.is(json::Type::string)) {
    out.raw(in_quotes(value.as_string().value_or("")));
  } else if (value.is(json::Type::object)) {
    out.begin_object();
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      write_for_yaml(out.key(key_text(key, escaped)), member);
      return true;
    });
    out.end_object();
  } else if (value.is(json::Type::array)) {
    out.begin_array();
    value.each_element([&](json::View element) { return write_for_yaml(out, element), true; });
    out.end_array();
  } else {
    out.raw(value.text());
  }
}

void append_yaml_members(std::string& out, json::View object, const std::string& indent,
                         bool first_is_indented);

// Appends a value after its key or `-`.
void append_yaml_value(std::string& out, json::View value, const std::string& indent) {
  const bool in_block =
      is_container(value) && value.size() != 0 && (value.is(json::Type::object) || has_containers(value));
  if (!in_block) {
    out += " " + one_line(value) + "\n";
  } else if (value.is(json::Type::object)) {
    out += "\n";
    append_yaml_members(out, value, indent + "  ", true);
  } else {
    out += "\n";
    value.each_element([&](json::View element) {
      out += indent + "  -";
      if (element.is(json::Type::object) && element.size() != 0) {
        out += " ";
        append_yaml_members(out, element, indent + "    ", false);
      } else {
        out += " " + one_line(element) + "\n";
      }
      return true;
    });
  }
}

void append_yaml_members(std::string& out, json::View object, const std::string& indent,
                         bool first_is_indented) {
  bool is_indented = first_is_indented;
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    if (std::exchange(is_indented, true)) out += indent;
    out += yaml_key(key_text(key, escaped)) + ":";
    append_yaml_value(out, value, indent);
    return true;
  });
}

// Returns the value without nulls, which TOML does not have.
void write_without_nulls(json::Writer& out, json::View value) {
  if (value.is(json::Type::object)) {
    out.begin_object();
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      if (!member.is(json::Type::null)) write_without_nulls(out.key(key_text(key, escaped)), member);
      return true;
    });
    out.end_object();
  } else if (value.is(json::Type::array)) {
    out.begin_array();
    value.each_element([&](json::View element) {
      if (!element.is(json::Type::null)) write_without_nulls(out, element);
      return true;
    });
    out.end_array();
  } else {
    out.raw(value.text());
  }
}

void append_toml_members(std::string& out, json::View object) {
  json::Writer writer;
  write_without_nulls(writer, object);
  const json::Raw clean = std::move(writer).finish();
  json::View(clean).each_member([&](std::string_view key, bool escaped, json::View value) {
    json::append_toml_member(out, key_text(key, escaped), value);
    out += "\n";
    return true;
  });
}

}  // namespace

std::string indented_json(json::View value) {
  std::string out;
  append_indented(out, value, 0);
  return out + "\n";
}

std::string yaml_text(json::View object) {
  std::string out;
  json::Writer writer;
  write_for_yaml(writer, object);
  const json::Raw yaml = std::move(writer).finish();
  append_yaml_members(out, json::View(yaml), "", true);
  return out;
}

std::string toml_text(std::string_view container, json::View servers) {
  std::string out;
  servers.each_member([&](std::string_view key, bool escaped, json::View server) {
    out += (out.empty() ? "[" : "\n[") + std::string(container) + ".";
    json::append_toml_key(out, key_text(key, escaped));
    out += "]\n";
    append_toml_members(out, server);
    return true;
  });
  servers.each_element([&](json::View server) {
    out += (out.empty() ? "[[" : "\n[[") + std::string(container) + "]]\n";
    append_toml_members(out, server);
    return true;
  });
  return out;
}

}  // namespace fairlead::clients
