// A cgroup for each child, in a directory the library has found to be ours: what is started in it cannot
// leave it, so killing the cgroup leaves nothing of the child.
#pragma once

#include <cstdint>

namespace fairlead::keeper {

// Makes it. Returns its descriptor (close-on-exec), or -1 and errno.
int make_cgroup(const char* directory);
// Writes one of its files. Returns errno, or 0.
int set_cgroup(int cgroup, const char* file, std::uint64_t value);
// Moves the calling process into it. Returns errno, or 0.
int enter_cgroup(int cgroup);
// Kills all that is in it.
void kill_cgroup(const char* directory);
// Whether its memory limit has killed somebody.
bool ran_out_of_memory(const char* directory);
// With the cgroups in it. True when it is gone; false while something lives in it.
bool remove_cgroup(const char* directory);

}  // namespace fairlead::keeper
