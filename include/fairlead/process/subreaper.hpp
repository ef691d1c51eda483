// Subreaper: ends descendants whose keeper was killed, in programs that start all processes through Child.
#pragma once

#include "fairlead/base/result.hpp"

namespace fairlead {

// Makes this process a subreaper (PR_SET_CHILD_SUBREAPER): if a keeper is killed, its orphans become children
// of this process, which kills and reaps them, including those that no session, cookie or cgroup identifies.
//
// From then on, when a keeper dies, every child process other than a keeper is killed; so only a program that
// starts all its processes through Child::spawn may call this. Fails with kind `io` if the process already
// has children or the kernel rejects the request. Call it before any thread or child is started. Thread-safe.
Result<void> become_subreaper();

}  // namespace fairlead
