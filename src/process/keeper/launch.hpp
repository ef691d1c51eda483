// Starting one program, from the keeper.
#pragma once

#include <sys/types.h>

#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

struct Launch {
  const Request& request;
  const char* path;
  const char* cwd;  // empty: the keeper's own
  char* const* argv;
  char* const* envp;
  char* const* rules;
  const char* manifest;  // null: none
  const char* entry;
  int cgroup;        // -1: none
  const int* stdio;  // three descriptors, none of them 0, 1 or 2
};

// A process that is on its way to its program.
struct Launching {
  pid_t pid;    // 0 when there is none
  int arrival;  // ends once it has got there or failed
  int error;    // why there is none
};

// Does not wait: a working directory or a program on a file system that hangs delays that child alone.
// `outcome` is memory shared with the child, complete when `arrival` has ended. It may say already what
// failed.
Launching launch(const Launch& what, Outcome& outcome);

// Notes in `outcome` that something that was asked for failed. False when the program must not run without.
bool note(const Request& request, Flag flag, int error, Outcome& outcome);

}  // namespace fairlead::keeper
