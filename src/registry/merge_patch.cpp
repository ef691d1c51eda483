// merge_patch(): RFC 7396.
#include <algorithm>
#include <string>
#include <vector>

#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {

namespace {

struct PatchMember {
  std::string name;
  json::View value;
  bool applied = false;
};

std::vector<PatchMember> members_of(json::View patch) {
  std::vector<PatchMember> members;
  patch.each_member([&](std::string_view key, bool escaped, json::View value) {
    members.push_back({escaped ? json::unescape(key) : std::string(key), value});
    return true;
  });
  std::ranges::sort(members, {}, &PatchMember::name);
  return members;
}

PatchMember* find_member(std::vector<PatchMember>& members, const std::string& name) {
  const auto found = std::ranges::lower_bound(members, name, {}, &PatchMember::name);
  return found != members.end() && found->name == name ? &*found : nullptr;
}

void merge(json::Writer& out, json::View document, json::View patch);

// Writes the members of `document` in their order; those that the patch does not name keep their bytes.
void merge_members(json::Writer& out, json::View document, std::vector<PatchMember>& members) {
  document.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    PatchMember* const change = find_member(members, name);
    if (change) change->applied = true;
    if (change && change->value.is(json::Type::null)) return true;
    out.key(name);
    if (change) {
      merge(out, value, change->value);
    } else {
      out.raw(value.text());
    }
    return true;
  });
}

void merge(json::Writer& out, json::View document, json::View patch) {
  if (!patch.is(json::Type::object)) {
    out.raw(patch.text());
    return;
  }
  std::vector<PatchMember> members = members_of(patch);
  out.begin_object();
  if (document.is(json::Type::object)) merge_members(out, document, members);
  for (const PatchMember& added : members) {
    if (added.applied || added.value.is(json::Type::null)) continue;
    out.key(added.name);
    merge(out, json::View(), added.value);
  }
  out.end_object();
}

}  // namespace

Result<json::Raw> merge_patch(json::View document, json::View patch) {
  if (const Result<void> checked = check_body(patch); !checked) return checked.error();
  json::Writer out;
  merge(out, document, patch);
  return std::move(out).finish();
}

}  // namespace fairlead::registry
