// Functions for the cgroup of a child. The library chooses the directory, which must be delegated to this
// user. Processes cannot leave the cgroup, so killing it kills the child and all its descendants.
#pragma once

#include <cstdint>

namespace fairlead::keeper {

// Creates a cgroup. Returns a close-on-exec descriptor of its directory, or -1 with errno set.
int create_cgroup(const char* directory);
// Writes a value to a file of the cgroup. Returns errno, or 0 on success.
int write_cgroup_file(int cgroup, const char* file, std::uint64_t value);
// Moves the calling process into the cgroup. Returns errno, or 0 on success.
int join_cgroup(int cgroup);
// Kills all processes in the cgroup.
void kill_cgroup(const char* directory);
// Returns whether the memory limit of the cgroup has killed a process.
bool had_oom_kill(const char* directory);
// Removes the cgroup and the cgroups below it. Returns true if it no longer exists, false while it contains
// processes.
bool remove_cgroup(const char* directory);

}  // namespace fairlead::keeper
