#include "process/keeper/launch.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::keeper {

namespace {

[[noreturn]] void give_up(int status, Step step) {
  const Outcome why{step, errno};
  static_cast<void>(!write(status, &why, sizeof why));
  _exit(127);
}

[[noreturn]] void become(const Launch& what, pid_t keeper, int status) {
  close(kSocket);  // that it ends tells the library that the keeper has
  // Own session and group: signals to the group reach what the child starts, and no terminal's Ctrl-C does.
  // The leader of a session cannot leave its group.
  if (setsid() < 0) give_up(status, Step::process);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) give_up(status, Step::process);
  if (getppid() != keeper) _exit(127);  // it died before the line above took effect
  for (int fd = 0; fd < 3; ++fd) {
    if (dup2(what.stdio[fd], fd) < 0) give_up(status, Step::descriptors);
  }
  // All of the keeper's descriptors are close-on-exec; this is for the day one is not.
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  if (*what.cwd && chdir(what.cwd) < 0) give_up(status, Step::chdir);
  // Dispositions are the default already: the keeper has none of its own, it blocks signals instead.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(what.path, what.argv, what.envp);
  give_up(status, Step::exec);
}

}  // namespace

// A plain fork, not vfork: there is little to copy, and we need not wait for the program to be loaded.
Launching launch(const Launch& what) {
  int status[2];
  if (pipe2(status, O_CLOEXEC) < 0) return {0, -1, errno};
  const pid_t keeper = getpid();
  const pid_t pid = _Fork();
  if (pid == 0) become(what, keeper, status[1]);
  const int error = errno;
  close(status[1]);
  if (pid > 0) return {pid, status[0], 0};
  close(status[0]);
  return {0, -1, error};
}

Outcome outcome(int status) {
  Outcome why{Step::none, 0};
  ssize_t n;
  do n = read(status, &why, sizeof why);
  while (n < 0 && errno == EINTR);
  close(status);
  // Its end was closed by execve, or with the process: then its death is reported as that of any child.
  return n == sizeof why ? why : Outcome{Step::none, 0};
}

}  // namespace fairlead::keeper
