// A child process on two pipes, started without the fairlead library, so that nothing of it is between the
// driver and the server.
#pragma once

#include <sys/types.h>

namespace bench {

struct Child {
  pid_t pid = 0;
  int stdin_fd = -1;   // the write end of its stdin
  int stdout_fd = -1;  // the read end of its stdout
};

// Starts argv[0], searched in PATH, on `core` (negative: any core). Its stderr is discarded unless
// `show_stderr`. Exits this process on failure.
Child start_child(char* const* argv, int core, bool show_stderr);

// Closes the child's stdin and waits for it to exit; kills it if it does not. Returns whether it exited by
// itself with status 0.
bool end_child(Child& child);

// Prints `message` and the description of errno to stderr, and exits with status 1.
[[noreturn]] void fail(const char* message);

}  // namespace bench
