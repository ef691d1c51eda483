#include "gateway/registered_servers.hpp"

#include <map>
#include <utility>

#include "fairlead/process/failure.hpp"

namespace fairlead::gateway {

namespace {

// Returns whether two specs differ at most in `enabled`.
bool same_except_enabled(const pool::ServerSpec& a, pool::ServerSpec b) {
  b.enabled = a.enabled;
  return a == b;
}

std::map<std::string, json::Raw> tools_by_name(const ServerLists* lists) {
  std::map<std::string, json::Raw> tools;
  if (!lists) return tools;
  for (const json::Raw& tool : lists->raw_entries(ListKind::tools)) {
    if (std::optional<std::string> name = own_name(ListKind::tools, tool)) tools.emplace(*name, tool);
  }
  return tools;
}

ToolChanges compare_tools(const ServerLists* before, const ServerLists* now) {
  const auto former = tools_by_name(before);
  const auto current = tools_by_name(now);
  ToolChanges changes;
  changes.tools = current.size();
  for (const auto& [name, tool] : current) {
    const auto known = former.find(name);
    if (known == former.end()) {
      changes.added.push_back(name);
    } else if (known->second.text() != tool.text()) {
      changes.changed.push_back(name);
    }
  }
  for (const auto& [name, tool] : former) {
    if (!current.contains(name)) changes.removed.push_back(name);
  }
  return changes;
}

std::optional<Error> fetch_error(const ListFetchState& state) {
  if (state.attempt_error) return state.attempt_error;
  for (const std::optional<Error>& error : state.errors_by_kind) {
    if (error) return error;
  }
  return std::nullopt;
}

}  // namespace

Result<void> RegisteredServers::put(pool::ServerSpec spec, ServerPolicy policy,
                                    const StoredListsPtr& stored) {
  const bool is_default = policy == *ServerEntry::default_policy();
  ServerPolicyPtr shared_policy =
      is_default ? ServerEntry::default_policy() : std::make_shared<const ServerPolicy>(std::move(policy));
  const EntryPtr current = servers_->find(spec.name);
  if (!current) return add(std::move(spec), std::move(shared_policy), stored);
  const Result<void> usable = servers_->check_spec(spec);
  if (!usable) return usable.error();
  set_policy(current, std::move(shared_policy), stored);
  const bool unchanged = current->spec == spec && current->enabled == spec.enabled;
  if (!unchanged) return update(current, std::move(spec), stored);
  if (current->lists_are_stored || !current->shared.lists) offer(current, stored);
  return {};
}

Result<void> RegisteredServers::add(pool::ServerSpec spec, ServerPolicyPtr policy,
                                    const StoredListsPtr& stored) {
  const auto added = servers_->add(std::move(spec));
  if (!added) return added.error();
  set_policy(*added, std::move(policy), stored);
  offer(*added, stored);
  log_.info("server added", {{"server", (*added)->name()}});
  return {};
}

Result<void> RegisteredServers::update(const EntryPtr& former, pool::ServerSpec spec,
                                       const StoredListsPtr& stored) {
  const bool only_enabled = same_except_enabled(former->spec, spec);
  if (only_enabled && spec.enabled != former->enabled && former->spec.enabled == spec.enabled) {
    // enable_server() or disable_server() has changed the server since its spec was applied.
    const auto switched = spec.enabled ? servers_->enable(spec.name) : servers_->disable(spec.name);
    if (!switched) return switched.error();
  }
  const auto updated = servers_->update(std::move(spec));
  if (!updated) return updated.error();
  const EntryPtr& entry = *updated;
  log_.info("server changed", {{"server", entry->name()}});
  if (entry->enabled) {
    catalogue_->drop_views();
    offer(entry, stored);
    if (!only_enabled) list_fetcher_->refresh_shared(entry, nullptr);
  } else {
    catalogue_->withdraw(*former);
  }
  list_fetcher_->update_initial_fetch_done();
  return {};
}

void RegisteredServers::set_policy(const EntryPtr& entry, ServerPolicyPtr policy,
                                   const StoredListsPtr& stored) {
  ListRulesPtr rules = make_list_rules(policy->tools, stored ? quarantined_entries(*stored) : EntryNames());
  const ServerPolicyPtr former = entry->policy;
  servers_->set_policy(*entry, std::move(policy), std::move(rules));
  if (*former != *entry->policy) catalogue_->apply_policy(*entry, former);
  builder_->observe_again(*entry);
  builder_->apply_rules(entry);
}

void RegisteredServers::offer(const EntryPtr& entry, const StoredListsPtr& stored) {
  if (!entry->enabled) return list_fetcher_->update_initial_fetch_done();
  if (stored && (entry->lists_are_stored || !entry->shared.lists)) builder_->use_stored(*entry, *stored);
  if (entry->shared.lists) {
    entry->fetch_state.attempted = true;
    return list_fetcher_->update_initial_fetch_done();
  }
  // Until a client has received a list, every list waits for all servers.
  if (!catalogue_->served()) catalogue_->initial_fetch_done().reset();
  list_fetcher_->refresh_shared(entry, nullptr);
}

// ---- refresh ---------------------------------------------------------------------------------------------

Task<Result<ToolChanges>> RegisteredServers::refresh(std::shared_ptr<RegisteredServers> self,
                                                     std::string server) {
  const EntryPtr entry = self->servers_->find(server);
  if (!entry)
    co_return with_failure_code(Error(ErrorKind::validation, "unknown server " + server),
                                failure::unknown_server);
  if (!entry->enabled)
    co_return with_failure_code(Error(ErrorKind::connection_failed, "server " + server + " is disabled"),
                                failure::server_stopped);
  const std::shared_ptr<const ServerLists> before = entry->shared.lists;
  const Result<void> fetched = co_await self->fetch_now(entry);
  if (!fetched) co_return fetched.error();
  co_return compare_tools(before.get(), entry->shared.lists.get());
}

Task<Result<void>> RegisteredServers::fetch_now(EntryPtr entry) const {
  pool::Target target(entry->name());
  const Result<std::shared_ptr<pool::Upstream>> started = co_await pool_->warm(std::move(target));
  if (!started) co_return started.error();
  // A server that keeps changing its lists is fetched all the time.
  constexpr int kMaxEarlierFetches = 3;
  for (int i = 0; i < kMaxEarlierFetches && entry->shared.fetching && !entry->retired; ++i) {
    const Result<void> ended = co_await list_fetcher_->wait_for_attempt(entry, std::stop_token());
    if (!ended) co_return ended.error();
  }
  if (!entry->retired) {
    list_fetcher_->refresh_shared(entry, *started);
    const Result<void> ended = co_await list_fetcher_->wait_for_attempt(entry, std::stop_token());
    if (!ended) co_return ended.error();
  }
  if (entry->retired) co_return Error(ErrorKind::cancelled, "server " + entry->name() + " has been changed");
  if (const std::optional<Error> error = fetch_error(entry->fetch_state)) co_return *error;
  co_return Result<void>();
}

}  // namespace fairlead::gateway
