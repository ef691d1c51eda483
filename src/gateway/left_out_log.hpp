// Log lines about entries of servers that clients are not offered.
#pragma once

#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Logs why entries of a server's lists are left out, except for what was the same `before`. At most
// Listed::kMaxProblems lines and one with the number of the others.
void log_left_out(const Log& log, const Listed& before, const Listed& now);

// Logs duplicate URIs: those that a server has `listed`, did not list `before` (null: nothing), and that
// another server lists too. The server that is first by name keeps such a URI. Writes at most
// Listed::kMaxProblems lines, and one with the number of the others. Works in slices, and reads the lists of
// the other servers as they are by then. `loop` outlives the task.
Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const ServerTable> servers,
                              std::shared_ptr<const Listed> listed, std::shared_ptr<const Listed> before);

}  // namespace fairlead::gateway
