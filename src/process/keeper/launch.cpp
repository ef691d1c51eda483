#include "process/keeper/launch.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "process/keeper/belts.hpp"
#include "process/keeper/cgroup.hpp"
#include "process/keeper/manifest_append.hpp"

namespace fairlead::keeper {

namespace {

Step step_of(Flag flag) {
  switch (flag) {
    case with_manifest: return Step::manifest;
    case with_cgroup: return Step::cgroup;
    case with_memory_max: return Step::memory_max;
    case with_pids_max: return Step::pids_max;
    case with_limits: return Step::limits;
    case with_no_new_privs: return Step::no_new_privs;
    case with_landlock: return Step::landlock;
    default: return Step::request;
  }
}

// The child, from fork to exec.
class Becoming {
 public:
  Becoming(const Launch& what, Outcome& outcome) : what_(what), outcome_(outcome) {}

  [[noreturn]] void run(pid_t keeper, bool in_cgroup) {
    close(kSocket);  // that it ends tells the library that the keeper has
    // Own session and group: signals to the group reach what the child starts, and no terminal's Ctrl-C does.
    // The leader of a session cannot leave its group.
    if (setsid() < 0) give_up(Step::process);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) give_up(Step::process);
    if (getppid() != keeper) _exit(127);  // it died before the line above took effect
    if (what_.cgroup >= 0 && !in_cgroup) settle(with_cgroup, enter_cgroup(what_.cgroup));
    // Before the belts: they could keep us from writing it.
    if (what_.manifest) settle(with_manifest, register_self());
    for (int fd = 0; fd < 3; ++fd) {
      if (dup2(what_.stdio[fd], fd) < 0) give_up(Step::descriptors);
    }
    // All of the keeper's descriptors are close-on-exec; this is for the day one is not.
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (*what_.cwd && !enter_directory()) give_up(Step::chdir);
    put_on_belts();
    // Dispositions are the default already: the keeper has none of its own, it blocks signals instead.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(what_.path, what_.argv, what_.envp);
    give_up(Step::exec);
  }

 private:
  // One that this user may not enter is no hindrance when we are in it.
  bool enter_directory() const {
    if (chdir(what_.cwd) == 0) return true;
    const int reason = errno;
    char here[PATH_MAX];
    const bool there = reason == EACCES && getcwd(here, sizeof here) && strcmp(here, what_.cwd) == 0;
    errno = reason;
    return there;
  }

  [[noreturn]] void give_up(Step step) {
    outcome_.error = errno;
    outcome_.step = step;
    _exit(127);
  }

  void settle(Flag flag, int error) {
    if (error && !note(what_.request, flag, error, outcome_)) _exit(127);
  }

  bool asked(Flag flag) const { return what_.request.flags & flag; }

  int register_self() {
    Identity self;
    if (!identify(getpid(), self)) return ENOENT;
    return append_manifest(what_.manifest, self, what_.entry, true);
  }

  void put_on_belts() {
    Landlock landlock;
    bool restricted = asked(with_landlock);
    if (restricted) {
      const int error = landlock.prepare();
      settle(with_landlock, error);
      restricted = error == 0;
      for (std::uint32_t i = 0; restricted && i < what_.request.rule_count; ++i) {
        settle(with_landlock, landlock.allow(what_.rules[i]));
      }
    }
    if (asked(with_limits)) settle(with_limits, set_limits(what_.request.limits));
    if (asked(with_no_new_privs)) settle(with_no_new_privs, forbid_new_privileges());
    if (restricted) settle(with_landlock, landlock.enforce());
  }

  const Launch& what_;
  Outcome& outcome_;
};

// As fork, but born in the cgroup, so that it is never seen outside.
pid_t fork_into(int cgroup) {
  clone_args how{};
  how.flags = CLONE_INTO_CGROUP;
  how.exit_signal = SIGCHLD;
  how.cgroup = static_cast<std::uint64_t>(cgroup);
  return static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
}

}  // namespace

bool note(const Request& request, Flag flag, int error, Outcome& outcome) {
  outcome.failed |= flag;
  outcome.errors[__builtin_ctz(flag)] = error;
  if (!(request.required & flag)) return true;
  outcome.error = error;
  outcome.step = step_of(flag);
  return false;
}

// A plain fork, not vfork: there is little to copy, and we need not wait for the program to be loaded.
Launching launch(const Launch& what, Outcome& outcome) {
  int arrival[2];
  if (pipe2(arrival, O_CLOEXEC) < 0) return {0, -1, errno};
  const pid_t keeper = getpid();
  pid_t pid = what.cgroup < 0 ? -1 : fork_into(what.cgroup);
  const bool in_cgroup = pid >= 0;
  if (pid < 0) pid = _Fork();
  if (pid == 0) Becoming(what, outcome).run(keeper, in_cgroup);
  const int error = errno;
  close(arrival[1]);
  if (pid > 0) return {pid, arrival[0], 0};
  close(arrival[0]);
  return {0, -1, error};
}

}  // namespace fairlead::keeper
