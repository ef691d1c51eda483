// Sets the keeper apart from the process that started it, then lets it serve.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/keeper/keeper.hpp"

namespace fairlead::keeper {

namespace {

void stand_apart() {
  prctl(PR_SET_NAME, "fairlead-keeper");
  if (close_range(kSocket + 1, ~0u, 0) < 0) {  // a container that forbids the call
    for (long fd = sysconf(_SC_OPEN_MAX); --fd > kSocket;) close(static_cast<int>(fd));
  }
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  // 0, 1 and 2 stay taken, so that no descriptor a child is to get lands there.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup3(null < 0 ? kSocket : null, fd, O_CLOEXEC);
  if (null > kSocket) close(null);
}

// Blocked, not ignored: what is ignored would stay ignored in the children, what is blocked they unblock.
// A service manager that signals the whole cgroup does not reach the children through us.
void ignore_signals() {
  char defaults[256] = {};  // the kernel's struct sigaction with SIG_DFL, whatever its size
  for (int signal = 1; signal <= 64; ++signal) {
    // By system call, as libc does not touch the two signals it reserves (and posix_spawn ignores them).
    syscall(SYS_rt_sigaction, signal, defaults, nullptr, 8);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

int run(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t parent = atoi(argv[1]);
  const bool scan = argc > 2 && strcmp(argv[2], "--scan-proc") == 0;
  ignore_signals();
  stand_apart();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return 3;
  // Any process of this user can stop us. When the library's process ends, we go on and end the children.
  if (prctl(PR_SET_PDEATHSIG, SIGCONT) < 0) return 3;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  // The socket ends with us unless a process we forked holds it too; the pidfd ends with us in any case.
  const int parent_fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (signals < 0 || getppid() != parent) return 3;
  void* outcomes = mmap(nullptr, Keeper::kMaxPending * sizeof(Outcome), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (outcomes == MAP_FAILED) return 3;
  static Keeper keeper(signals, parent_fd, static_cast<Outcome*>(outcomes), scan);
  keeper.serve();
  keeper.end();
  return 0;
}

}  // namespace

}  // namespace fairlead::keeper

int main(int argc, char** argv) {
  return fairlead::keeper::run(argc, argv);
}
