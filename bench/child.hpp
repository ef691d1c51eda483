// A program on two pipes, started the plain way: nothing of ours lies between the driver and it.
#pragma once

#include <sys/types.h>

namespace bench {

struct Child {
  pid_t pid = 0;
  int to = -1;    // its stdin
  int from = -1;  // its stdout
};

// Starts argv[0], found in PATH, on `core` (negative: anywhere), its stderr thrown away unless `show_stderr`.
// Ends this program when that fails.
Child start_child(char* const* argv, int core, bool show_stderr);

// Closes its stdin, waits for it to end by itself, and kills it when it does not. Returns whether it ended by
// itself with status 0.
bool end_child(Child& child);

[[noreturn]] void fail(const char* what);

}  // namespace bench
