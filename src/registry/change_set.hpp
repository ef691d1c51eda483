// ChangeSet: rows as they are in the database, to be applied to the state. Private to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "registry/configuration.hpp"
#include "registry/state.hpp"
#include "sql/database.hpp"

namespace fairlead::registry {

// A value of the configuration; absent JSON is the default.
struct ConfigValue {
  json::Raw value;
};
// The lists of a server; null if none are stored.
struct ListsRow {
  StoredListsPtr lists;
};

// A row after a change. A null pointer: the row was removed, or it cannot be read.
struct ChangedRow {
  std::string id;
  std::variant<ServerPtr, EndpointPtr, UserPtr, GroupPtr, TokenPtr, DriftPtr, SecretPtr, SecretDataKeyPtr,
               ListsRow, ConfigValue>
      row;
  bool unreadable = false;  // the row is in the database, but cannot be read
};

struct ChangeSet {
  std::int64_t revision = 0;     // of the state when the rows are applied
  bool complete = false;         // has all rows of the database: rows of the state that it lacks were removed
  std::vector<ChangedRow> rows;  // in the order of the revisions that changed them
};

// Reads the rows that were changed after the revision `since`, or all rows if too much has changed since. A
// row that is invalid is logged and counts as removed.
Result<ChangeSet> read_changes(sql::Transaction& transaction, std::int64_t since, const Log& log);
// Reads all rows. REQUIRES: the transaction has locked the revision, so that all rows are of one revision.
Result<ChangeSet> read_everything(sql::Transaction& transaction, const Log& log);

// Locks the revision against all other writers until the end of the transaction, and returns it.
Result<std::int64_t> lock_revision(sql::Transaction& transaction);

// What subscribers learn of one change set, in the order of the revisions.
struct AppliedChanges {
  std::vector<std::variant<Change, ListsChange>> events;
};
// Changes `state` to the revision of `changes`. Rows that are part of it already cause no event. Does nothing
// if `state` is at the revision of `changes` or a later one.
AppliedChanges apply_changes(State& state, ChangeSet changes, const Log& log);

}  // namespace fairlead::registry
