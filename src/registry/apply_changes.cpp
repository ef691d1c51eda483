// apply_changes(): changes the state in memory.
#include <algorithm>
#include <set>
#include <utility>

#include "registry/change_set.hpp"
#include "registry/rows.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

namespace {

template <class T>
bool is_same_row(const T& a, const T& b) {
  return a.version == b.version && a.updated_at == b.updated_at;
}
// A change of last_used_at is not reported; it does not change the version.
bool is_same_row(const Token& a, const Token& b) {
  return a.version == b.version;
}
bool is_same_row(const Drift& a, const Drift& b) {
  return a.status == b.status && a.quarantined == b.quarantined && a.detected_at == b.detected_at &&
         a.resolved_at == b.resolved_at && a.after.text() == b.after.text();
}

bool have_same_values(const Configuration& a, const Configuration& b) {
  if (a.changed_values().size() != b.changed_values().size()) return false;
  return std::ranges::all_of(a.changed_values(), [&b](const auto& value) {
    const auto found = b.changed_values().find(value.first);
    return found != b.changed_values().end() && found->second.text() == value.second.text();
  });
}

class StateUpdate {
 public:
  StateUpdate(State& state, const Log& log) : state_(state), log_(log), configuration_(state.configuration) {}

  AppliedChanges apply(ChangeSet changes) &&;

 private:
  void put(const std::string& id, ServerPtr row);
  void put(const std::string& id, EndpointPtr row) { put_in(state_.endpoints, id, std::move(row)); }
  void put(const std::string& id, UserPtr row) { put_in(state_.users, id, std::move(row)); }
  void put(const std::string& id, GroupPtr row) { put_in(state_.groups, id, std::move(row)); }
  void put(const std::string& id, TokenPtr row);
  void put(const std::string& id, DriftPtr row);
  void put(const std::string& id, SecretPtr row);
  void put(const std::string& id, SecretDataKeyPtr row);
  void put(const std::string& id, ListsRow row);
  void put(const std::string& id, const ConfigValue& row);
  template <class T>
  void put_in(Table<T>& table, const std::string& id, std::shared_ptr<const T> row);
  template <class T>
  void report(std::shared_ptr<const T> before, std::shared_ptr<const T> after);
  void forget_drift(const Drift& row);
  void forget_server(const std::string& id);
  void remove_missing(const ChangeSet& changes);

  State& state_;
  const Log& log_;
  ConfigurationPtr configuration_;
  bool unreadable_ = false;  // of the row that is put: what belongs to it stays
  AppliedChanges applied_;
};

template <class T>
void StateUpdate::report(std::shared_ptr<const T> before, std::shared_ptr<const T> after) {
  if (!before && !after) return;
  if (before && after && is_same_row(*before, *after)) return;
  applied_.events.emplace_back(Change(RowChange<T>{std::move(before), std::move(after)}));
}

template <class T>
void StateUpdate::put_in(Table<T>& table, const std::string& id, std::shared_ptr<const T> row) {
  std::shared_ptr<const T> before = row ? table.put(row) : table.remove(id);
  report(std::move(before), std::move(row));
}

void StateUpdate::put(const std::string& id, ServerPtr row) {
  if (!row && !unreadable_) forget_server(id);
  put_in(state_.servers, id, std::move(row));
}

void StateUpdate::forget_server(const std::string& id) {
  state_.lists.erase(id);
  const auto found = state_.drift_by_server.find(id);
  if (found == state_.drift_by_server.end()) return;
  for (const auto& [drift_id, row] : found->second) state_.drift.erase(drift_id);
  state_.drift_by_server.erase(found);
}

void StateUpdate::put(const std::string& id, TokenPtr row) {
  if (const TokenPtr before = state_.tokens.find(id)) state_.tokens_by_sha256.erase(before->sha256);
  if (row) state_.tokens_by_sha256.insert_or_assign(row->sha256, row);
  put_in(state_.tokens, id, std::move(row));
}

void StateUpdate::put(const std::string& id, SecretPtr row) {
  if (const SecretPtr before = state_.secrets.find(id))
    state_.secrets_by_scope.erase(secret_scope_key(before->server, before->user, before->name));
  if (row) state_.secrets_by_scope.insert_or_assign(secret_scope_key(row->server, row->user, row->name), row);
  put_in(state_.secrets, id, std::move(row));
}

void StateUpdate::put(const std::string& id, SecretDataKeyPtr row) {
  if (row) {
    state_.secret_keys.insert_or_assign(id, std::move(row));
  } else {
    state_.secret_keys.erase(id);
  }
}

void StateUpdate::forget_drift(const Drift& row) {
  const auto found = state_.drift_by_server.find(row.server_id);
  if (found == state_.drift_by_server.end()) return;
  found->second.erase(row.id);
  if (found->second.empty()) state_.drift_by_server.erase(found);
}

void StateUpdate::put(const std::string& id, DriftPtr row) {
  const auto found = state_.drift.find(id);
  const DriftPtr before = found == state_.drift.end() ? nullptr : found->second;
  if (before) forget_drift(*before);
  if (row) {
    state_.drift.insert_or_assign(id, row);
    state_.drift_by_server[row->server_id].insert_or_assign(id, row);
  } else {
    state_.drift.erase(id);
  }
  report(before, std::move(row));
}

void StateUpdate::put(const std::string& id, ListsRow row) {
  const auto found = state_.lists.find(id);
  if (row.lists) {
    if (found != state_.lists.end() && have_same_entries(*found->second, *row.lists)) return;
    state_.lists.insert_or_assign(id, std::move(row.lists));
  } else if (found == state_.lists.end()) {
    return;
  } else {
    state_.lists.erase(found);
  }
  applied_.events.emplace_back(ListsChange{id});
}

void StateUpdate::put(const std::string& id, const ConfigValue& row) {
  Result<ConfigurationPtr> changed = configuration_->with(id, json::View(row.value));
  if (changed) {
    configuration_ = std::move(*changed);
  } else {
    log_.warning("a value of the configuration is ignored",
                 {{"key", id}, {"error", changed.error().message()}});
  }
}

template <class Ptr>
void add_missing(const std::map<std::string, Ptr, std::less<>>& rows,
                 const std::set<std::string_view>& present, std::vector<ChangedRow>& missing) {
  for (const auto& [id, row] : rows) {
    if (!present.contains(id)) missing.push_back(ChangedRow{id, Ptr()});
  }
}

// Ids are unique across the tables, so one set does for all of them.
void StateUpdate::remove_missing(const ChangeSet& changes) {
  std::set<std::string_view> present;
  std::set<std::string_view> with_lists;
  for (const ChangedRow& row : changes.rows)
    (std::holds_alternative<ListsRow>(row.row) ? with_lists : present).insert(row.id);
  std::vector<ChangedRow> missing;
  add_missing(state_.servers.by_id(), present, missing);
  add_missing(state_.endpoints.by_id(), present, missing);
  add_missing(state_.users.by_id(), present, missing);
  add_missing(state_.groups.by_id(), present, missing);
  add_missing(state_.tokens.by_id(), present, missing);
  add_missing(state_.drift, present, missing);
  add_missing(state_.secrets.by_id(), present, missing);
  add_missing(state_.secret_keys, present, missing);
  for (const auto& [id, lists] : state_.lists) {
    if (!with_lists.contains(id)) missing.push_back(ChangedRow{id, ListsRow()});
  }
  for (ChangedRow& row : missing) std::visit([&](auto& value) { put(row.id, value); }, row.row);
}

AppliedChanges StateUpdate::apply(ChangeSet changes) && {
  if (changes.complete) {
    remove_missing(changes);
    configuration_ = Configuration::defaults();
  }
  const ConfigurationPtr before = state_.configuration;
  for (ChangedRow& row : changes.rows) {
    unreadable_ = row.unreadable;
    std::visit([&](auto& value) { put(row.id, std::move(value)); }, row.row);
  }
  state_.revision = changes.revision;
  if (before && have_same_values(*before, *configuration_)) return std::move(applied_);
  state_.configuration = configuration_;
  if (before) applied_.events.emplace_back(Change(RowChange<Configuration>{before, configuration_}));
  return std::move(applied_);
}

}  // namespace

AppliedChanges apply_changes(State& state, ChangeSet changes, const Log& log) {
  if (!changes.complete && changes.revision <= state.revision) return AppliedChanges();
  return StateUpdate(state, log).apply(std::move(changes));
}

}  // namespace fairlead::registry
