// The lists of a server as they are stored, and the comparison of fetched lists with them. Private to the
// library.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/registry.hpp"

namespace fairlead::registry {

// One of the four lists of a server.
struct ListMember {
  std::string_view kind;  // as in Drift::kind
  std::string_view key;   // the member of an entry that names it
  std::string_view name;  // of the list in the stored document
  std::vector<ListedEntry> StoredLists::*stored;
  std::optional<std::vector<json::Raw>> FetchedEntries::*fetched;
  std::uint8_t bit;  // in StoredLists::kinds_listed
  // A new entry of a list that was fetched before is drift if the server's policy is quarantine. Entries that
  // vanish are remembered.
  bool compares_membership;
};
extern const std::array<ListMember, 4> kListMembers;

// Returns null for an unknown kind.
const ListMember* find_list(std::string_view kind) noexcept;
// Returns the name of an entry; nullopt if it has none.
std::optional<std::string> entry_name(const ListMember& list, json::View entry);

// Returns the JSON document that is stored; `fetched_at` is not part of it.
std::string encode_lists(const StoredLists& lists);
// The entries share the memory of `document`.
Result<StoredLists> decode_lists(std::string document, Time fetched_at);

using DriftRows = std::map<std::string, std::shared_ptr<const Drift>>;  // by id
// The difference between fetched lists and stored ones.
struct ListMerge {
  StoredLists lists;
  std::vector<Drift> drift;  // rows that are new or changed; new ones have no id
  bool changed = false;      // whether anything but the time of the fetch differs
};
// Returns whether the fetched lists have the same bytes as the stored ones.
bool is_unchanged(const StoredLists& stored, const FetchedEntries& fetched);
// Returns `stored` with the times of a fetch at `now` that returned the same entries.
StoredLists seen_again(const StoredLists& stored, const FetchedEntries& fetched, Time now);

// Returns whether both have the same entries, apart from the times at which they were seen.
bool have_same_entries(const StoredLists& a, const StoredLists& b);

// Limits on the entries that a server no longer lists and that are remembered: max_vanished_entries and
// max_vanished_bytes.
inline constexpr std::size_t kMaxVanishedEntries = 1000;
inline constexpr std::size_t kMaxVanishedBytes = 4u << 20;
// The limit max_open_drift, for each server. Further entries are quarantined, if the policy says so, but
// their changes are not recorded.
inline constexpr std::size_t kMaxOpenDrift = 1000;

// `stored` is null for a server that was never listed. Entries of a list that was never fetched are approved
// as they are. `drift` is null if there is none of this server.
ListMerge merge_lists(const Server& server, const StoredLists* stored, const DriftRows* drift,
                      const FetchedEntries& fetched, Time now);
// Returns a measure of the time that merge_lists() takes: the bytes, and for each entry some more.
std::size_t work_to_merge(const FetchedEntries& fetched) noexcept;
// Returns the fetched lists with all entries quarantined whose bytes differ from those of the stored ones, in
// lists that were fetched before. Much faster than merge_lists().
StoredLists preview_large_lists(const StoredLists* stored, const FetchedEntries& fetched, Time now);

// Returns whether fetched lists of the server can have entries that are quarantined.
bool can_quarantine(const Server& server, const StoredLists* stored, const DriftRows* drift);

// Applies the resolution of a change to the entry that it concerns. `rows` has all rows of the server. Fails
// with kInvalidRow if the server does not list the changed entry any more, or if another row is about it.
Result<void> apply_resolution(StoredLists& lists, const DriftRows& rows, const Drift& drift,
                              DriftStatus resolution);

}  // namespace fairlead::registry
