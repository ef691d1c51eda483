// Log lines about the entries of servers that are omitted from the catalogue.
#pragma once

#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Logs why entries of the lists `now` of a server are omitted. Problems that its previous lists `before` had
// too are not logged again. Writes at most ServerLists::kMaxStoredProblems lines, and one line with the
// number of the other problems.
void log_omitted_entries(const Log& log, const ServerLists& before, const ServerLists& now);

// Logs duplicate URIs: URIs in the `lists` of a server that another server lists, too. URIs that were already
// in the server's previous lists `before` (null: none) are not logged again. The first of these servers in
// the order of names owns the URI. Writes at most ServerLists::kMaxStoredProblems lines, and one line with
// the number of the other duplicates. Works in slices; each slice reads the current lists of the other
// servers. REQUIRES: `loop` outlives the task.
Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const ServerTable> servers,
                              std::shared_ptr<const ServerLists> lists,
                              std::shared_ptr<const ServerLists> before);

}  // namespace fairlead::gateway
