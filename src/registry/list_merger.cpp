// merge_lists(): drift of the entries that a server lists, see docs/registry.md.
#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "fairlead/base/string_map.hpp"
#include "registry/canonical.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

namespace {

bool is_same(std::string_view kind, const json::Raw& a, const json::Raw& b) {
  return same_entry(kind, json::View(a), json::View(b));
}

// The rows of drift of one list, by name of the entry, in the order of their creation.
using RowsByName = StringMap<std::vector<Drift>>;

class ListMerger {
 public:
  ListMerger(const Server& server, const StoredLists* stored, const DriftRows* drift, Time now)
      : server_(server), stored_(stored), drift_(drift), now_(now) {
    if (!drift) return;
    for (const auto& [id, row] : *drift) open_rows_ += row->status == DriftStatus::open;
  }

  ListMerge merge(const FetchedEntries& fetched) &&;

 private:
  void merge_list(const ListMember& list, const std::vector<json::Raw>& fetched);
  bool copy_if_unchanged(const ListMember& list, const std::vector<json::Raw>& fetched);
  void merge_changed_list(const ListMember& list, const std::vector<json::Raw>& fetched);
  ListedEntry merge_entry(const ListMember& list, const std::string& name, const json::Raw& entry,
                          const ListedEntry* known);
  bool quarantine_new(const ListMember& list, const std::string& name, const json::Raw& entry);
  bool quarantine_changed(const ListMember& list, const std::string& name, const json::Raw& entry,
                          const ListedEntry& known);
  bool replace_open_row(std::string_view kind, Drift& row, const json::Raw& entry);
  bool record_change(std::string_view kind, const std::string& name, const json::Raw& before,
                     const json::Raw& after, bool must_quarantine);
  void keep_vanished(const ListMember& list, const StringMap<const ListedEntry*>& known,
                     const StringMap<const ListedEntry*>& listed);
  void limit_vanished();
  void close_rows_of(std::span<const VanishedEntry> forgotten);
  RowsByName rows_of(std::string_view kind) const;
  Drift* newest_row(const std::string& name, DriftStatus status);
  Drift* rejected_row(std::string_view kind, const std::string& name, const json::Raw& after);
  Drift* earlier_row(std::string_view kind, const std::string& name, const json::Raw& before,
                     const json::Raw& after);
  void save(const Drift& row);

  const Server& server_;
  const StoredLists* stored_;
  const DriftRows* drift_;
  Time now_;
  std::size_t open_rows_ = 0;
  RowsByName rows_;  // of the list that is being merged
  ListMerge merged_;
};

RowsByName ListMerger::rows_of(std::string_view kind) const {
  RowsByName rows;
  if (!drift_) return rows;
  for (const auto& [id, row] : *drift_) {
    if (row->kind == kind) rows[row->name].push_back(*row);
  }
  return rows;
}

Drift* ListMerger::newest_row(const std::string& name, DriftStatus status) {
  const auto found = rows_.find(name);
  if (found == rows_.end()) return nullptr;
  const auto row = std::find_if(found->second.rbegin(), found->second.rend(),
                                [status](const Drift& drift) { return drift.status == status; });
  return row == found->second.rend() ? nullptr : &*row;
}

// The rejected row with this change that was seen last: its `before` is the approved entry.
Drift* ListMerger::rejected_row(std::string_view kind, const std::string& name, const json::Raw& after) {
  const auto found = rows_.find(name);
  if (found == rows_.end()) return nullptr;
  Drift* newest = nullptr;
  for (Drift& row : found->second) {
    if (row.status != DriftStatus::rejected || (newest && row.detected_at < newest->detected_at)) continue;
    if (is_same(kind, row.after, after)) newest = &row;
  }
  return newest;
}

// A row with this change that can be used again: servers may alternate between two versions.
Drift* ListMerger::earlier_row(std::string_view kind, const std::string& name, const json::Raw& before,
                               const json::Raw& after) {
  const auto found = rows_.find(name);
  if (found == rows_.end()) return nullptr;
  for (Drift& row : found->second) {
    const bool is_closed = row.status == DriftStatus::rejected || row.status == DriftStatus::reverted;
    if (is_closed && is_same(kind, row.before, before) && is_same(kind, row.after, after)) return &row;
  }
  return nullptr;
}

void ListMerger::save(const Drift& row) {
  merged_.changed = true;
  merged_.drift.push_back(row);
}

ListMerge ListMerger::merge(const FetchedEntries& fetched) && {
  if (stored_) {
    merged_.lists.kinds_listed = stored_->kinds_listed;
  } else {
    merged_.changed = true;
  }
  merged_.lists.fetched_at = now_;
  for (const ListMember& list : kListMembers) {
    if (const auto& entries = fetched.*list.fetched) {
      merge_list(list, *entries);
    } else if (stored_) {
      merged_.lists.*list.stored = stored_->*list.stored;
      for (const VanishedEntry& vanished : stored_->vanished) {
        if (vanished.kind == list.kind) merged_.lists.vanished.push_back(vanished);
      }
    }
  }
  limit_vanished();
  return std::move(merged_);
}

void ListMerger::merge_list(const ListMember& list, const std::vector<json::Raw>& fetched) {
  if (copy_if_unchanged(list, fetched)) return;
  merged_.changed = true;
  rows_ = rows_of(list.kind);
  merge_changed_list(list, fetched);
  merged_.lists.kinds_listed = static_cast<std::uint8_t>(merged_.lists.kinds_listed | list.bit);
}

// Nearly every fetch returns the same bytes as the one before. The stored entries share one buffer, so they
// are kept instead of the fetched ones.
bool ListMerger::copy_if_unchanged(const ListMember& list, const std::vector<json::Raw>& fetched) {
  if (!stored_ || (stored_->kinds_listed & list.bit) == 0) return false;
  const std::vector<ListedEntry>& known = stored_->*list.stored;
  const bool equal = std::ranges::equal(known, fetched, [](const ListedEntry& entry, const json::Raw& raw) {
    return entry.entry.text() == raw.text();
  });
  if (!equal) return false;
  std::vector<ListedEntry>& entries = merged_.lists.*list.stored;
  entries = known;
  for (ListedEntry& entry : entries) entry.last_seen = now_;
  for (const VanishedEntry& vanished : stored_->vanished) {
    if (vanished.kind == list.kind) merged_.lists.vanished.push_back(vanished);
  }
  return true;
}

void ListMerger::merge_changed_list(const ListMember& list, const std::vector<json::Raw>& fetched) {
  StringMap<const ListedEntry*> known;
  if (stored_) {
    for (const VanishedEntry& vanished : stored_->vanished) {
      if (vanished.kind != list.kind) continue;
      if (const auto name = entry_name(list, json::View(vanished.last.entry)))
        known.try_emplace(*name, &vanished.last);
    }
    for (const ListedEntry& entry : stored_->*list.stored) {
      if (const auto name = entry_name(list, json::View(entry.entry))) known.insert_or_assign(*name, &entry);
    }
  }
  StringMap<const ListedEntry*> listed;
  std::vector<ListedEntry>& entries = merged_.lists.*list.stored;
  entries.reserve(fetched.size());
  for (const json::Raw& entry : fetched) {
    const std::optional<std::string> name = entry_name(list, json::View(entry));
    // Of several entries of one name, the first counts, as in the catalogue.
    if (!name || listed.contains(*name)) continue;
    const auto found = known.find(*name);
    entries.push_back(merge_entry(list, *name, entry, found == known.end() ? nullptr : found->second));
    listed.emplace(*name, &entries.back());
  }
  keep_vanished(list, known, listed);
}

ListedEntry ListMerger::merge_entry(const ListMember& list, const std::string& name, const json::Raw& entry,
                                    const ListedEntry* known) {
  ListedEntry merged;
  merged.entry = entry;
  merged.first_seen = known ? known->first_seen : now_;
  merged.last_seen = now_;
  merged.quarantined =
      known ? quarantine_changed(list, name, entry, *known) : quarantine_new(list, name, entry);
  return merged;
}

bool ListMerger::quarantine_new(const ListMember& list, const std::string& name, const json::Raw& entry) {
  const bool is_first_list = (merged_.lists.kinds_listed & list.bit) == 0;
  if (is_first_list || !list.compares_membership || server_.drift != DriftPolicy::quarantine) return false;
  return record_change(list.kind, name, json::Raw(), entry, false);
}

// Returns whether the entry must be quarantined. An entry is compared with the approved one: the entry before
// the change that is open or rejected, or else the entry that is known.
bool ListMerger::quarantine_changed(const ListMember& list, const std::string& name, const json::Raw& entry,
                                    const ListedEntry& known) {
  if (is_same(list.kind, known.entry, entry)) return known.quarantined;
  if (Drift* const open = newest_row(name, DriftStatus::open))
    return replace_open_row(list.kind, *open, entry);
  if (!known.quarantined) return record_change(list.kind, name, known.entry, entry, false);
  // Without a row, which entry was approved is not known.
  const Drift* const rejected = rejected_row(list.kind, name, known.entry);
  const json::Raw approved = rejected ? rejected->before : json::Raw();
  if (!approved.absent() && is_same(list.kind, approved, entry)) return false;
  return record_change(list.kind, name, approved, entry, true);
}

// Closes the row, because the server no longer lists its change. A further change gets a row of its own, so
// that an approval applies only to the text that was shown.
bool ListMerger::replace_open_row(std::string_view kind, Drift& row, const json::Raw& entry) {
  row.status = DriftStatus::reverted;
  row.resolved_at = now_;
  --open_rows_;
  save(row);
  if (!row.before.absent() && is_same(kind, row.before, entry)) return false;
  return record_change(kind, row.name, row.before, entry, row.quarantined);
}

// Returns whether the changed entry must be quarantined.
bool ListMerger::record_change(std::string_view kind, const std::string& name, const json::Raw& before,
                               const json::Raw& after, bool must_quarantine) {
  Drift row;
  if (const Drift* const earlier = earlier_row(kind, name, before, after)) row = *earlier;
  const bool was_rejected = row.status == DriftStatus::rejected;
  const bool quarantine = must_quarantine || server_.drift == DriftPolicy::quarantine ||
                          rejected_row(kind, name, after) != nullptr;
  if (!quarantine && server_.drift == DriftPolicy::accept) return false;
  if (!was_rejected && open_rows_ >= kMaxOpenDrift) return quarantine;
  if (row.id.empty()) {
    row.server_id = server_.id;
    row.kind = kind;
    row.name = name;
    row.before = before;
    row.after = after;
  }
  row.detected_at = now_;
  row.quarantined = quarantine;
  if (!was_rejected) {
    ++open_rows_;
    row.status = DriftStatus::open;
    row.resolved_at.reset();
    row.resolved_by.clear();
  }
  save(row);
  return quarantine;
}

void ListMerger::keep_vanished(const ListMember& list, const StringMap<const ListedEntry*>& known,
                               const StringMap<const ListedEntry*>& listed) {
  for (const auto& [name, entry] : known) {
    if (listed.contains(name)) continue;
    if (!list.compares_membership && !entry->quarantined && !newest_row(name, DriftStatus::open)) continue;
    merged_.lists.vanished.push_back(VanishedEntry{std::string(list.kind), *entry});
  }
}

// Forgets the entries that vanished first; those in quarantine last. Nobody can resolve their changes any
// more, so these are closed.
void ListMerger::limit_vanished() {
  std::vector<VanishedEntry>& vanished = merged_.lists.vanished;
  std::size_t bytes = 0;
  for (const VanishedEntry& entry : vanished) bytes += entry.last.entry.text().size();
  if (vanished.size() <= kMaxVanishedEntries && bytes <= kMaxVanishedBytes) return;
  std::ranges::sort(vanished, [](const VanishedEntry& a, const VanishedEntry& b) {
    if (a.last.quarantined != b.last.quarantined) return b.last.quarantined;
    return a.last.last_seen < b.last.last_seen;
  });
  std::size_t forgotten = 0;
  while (vanished.size() - forgotten > kMaxVanishedEntries || bytes > kMaxVanishedBytes)
    bytes -= vanished[forgotten++].last.entry.text().size();
  close_rows_of(std::span(vanished).first(forgotten));
  vanished.erase(vanished.begin(), vanished.begin() + static_cast<std::ptrdiff_t>(forgotten));
  merged_.changed = true;
}

void ListMerger::close_rows_of(std::span<const VanishedEntry> forgotten) {
  if (!drift_) return;
  std::set<std::pair<std::string_view, std::string>> names;
  for (const VanishedEntry& entry : forgotten) {
    const ListMember* const list = find_list(entry.kind);
    if (list) names.emplace(list->kind, entry_name(*list, json::View(entry.last.entry)).value_or(""));
  }
  for (const auto& [id, row] : *drift_) {
    if (row->status != DriftStatus::open || !names.contains({row->kind, row->name})) continue;
    Drift closed = *row;
    closed.status = DriftStatus::reverted;
    closed.resolved_at = now_;
    save(closed);
  }
}

}  // namespace

ListMerge merge_lists(const Server& server, const StoredLists* stored, const DriftRows* drift,
                      const FetchedEntries& fetched, Time now) {
  return ListMerger(server, stored, drift, now).merge(fetched);
}

std::size_t work_to_merge(const FetchedEntries& fetched) noexcept {
  constexpr std::size_t kBytesPerEntry = 500;
  std::size_t work = 0;
  for (const ListMember& list : kListMembers) {
    const auto& entries = fetched.*list.fetched;
    if (!entries) continue;
    for (const json::Raw& entry : *entries) work += entry.text().size() + kBytesPerEntry;
  }
  return work;
}

StoredLists preview_large_lists(const StoredLists* stored, const FetchedEntries& fetched, Time now) {
  StoredLists lists = stored ? *stored : StoredLists();
  lists.fetched_at = now;
  for (const ListMember& list : kListMembers) {
    const auto& entries = fetched.*list.fetched;
    if (!entries) continue;
    const bool is_first = (lists.kinds_listed & list.bit) == 0;
    const std::vector<ListedEntry> known = std::exchange(lists.*list.stored, {});
    auto next = known.begin();
    for (const json::Raw& entry : *entries) {
      const bool is_known = next != known.end() && next->entry.text() == entry.text();
      ListedEntry listed = is_known ? *next++ : ListedEntry{entry, now, now, !is_first};
      listed.last_seen = now;
      (lists.*list.stored).push_back(std::move(listed));
    }
    lists.kinds_listed = static_cast<std::uint8_t>(lists.kinds_listed | list.bit);
  }
  return lists;
}

bool can_quarantine(const Server& server, const StoredLists* stored, const DriftRows* drift) {
  const auto is_quarantined = [](const ListedEntry& entry) { return entry.quarantined; };
  if (server.drift == DriftPolicy::quarantine || (drift && !drift->empty())) return true;
  if (!stored) return false;
  return std::ranges::any_of(stored->vanished, is_quarantined, &VanishedEntry::last) ||
         std::ranges::any_of(kListMembers, [&](const ListMember& list) {
           return std::ranges::any_of(stored->*list.stored, is_quarantined);
         });
}

}  // namespace fairlead::registry
