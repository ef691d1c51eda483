// Starts the keeper program and reaps it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::process {

struct KeeperProcess {
  pid_t pid = 0;
  UniqueFd socket;  // the library's end; when it is closed, the keeper kills its children and exits
  UniqueFd pidfd;
};

// Starts the keeper. Blocks until the program runs, about a millisecond. Fails with kind `spawn`.
Result<KeeperProcess> start_keeper();

// Returns the error for a child that was not started because the keeper has ended: the keeper was killed, or
// FAIRLEAD_KEEPER names another program.
Error keeper_death_error(const std::string& child, bool had_answered);

// Waits at most `timeout` for the keeper to end, and reaps it. Returns whether the keeper has ended.
bool reap_keeper(int pidfd, std::chrono::milliseconds timeout) noexcept;

}  // namespace fairlead::process
