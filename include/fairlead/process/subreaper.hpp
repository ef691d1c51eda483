// Ending descendants whose keeper was killed, in programs that start no child processes of their own.
#pragma once

#include "fairlead/base/result.hpp"

namespace fairlead {

// Makes this process a subreaper (PR_SET_CHILD_SUBREAPER): if a keeper is killed, its orphans become children
// of this process, which kills and reaps them, including those without session, cookie and cgroup.
//
// From then on every child process other than a keeper is killed when a keeper dies, so only a program that
// starts all its processes through Child::spawn may call this. Fails with kind `io` if the process has
// children already, or the kernel refuses. Call it before any thread or child is started. Thread-safe.
Result<void> become_subreaper();

}  // namespace fairlead
