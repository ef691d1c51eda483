// merge_difference(): the reverse of merge_patch() (RFC 7396).
#include <map>
#include <string>

#include "fairlead/json/writer.hpp"
#include "registry/canonical.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {

namespace {

using MembersByName = std::map<std::string, json::View, std::less<>>;

MembersByName members_by_name(json::View object) {
  MembersByName members;
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    members.insert_or_assign(escaped ? json::unescape(key) : std::string(key), value);
    return true;
  });
  return members;
}

void write_difference(json::Writer& out, json::View before, json::View after) {
  if (!before.is(json::Type::object) || !after.is(json::Type::object)) {
    out.raw(after.text());
    return;
  }
  const MembersByName old_members = members_by_name(before);
  const MembersByName new_members = members_by_name(after);
  out.begin_object();
  for (const auto& [name, value] : new_members) {
    const auto old = old_members.find(name);
    if (old != old_members.end() && canonical_json(old->second) == canonical_json(value)) continue;
    out.key(name);
    write_difference(out, old == old_members.end() ? json::View() : old->second, value);
  }
  for (const auto& [name, value] : old_members)
    if (!new_members.contains(name)) out.key(name).null();
  out.end_object();
}

}  // namespace

json::Raw merge_difference(json::View before, json::View after) {
  json::Writer out;
  write_difference(out, before, after);
  return std::move(out).finish();
}

}  // namespace fairlead::registry
