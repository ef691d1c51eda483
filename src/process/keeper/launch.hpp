// launch: forks a child and executes its program. Used by the keeper.
#pragma once

#include <sys/types.h>

#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

struct LaunchParams {
  const Request& request;
  const char* path;
  const char* cwd;  // empty: the keeper's own
  char* const* argv;
  char* const* envp;
  char* const* landlock_rules;  // see LandlockRuleset
  const char* manifest_path;    // null: none
  const char* entry_rest;       // the part of the manifest entry that follows the process identity
  int cgroup_fd;                // descriptor of the cgroup's directory; -1: none
  const int* stdio;             // three descriptors, none of them 0, 1 or 2
};

// A process that has been forked and has not yet executed its program.
struct LaunchedChild {
  pid_t pid;      // 0 if the fork failed
  int exec_pipe;  // read end of a pipe that reaches EOF when the program is executed or the start has failed
  int error;      // errno of a failed fork
};

// Forks the child and returns without waiting for the exec, so that a hanging file system of the working
// directory or the program delays only this child. `outcome` is in memory shared with the child. It is
// complete when `exec_pipe` has reached EOF. The caller may already have recorded failures in it.
LaunchedChild launch(const LaunchParams& params, SpawnOutcome& outcome);

// Records in `outcome` that the measure `flag` failed with `error`. Returns false if the measure is required,
// so that the program must not run.
bool record_failure(const Request& request, SpawnFlag flag, int error, SpawnOutcome& outcome);

}  // namespace fairlead::keeper
