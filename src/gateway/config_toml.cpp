// Writes a ServerSpec as TOML. The members of its JSON become keys; nested objects become inline tables.
#include <utility>

#include "fairlead/gateway/config.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/server_spec_json.hpp"

namespace fairlead::gateway {

namespace {

// TOML's basic strings are JSON strings, except that TOML also requires DEL (0x7f) to be escaped.
void append_toml_string(std::string& out, std::string_view text) {
  std::string json;
  json::append_string(json, text);
  for (const char c : json) {
    if (c == '\x7f') {
      out += "\\u007F";
    } else {
      out += c;
    }
  }
}

void append_toml_key(std::string& out, std::string_view key) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (key.empty() || key.find_first_not_of(kBare) != std::string_view::npos)
    return append_toml_string(out, key);
  out += key;
}

void append_toml_value(std::string& out, json::View value);

void append_toml_member(std::string& out, std::string_view key, bool escaped, json::View value) {
  append_toml_key(out, escaped ? json::unescape(key) : std::string(key));
  out += " = ";
  append_toml_value(out, value);
}

void append_toml_value(std::string& out, json::View value) {
  if (value.is(json::Type::object)) {
    out += "{";
    std::string_view separator = " ";
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      out += std::exchange(separator, ", ");
      append_toml_member(out, key, escaped, member);
      return true;
    });
    out += " }";
  } else if (value.is(json::Type::array)) {
    out += "[";
    std::string_view separator;
    value.each_element([&](json::View element) {
      out += std::exchange(separator, ", ");
      append_toml_value(out, element);
      return true;
    });
    out += "]";
  } else if (value.is(json::Type::string)) {
    append_toml_string(out, *value.as_string());
  } else {
    out += value.text();
  }
}

}  // namespace

std::string to_toml(const pool::ServerSpec& spec) {
  std::string out = "[servers.";
  append_toml_key(out, spec.name);
  out += "]\n";
  const json::Raw json = pool::to_json(spec);
  json::View(json).each_member([&](std::string_view key, bool escaped, json::View value) {
    append_toml_member(out, key, escaped, value);
    out += '\n';
    return true;
  });
  return out;
}

}  // namespace fairlead::gateway
