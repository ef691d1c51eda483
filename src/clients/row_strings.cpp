#include "clients/row_strings.hpp"

#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {

namespace {

// Escapes a member name for a JSON pointer (RFC 6901).
std::string pointer_token(std::string_view name) {
  std::string token;
  for (const char c : name) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

std::string member_name(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

void write_changed(json::Writer& out, json::View value, const std::string& pointer,
                   const StringChange& change) {
  if (value.is(json::Type::string)) {
    const std::optional<std::string> changed = change(pointer, value.as_string().value_or(""));
    if (changed) {
      out.string(*changed);
    } else {
      out.raw(value.text());
    }
  } else if (value.is(json::Type::array)) {
    out.begin_array();
    std::size_t index = 0;
    value.each_element([&](json::View element) {
      write_changed(out, element, pointer + "/" + std::to_string(index++), change);
      return true;
    });
    out.end_array();
  } else if (value.is(json::Type::object)) {
    out.begin_object();
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      const std::string name = member_name(key, escaped);
      out.key(name);
      write_changed(out, member, pointer + "/" + pointer_token(name), change);
      return true;
    });
    out.end_object();
  } else {
    out.raw(value.text());
  }
}

json::View child_of(json::View value, std::string_view token) {
  json::View found;
  std::size_t index = 0;
  value.each_member([&](std::string_view key, bool escaped, json::View member) {
    if (pointer_token(member_name(key, escaped)) == token) found = member;
    return true;
  });
  if (value.is(json::Type::array)) {
    value.each_element([&](json::View element) {
      if (std::to_string(index++) == token) found = element;
      return true;
    });
  }
  return found;
}

}  // namespace

json::Raw change_strings(json::View document, const StringChange& change) {
  json::Writer out;
  write_changed(out, document, "", change);
  return std::move(out).finish();
}

json::Raw merged(const json::Raw& document, const json::Raw& patch) {
  Result<json::Raw> result = registry::merge_patch(json::View(document), json::View(patch));
  return result ? std::move(*result) : document;
}

json::View value_at(json::View document, std::string_view pointer) {
  json::View value = document;
  while (!pointer.empty() && !value.absent()) {
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    value = child_of(value, token);
    pointer.remove_prefix(token.size());
  }
  return value;
}

}  // namespace fairlead::clients
