// Killing what a dead keeper left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace fairlead::process {

// Kills every process whose environment has a cookie of `keeper` with a token of the same run as
// `some_token`. Looks through all of /proc, so it is for rare occasions.
void kill_by_cookie(pid_t keeper, std::uint64_t some_token);

}  // namespace fairlead::process
