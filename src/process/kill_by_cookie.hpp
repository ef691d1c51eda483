// kill_by_cookie: kills the processes that a dead keeper has left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace fairlead::process {

// Kills every process whose environment has a cookie of `keeper` from the same run of the library: the upper
// half of the cookie's token equals that of `run_token`. Expensive, because it scans all of /proc.
void kill_by_cookie(pid_t keeper, std::uint64_t run_token);

}  // namespace fairlead::process
