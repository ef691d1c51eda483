// Starting one program, from the keeper.
#pragma once

#include <sys/types.h>

#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

struct Launch {
  const char* path;
  const char* cwd;  // empty: the keeper's own
  char* const* argv;
  char* const* envp;
  const int* stdio;  // three descriptors, none of them 0, 1 or 2
};

// A process that is on its way to its program.
struct Launching {
  pid_t pid;   // 0 when there is none
  int status;  // readable once it has got there or failed; for outcome()
  int error;   // why there is none
};

struct Outcome {
  Step step;  // none: it runs its program
  int error;
};

// Does not wait: a working directory or a program on a file system that hangs delays that child alone.
Launching launch(const Launch& what);
// Reads it, waiting if need be, and closes `status`.
Outcome outcome(int status);

}  // namespace fairlead::keeper
