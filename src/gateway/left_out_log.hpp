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

// Logs which URIs a server has `listed`, and did not list `before` (null: nothing), that another server
// lists, too: the first by name has it. At most Listed::kMaxProblems lines and one with the number of the
// others. Works in slices, and looks at what the other servers list by then. `loop` outlives the task.
Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const ServerTable> servers,
                              std::shared_ptr<const Listed> listed, std::shared_ptr<const Listed> before);

}  // namespace fairlead::gateway
