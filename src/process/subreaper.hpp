// Kills the orphans of a killed keeper in a process that is a subreaper. Private part of
// fairlead/process/subreaper.hpp.
#pragma once

#include <sys/types.h>

#include <mutex>

namespace fairlead::process {

// Returns a lock during which kill_orphans() blocks. The caller must hold it from before a keeper is started
// until add_keeper() has been called.
std::unique_lock<std::mutex> lock_keepers();

// Register and unregister a keeper: kill_orphans() spares the registered keepers. REQUIRES: the caller of
// add_keeper() holds the lock, and the caller of remove_keeper() does not.
void add_keeper(pid_t pid);
void remove_keeper(pid_t pid);

// Kills all children of this process that are not keepers, and reaps those that have ended. Returns whether
// it found any. The caller must repeat the call until none is found, because a descendant becomes a child of
// this process only when its parent ends. Does nothing and returns false if this process is not a subreaper.
// Thread-safe.
bool kill_orphans();

}  // namespace fairlead::process
