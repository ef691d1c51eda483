#include "registry/canonical.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "fairlead/json/writer.hpp"

namespace fairlead::registry {

namespace {

constexpr std::array<std::string_view, 6> kComparedOfResources = {"uri",   "uriTemplate", "name",
                                                                  "title", "description", "mimeType"};

void append_canonical(std::string& out, json::View value);

struct Member {
  std::string key;
  std::size_t position;  // in the object
  json::View value;
};

void append_object(std::string& out, json::View object) {
  std::vector<Member> members;
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    members.push_back(Member{escaped ? json::unescape(key) : std::string(key), members.size(), value});
    return true;
  });
  std::ranges::sort(members, [](const Member& a, const Member& b) {
    return std::tie(a.key, a.position) < std::tie(b.key, b.position);
  });
  out.push_back('{');
  for (std::size_t i = 0; i < members.size(); ++i) {
    // The last value of a repeated key counts.
    if (i + 1 < members.size() && members[i + 1].key == members[i].key) continue;
    if (out.back() != '{') out.push_back(',');
    json::append_string(out, members[i].key);
    out.push_back(':');
    append_canonical(out, members[i].value);
  }
  out.push_back('}');
}

void append_array(std::string& out, json::View array) {
  out.push_back('[');
  array.each_element([&](json::View element) {
    if (out.back() != '[') out.push_back(',');
    append_canonical(out, element);
    return true;
  });
  out.push_back(']');
}

void append_canonical(std::string& out, json::View value) {
  switch (value.type()) {
    case json::Type::object: append_object(out, value); return;
    case json::Type::array: append_array(out, value); return;
    case json::Type::string: json::append_string(out, value.as_string().value_or(std::string())); return;
    case json::Type::number:
      if (const std::optional<std::int64_t> integer = value.as_int()) {
        out += std::to_string(*integer);
        return;
      }
      break;
    case json::Type::boolean:
    case json::Type::null: break;
  }
  out += value.text();
}

std::string compared_part(json::View resource) {
  std::string out;
  for (const std::string_view key : kComparedOfResources) {
    const json::View member = resource[key];
    if (!member.absent()) append_canonical(out, member);
    out.push_back('\n');
  }
  return out;
}

}  // namespace

std::string canonical_json(json::View value) {
  std::string out;
  if (!value.absent()) append_canonical(out, value);
  return out;
}

bool same_entry(std::string_view kind, json::View a, json::View b) {
  if (a.text() == b.text()) return true;
  if (a.absent() || b.absent()) return false;
  if (kind == "resource" || kind == "template") return compared_part(a) == compared_part(b);
  return canonical_json(a) == canonical_json(b);
}

}  // namespace fairlead::registry
