// The keeper program: separates itself from the process that started it, then serves requests.
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

// Sets the name of the process, closes all inherited descriptors except the socket, and connects descriptors
// 0, 1 and 2 to /dev/null.
void set_name_and_descriptors() {
  prctl(PR_SET_NAME, "fairlead-keeper");
  if (close_range(kSocketFd + 1, ~0u, 0) < 0) {  // some containers forbid close_range()
    for (long fd = sysconf(_SC_OPEN_MAX); --fd > kSocketFd;) close(static_cast<int>(fd));
  }
  fcntl(kSocketFd, F_SETFD, FD_CLOEXEC);
  // Descriptors 0, 1 and 2 stay open, so that no descriptor received for a child gets one of these numbers.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup3(null < 0 ? kSocketFd : null, fd, O_CLOEXEC);
  if (null > kSocketFd) close(null);
}

// Blocks all signals, so that a service manager that signals the whole cgroup does not end the keeper, and
// with it the children. Signals are blocked and not ignored, because children would inherit ignored signals;
// they unblock the blocked ones before exec.
void block_signals() {
  char defaults[256] = {};  // zeros: the kernel's struct sigaction with SIG_DFL; larger than that struct
  for (int signal = 1; signal <= 64; ++signal) {
    // Uses the system call, because sigaction() of libc rejects the two signals that libc reserves, and
    // posix_spawn() sets these two to ignored.
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
  block_signals();
  set_name_and_descriptors();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return 3;
  // Any process of this user can stop the keeper with SIGSTOP. The kernel continues the keeper when the
  // library's process ends, so that the keeper can end the children.
  if (prctl(PR_SET_PDEATHSIG, SIGCONT) < 0) return 3;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  // The socket reaches EOF when the library's process ends, unless a process forked by it has a copy of the
  // socket. The pidfd becomes readable in any case.
  const int parent_fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (signals < 0 || getppid() != parent) return 3;
  void* outcomes = mmap(nullptr, Keeper::kMaxPendingStarts * sizeof(SpawnOutcome), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (outcomes == MAP_FAILED) return 3;
  static Keeper keeper(signals, parent_fd, static_cast<SpawnOutcome*>(outcomes), scan);
  keeper.serve();
  keeper.shut_down();
  return 0;
}

}  // namespace

}  // namespace fairlead::keeper

int main(int argc, char** argv) {
  return fairlead::keeper::run(argc, argv);
}
