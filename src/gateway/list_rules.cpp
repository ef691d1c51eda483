#include "gateway/list_rules.hpp"

#include "base/glob.hpp"

namespace fairlead::gateway {

bool ListRules::exists(ListKind kind, const std::string& name) const {
  if (quarantined.contains({kind, name})) return false;
  if (kind != ListKind::tools) return true;
  return (tools.allow.empty() || any_glob_matches(tools.allow, name)) && !any_glob_matches(tools.deny, name);
}

bool ListRules::lists(ListKind kind, const std::string& name) const {
  return kind != ListKind::tools || !any_glob_matches(tools.hide, name);
}

const std::string& ListRules::offered_name(ListKind kind, const std::string& name) const {
  if (kind != ListKind::tools) return name;
  const auto renamed = tools.rename.find(name);
  return renamed == tools.rename.end() ? name : renamed->second;
}

ListRulesPtr make_list_rules(const registry::ToolRules& tools, EntryNames quarantined) {
  ListRules rules;
  rules.tools = tools;
  rules.quarantined = std::move(quarantined);
  return rules.empty() ? nullptr : std::make_shared<const ListRules>(std::move(rules));
}

bool same_rules(const ListRulesPtr& a, const ListRulesPtr& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace fairlead::gateway
