// Starting the keeper program itself, and seeing it off.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::process {

struct KeeperProcess {
  pid_t pid = 0;
  UniqueFd socket;  // ours; when it is closed the keeper kills everything and ends
  UniqueFd pidfd;
};

// Blocks until the program runs, a millisecond or so. Errors are of kind `spawn`.
Result<KeeperProcess> start_keeper();

// Why a child is not started by a keeper that has ended: it was killed, or is another program.
Error keeper_lost(const std::string& child, bool had_answered);

// Reaps it if it has ended, waiting for that at most `patience`. Returns whether it is gone.
bool reap_keeper(int pidfd, std::chrono::milliseconds patience) noexcept;

}  // namespace fairlead::process
