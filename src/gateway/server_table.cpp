#include "gateway/server_table.hpp"

#include <variant>

#include "fairlead/gateway/config.hpp"
#include "fairlead/process/failure.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

ServerTable::EntryPtr ServerTable::find(std::string_view name) const {
  const EntryPtr* const found = find_entry(name);
  return found ? *found : nullptr;
}

const ServerTable::EntryPtr* ServerTable::find_entry(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

ServerTable::EntryPtr ServerTable::owner_of_public_name(std::string_view public_name) const {
  return find(public_name.substr(0, public_name.find("__")));
}

std::vector<ServerTable::EntryPtr> ServerTable::all() const {
  std::vector<EntryPtr> entries;
  for (const auto& [name, entry] : entries_) entries.push_back(entry);
  return entries;
}

Result<ServerTable::EntryPtr> ServerTable::find_or_fail(std::string_view name) const {
  EntryPtr entry = find(name);
  if (entry) return entry;
  return with_failure_code(Error(ErrorKind::validation, "unknown server " + std::string(name)),
                           failure::unknown_server);
}

ServerTable::EntryPtr ServerTable::replace(const EntryPtr& former, EntryPtr next) {
  former->retired = true;
  former->stop_fetching();
  next->policy = former->policy;
  next->rules = former->rules;
  entries_.insert_or_assign(next->name(), next);
  ++version_;
  return next;
}

// ---- policies --------------------------------------------------------------------------------------------

void ServerTable::count(const ServerPolicy& policy, int step) {
  if (policy.visibility == registry::Visibility::visible) return;
  restricted_count_ += step;
  if (policy.visibility != registry::Visibility::user) return;
  const auto owner = owner_counts_.try_emplace(policy.owner).first;
  owner->second += step;
  if (owner->second == 0) owner_counts_.erase(owner);
}

void ServerTable::set_policy(ServerEntry& entry, ServerPolicyPtr policy, ListRulesPtr rules) {
  count(*entry.policy, -1);
  entry.policy = std::move(policy);
  entry.rules = std::move(rules);
  count(*entry.policy, 1);
}

std::string ServerTable::visibility_class(const Principal& client) const {
  if (all_visible()) return {};
  if (client.has_role(kAdminRole)) return "administrator";
  return owner_counts_.contains(client.user) ? "user " + client.issuer + "\n" + client.user : std::string();
}

Result<void> ServerTable::check_spec(const pool::ServerSpec& spec) const {
  if (const std::optional<std::string> problem = server_name_problem(spec.name))
    return Error(ErrorKind::validation, *problem);
  if (const std::optional<std::string> problem = sharing_problem(spec, authenticated_))
    return Error(ErrorKind::validation, "server " + spec.name + " " + *problem);
  return {};
}

// ---- changes ---------------------------------------------------------------------------------------------

Result<ServerTable::EntryPtr> ServerTable::add(pool::ServerSpec spec) {
  const Result<void> usable = check_spec(spec);
  if (!usable) return usable.error();
  if (entries_.size() >= kMaxServers)
    return Error(ErrorKind::resource_exhausted,
                 "the limit max_servers (" + std::to_string(kMaxServers) + ") is reached");
  auto entry = std::make_shared<ServerEntry>(std::move(spec));
  const Result<void> added = pool_->add(entry->spec);
  if (!added) return added.error();
  entries_.insert_or_assign(entry->name(), entry);
  ++version_;
  return entry;
}

Result<ServerTable::EntryPtr> ServerTable::update(pool::ServerSpec spec) {
  const Result<EntryPtr> former = find_or_fail(spec.name);
  if (!former) return former.error();
  const Result<void> usable = check_spec(spec);
  if (!usable) return usable.error();
  auto next = std::make_shared<ServerEntry>(std::move(spec));
  const Result<void> updated = pool_->update(next->spec);
  if (!updated) return updated.error();
  const bool disabled = (*former)->spec.enabled && !(*former)->enabled;  // by disable()
  next->enabled = next->enabled && !disabled;
  next->revision = (*former)->revision;
  next->fetch_state.attempted = !next->enabled;
  if (next->enabled) next->shared.lists = (*former)->shared.lists;
  next->lists_are_stored = (*former)->lists_are_stored;
  return replace(*former, std::move(next));
}

Result<ServerTable::EntryPtr> ServerTable::enable(std::string_view name) {
  const Result<EntryPtr> former = find_or_fail(name);
  if (!former) return former.error();
  const Result<void> enabled = pool_->enable(name);
  if (!enabled) return enabled.error();
  if ((*former)->enabled) return *former;
  auto next = std::make_shared<ServerEntry>((*former)->spec);
  next->enabled = true;
  next->fetch_state.attempted = false;
  return replace(*former, std::move(next));
}

Result<ServerTable::EntryPtr> ServerTable::disable(std::string_view name) {
  const Result<EntryPtr> former = find_or_fail(name);
  if (!former) return former.error();
  if (!(*former)->enabled) return *former;
  auto next = std::make_shared<ServerEntry>((*former)->spec);
  next->enabled = false;
  next->fetch_state.attempted = true;
  EntryPtr current = replace(*former, std::move(next));
  const Result<void> disabled = pool_->disable(name);
  if (!disabled) return disabled.error();
  return current;
}

Result<ServerTable::EntryPtr> ServerTable::remove(std::string_view name) {
  const Result<EntryPtr> former = find_or_fail(name);
  if (!former) return former.error();
  (*former)->retired = true;
  (*former)->stop_fetching();
  count(*(*former)->policy, -1);
  entries_.erase(entries_.find(name));
  ++version_;
  const Result<void> removed = pool_->remove(name);
  if (!removed) return removed.error();
  return *former;
}

}  // namespace fairlead::gateway
