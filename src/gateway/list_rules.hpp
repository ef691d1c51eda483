// ListRules: which entries of a server's lists exist for clients, and under which names. They result from the
// tool rules of the server and from its quarantined entries. Private to the layer.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "fairlead/registry/model.hpp"
#include "mcp/catalogue.hpp"

namespace fairlead::gateway {

using mcp::ListKind;

// Entries of one server by kind and the server's own name.
using EntryNames = std::set<std::pair<ListKind, std::string>>;

// All rules match the server's own name of an entry, so that renaming an entry lifts no other rule.
struct ListRules {
  ListRules() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  registry::ToolRules tools;
  EntryNames quarantined;  // neither listed nor callable

  bool empty() const noexcept { return tools.empty() && quarantined.empty(); }
  bool operator==(const ListRules&) const = default;

  // Returns whether clients can list or call the entry.
  bool exists(ListKind kind, const std::string& name) const;
  // Returns whether the entry, which exists, is listed.
  bool lists(ListKind kind, const std::string& name) const;
  // Returns the name that replaces `name` in public names; `name` itself if the entry is not renamed.
  const std::string& offered_name(ListKind kind, const std::string& name) const;
};

// Null if no rule applies.
using ListRulesPtr = std::shared_ptr<const ListRules>;
// Returns null if the rules are empty.
ListRulesPtr make_list_rules(const registry::ToolRules& tools, EntryNames quarantined);
bool same_rules(const ListRulesPtr& a, const ListRulesPtr& b);

}  // namespace fairlead::gateway
