#include "gateway/list_builder.hpp"

#include <utility>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

// Rules are applied to at most this many entries in one turn.
constexpr std::size_t kMaxEntriesPerTurn = 5'000;

const std::vector<registry::ListedEntry>& entries_of(const registry::StoredLists& stored, ListKind kind) {
  switch (kind) {
    case ListKind::tools: return stored.tools;
    case ListKind::resources: return stored.resources;
    case ListKind::templates: return stored.templates;
    case ListKind::prompts: break;
  }
  return stored.prompts;
}

std::optional<std::vector<json::Raw>>& entries_of(FetchedLists& fetched, ListKind kind) {
  switch (kind) {
    case ListKind::tools: return fetched.tools;
    case ListKind::resources: return fetched.resources;
    case ListKind::templates: return fetched.templates;
    case ListKind::prompts: break;
  }
  return fetched.prompts;
}

std::size_t count_raw_entries(const ServerLists& lists) {
  std::size_t count = 0;
  for (const ListKind kind : kListKinds) count += lists.raw_entries(kind).size();
  return count;
}

void copy_raw_entries(ServerLists& to, const ServerLists& from) {
  for (const ListKind kind : kListKinds) {
    to.raw_entries(kind) = from.raw_entries(kind);
    to.set_missing_reason(kind, from.missing_reason(kind));
  }
}

void add_all_entries(const ServerEntry& entry, const ListRulesPtr& rules, ServerLists& lists) {
  lists.set_rules(entry.name(), rules);
  for (const ListKind kind : kListKinds) {
    for (const json::Raw& raw : lists.raw_entries(kind))
      lists.add_entry(entry.name(), kind, raw, mcp::ListLimits());
  }
}

}  // namespace

EntryNames quarantined_entries(const registry::StoredLists& stored) {
  EntryNames names;
  for (const ListKind kind : kListKinds) {
    for (const registry::ListedEntry& listed : entries_of(stored, kind)) {
      std::optional<std::string> name = listed.quarantined ? own_name(kind, listed.entry) : std::nullopt;
      if (name) names.emplace(kind, std::move(*name));
    }
  }
  return names;
}

// ---- fetched lists ---------------------------------------------------------------------------------------

EntryNames ListBuilder::ask_observer(const std::string& server, const ServerLists& lists,
                                     const ErrorsByKind& errors, bool to_be_stored) const {
  FetchedLists fetched;
  fetched.to_be_stored = to_be_stored;
  for (const ListKind kind : kListKinds) {
    if (!errors[static_cast<std::size_t>(kind)]) entries_of(fetched, kind) = lists.raw_entries(kind);
  }
  const std::shared_ptr<const registry::StoredLists> accepted = observer_(server, fetched);
  return accepted ? quarantined_entries(*accepted) : EntryNames();
}

void ListBuilder::observe(ServerEntry& entry, ListCache& cache, const ServerLists& fetched,
                          const ErrorsByKind& errors) const {
  if (!observer_) return;
  const bool shared = &cache == &entry.shared;
  EntryNames quarantined = ask_observer(entry.name(), fetched, errors, shared);
  if (shared) {
    entry.rules = make_list_rules(entry.policy->tools, std::move(quarantined));
  } else {
    cache.quarantined = std::move(quarantined);
  }
}

// A list that could not be fetched when `lists` were made is the previous one; it is judged too.
EntryNames ListBuilder::ask_observer_again(const ServerEntry& entry, const ServerLists& lists) const {
  return ask_observer(entry.name(), lists, ErrorsByKind(), false);
}

void ListBuilder::observe_again(ServerEntry& entry) const {
  if (!observer_) return;
  if (entry.shared.lists && !entry.lists_are_stored)
    entry.rules = make_list_rules(entry.policy->tools, ask_observer_again(entry, *entry.shared.lists));
  for (const auto& [key, cache] : entry.unshared) {
    if (cache->lists && !cache->quarantined.empty())
      cache->quarantined = ask_observer_again(entry, *cache->lists);
  }
}

ListRulesPtr ListBuilder::rules_for(const ServerEntry& entry, const ListCache& cache) {
  if (cache.quarantined.empty()) return entry.rules;
  EntryNames quarantined = cache.quarantined;
  if (entry.rules) quarantined.insert(entry.rules->quarantined.begin(), entry.rules->quarantined.end());
  return make_list_rules(entry.policy->tools, std::move(quarantined));
}

Task<void> ListBuilder::add_entries(EntryPtr entry, ListRulesPtr rules,
                                    std::shared_ptr<ServerLists> lists) const {
  lists->set_rules(entry->name(), std::move(rules));
  Slices slices;
  for (const ListKind kind : kListKinds) {
    for (const json::Raw& raw : lists->raw_entries(kind)) {
      lists->add_entry(entry->name(), kind, raw, mcp::ListLimits());
      if (slices.due(raw.text().size())) co_await sleep_for(loop_, Slices::kPause);
    }
  }
}

void ListBuilder::use_stored(ServerEntry& entry, const registry::StoredLists& stored) {
  const std::shared_ptr<ServerLists> lists = catalogue_->make_lists();
  for (const ListKind kind : kListKinds) {
    for (const registry::ListedEntry& listed : entries_of(stored, kind))
      lists->raw_entries(kind).push_back(listed.entry);
  }
  add_all_entries(entry, entry.rules, *lists);
  entry.lists_are_stored = true;
  entry.fetch_state.attempted = true;
  catalogue_->publish_shared(entry, lists);
}

// ---- changed rules ---------------------------------------------------------------------------------------

std::shared_ptr<const ServerLists> ListBuilder::rebuilt(const ServerEntry& entry, const ListRulesPtr& rules,
                                                        const ServerLists& lists) {
  const std::shared_ptr<ServerLists> next = catalogue_->make_lists();
  copy_raw_entries(*next, lists);
  add_all_entries(entry, rules, *next);
  return next;
}

void ListBuilder::apply_rules(const EntryPtr& entry) {
  const std::shared_ptr<const ServerLists> shared = entry->shared.lists;
  if (shared && !same_rules(shared->rules(), entry->rules)) {
    if (count_raw_entries(*shared) > kMaxEntriesPerTurn) {
      catalogue_->withdraw(*entry);
      entry->shared.lists = nullptr;
      loop_.spawn(rebuild_in_slices(shared_from_this(), entry, shared));
    } else {
      catalogue_->replace_shared(*entry, rebuilt(*entry, entry->rules, *shared));
    }
  }
  bool changed = false;
  for (const auto& [key, cache] : entry->unshared) {
    const ListRulesPtr rules = rules_for(*entry, *cache);
    if (!cache->lists || same_rules(cache->lists->rules(), rules)) continue;
    changed = true;
    const bool many = count_raw_entries(*cache->lists) > kMaxEntriesPerTurn;
    // Without lists of its own the session or user sees the shared lists.
    const bool use_shared = cache->quarantined.empty() && (cache->lists == shared || many);
    cache->lists = use_shared ? entry->shared.lists : rebuilt(*entry, rules, *cache->lists);
  }
  if (changed) catalogue_->drop_views();
}

Task<void> ListBuilder::rebuild_in_slices(std::shared_ptr<ListBuilder> self, EntryPtr entry,
                                          std::shared_ptr<const ServerLists> lists) {
  const std::shared_ptr<ServerLists> next = self->catalogue_->make_lists();
  copy_raw_entries(*next, *lists);
  co_await self->add_entries(entry, entry->rules, next);
  if (entry->retired || entry->shared.lists) co_return;
  self->catalogue_->replace_shared(*entry, next);
  self->apply_rules(entry);
}

}  // namespace fairlead::gateway
