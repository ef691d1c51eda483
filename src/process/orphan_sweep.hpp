// Orphans of a keeper that was killed, in a process that is a subreaper (fairlead/process/subreaper.hpp).
#pragma once

#include <sys/types.h>

#include <mutex>

namespace fairlead::process {

// While the lock is held no sweep runs. Hold it from before a keeper is started until add_keeper().
std::unique_lock<std::mutex> block_orphan_sweeps();

// Keepers are the children that a sweep spares. REQUIRES: add_keeper: the lock is held.
void add_keeper(pid_t pid);
void remove_keeper(pid_t pid);

// Kills all children of this process that are no keepers and reaps those that have ended. Returns whether
// some are left: call again until none are, since what a child had started becomes our child only when it
// ends. Does nothing and returns false if this process is no subreaper. Thread-safe.
bool kill_orphans();

}  // namespace fairlead::process
