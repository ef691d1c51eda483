// ListBuilder: makes the catalogue entries of a server's lists: applies the rules of the server to what it
// has listed. Private to the layer.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "fairlead/base/error.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "gateway/catalogue_store.hpp"

namespace fairlead::gateway {

class ListBuilder : public std::enable_shared_from_this<ListBuilder> {
 public:
  using EntryPtr = std::shared_ptr<ServerEntry>;
  using ErrorsByKind = std::array<std::optional<Error>, kListKinds.size()>;

  ListBuilder(Loop& loop, std::shared_ptr<CatalogueStore> catalogue)
      : loop_(loop), catalogue_(std::move(catalogue)) {}

  // Sets the function that is called with fetched lists; may be null.
  void set_observer(ListsObserver observer) { observer_ = std::move(observer); }
  // Passes fetched lists to the observer, and adds the entries that it quarantines to the rules of the server
  // or, if `cache` is not ServerEntry::shared, to those of the cache. `errors` tells which lists could not be
  // fetched.
  void observe(ServerEntry& entry, ListCache& cache, const ServerLists& fetched,
               const ErrorsByKind& errors) const;
  // Passes the lists that the server itself has returned to the observer again: the shared lists unless they
  // are stored lists, and those of unshared upstreams that have quarantined entries. apply_rules() has to be
  // called afterwards.
  void observe_again(ServerEntry& entry) const;
  // Returns the rules for the lists in `cache`, one of the caches of `entry`.
  static ListRulesPtr rules_for(const ServerEntry& entry, const ListCache& cache);
  // Adds a catalogue entry for each raw entry of `lists` that the rules of the server do not exclude, in
  // slices. If the rules may have changed meanwhile, the caller publishes the lists and calls apply_rules()
  // in the same turn.
  Task<void> add_entries(EntryPtr entry, ListRulesPtr rules, std::shared_ptr<ServerLists> lists) const;

  // Uses stored lists as the shared lists of `entry`, with its current rules.
  void use_stored(ServerEntry& entry, const registry::StoredLists& stored);
  // Applies the current rules of `entry` to all its lists. Lists of many entries are withdrawn until the
  // rules have been applied to them, in slices.
  void apply_rules(const EntryPtr& entry);

 private:
  // Returns the entries that the observer quarantines.
  EntryNames ask_observer(const std::string& server, const ServerLists& lists, const ErrorsByKind& errors,
                          bool to_be_stored) const;
  EntryNames ask_observer_again(const ServerEntry& entry, const ServerLists& lists) const;
  std::shared_ptr<const ServerLists> rebuilt(const ServerEntry& entry, const ListRulesPtr& rules,
                                             const ServerLists& lists);
  static Task<void> rebuild_in_slices(std::shared_ptr<ListBuilder> self, EntryPtr entry,
                                      std::shared_ptr<const ServerLists> lists);

  Loop& loop_;
  std::shared_ptr<CatalogueStore> catalogue_;
  ListsObserver observer_;
};

// Returns the entries that are quarantined in stored lists.
EntryNames quarantined_entries(const registry::StoredLists& stored);

}  // namespace fairlead::gateway
