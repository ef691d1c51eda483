#include "child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "accounting.hpp"

extern "C" char** environ;

namespace bench {

namespace {

constexpr int kExitTimeoutMs = 3000;

}  // namespace

void fail(const char* message) {
  std::fprintf(stderr, "bench: %s (%s)\n", message, std::strerror(errno));
  std::exit(1);
}

Child start_child(char* const* argv, int core, bool show_stderr) {
  int down[2];
  int up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  if (!show_stderr) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);

  // A child process inherits the CPU affinity of its parent.
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  pin_to_core(core);
  Child child;
  errno = posix_spawnp(&child.pid, argv[0], &actions, nullptr, argv, environ);
  if (errno != 0) fail(argv[0]);
  sched_setaffinity(0, sizeof before, &before);

  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  child.stdin_fd = down[1];
  child.stdout_fd = up[0];
  return child;
}

bool end_child(Child& child) {
  close(child.stdin_fd);
  int status = 0;
  for (int waited = 0; waited < kExitTimeoutMs; ++waited) {
    if (waitpid(child.pid, &status, WNOHANG) == child.pid)
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    usleep(1000);
  }
  kill(child.pid, SIGKILL);
  waitpid(child.pid, &status, 0);
  return false;
}

}  // namespace bench
