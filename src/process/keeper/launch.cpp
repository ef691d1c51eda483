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

#include "process/keeper/cgroup.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/keeper/restrictions.hpp"

namespace fairlead::keeper {

namespace {

SpawnStep step_for(SpawnFlag flag) {
  switch (flag) {
    case with_manifest: return SpawnStep::manifest;
    case with_cgroup: return SpawnStep::cgroup;
    case with_memory_max: return SpawnStep::memory_max;
    case with_pids_max: return SpawnStep::pids_max;
    case with_limits: return SpawnStep::limits;
    case with_no_new_privs: return SpawnStep::no_new_privs;
    case with_landlock: return SpawnStep::landlock;
    default: return SpawnStep::request;
  }
}

// ChildSetup: runs in the child process from fork to exec.
class ChildSetup {
 public:
  ChildSetup(const LaunchParams& params, SpawnOutcome& outcome) : params_(params), outcome_(outcome) {}

  [[noreturn]] void run(pid_t keeper, bool in_cgroup) {
    close(kSocketFd);  // the library detects the keeper's death by EOF, which a copy of the socket would
                       // prevent
    // The child leads a new session and process group. Signals to the group reach its descendants too, and
    // Ctrl-C in the terminal of the library's process does not reach the child. The leader of a session
    // cannot leave its group.
    if (setsid() < 0) fail(SpawnStep::process);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail(SpawnStep::process);
    // If the keeper died before the prctl() above, the kernel will not send the signal.
    if (getppid() != keeper) _exit(127);
    if (params_.cgroup_fd >= 0 && !in_cgroup) check(with_cgroup, join_cgroup(params_.cgroup_fd));
    // The entry is written before apply_restrictions(), because the restrictions could prevent the write.
    if (params_.manifest_path) check(with_manifest, append_own_entry());
    for (int fd = 0; fd < 3; ++fd) {
      if (dup2(params_.stdio[fd], fd) < 0) fail(SpawnStep::descriptors);
    }
    // A precaution: all of the keeper's descriptors should be close-on-exec already.
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (*params_.cwd && !enter_directory()) fail(SpawnStep::chdir);
    apply_restrictions();
    // Only the mask is reset. The dispositions are the default ones already: block_signals() (main.cpp) set
    // them, and the keeper ignores and handles no signal.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(params_.path, params_.argv, params_.envp);
    fail(SpawnStep::exec);
  }

 private:
  // A directory that this user may not enter is acceptable if it is already the current directory.
  bool enter_directory() const {
    if (chdir(params_.cwd) == 0) return true;
    const int reason = errno;
    char current[PATH_MAX];
    const bool is_current =
        reason == EACCES && getcwd(current, sizeof current) && strcmp(current, params_.cwd) == 0;
    errno = reason;
    return is_current;
  }

  [[noreturn]] void fail(SpawnStep step) {
    outcome_.error = errno;
    outcome_.step = step;
    _exit(127);
  }

  // Records the error of a measure, if there is one. Exits if the measure is required.
  void check(SpawnFlag flag, int error) {
    if (error && !record_failure(params_.request, flag, error, outcome_)) _exit(127);
  }

  bool requested(SpawnFlag flag) const { return params_.request.flags & flag; }

  int append_own_entry() {
    ProcessIdentity self;
    if (!read_process_identity(getpid(), self)) return ENOENT;
    return append_manifest_entry(params_.manifest_path, self, params_.entry_rest, true);
  }

  void apply_restrictions() {
    LandlockRuleset landlock;
    bool restricted = requested(with_landlock);
    if (restricted) {
      const int error = landlock.create();
      check(with_landlock, error);
      restricted = error == 0;
      for (std::uint32_t i = 0; restricted && i < params_.request.rule_count; ++i) {
        check(with_landlock, landlock.add_rule(params_.landlock_rules[i]));
      }
    }
    if (requested(with_limits)) check(with_limits, set_resource_limits(params_.request.limits));
    if (requested(with_no_new_privs)) check(with_no_new_privs, set_no_new_privs());
    if (restricted) check(with_landlock, landlock.restrict_self());
  }

  const LaunchParams& params_;
  SpawnOutcome& outcome_;
};

// Like fork, but the child is created in the cgroup, so that it is never outside it.
pid_t fork_into_cgroup(int cgroup) {
  clone_args how{};
  how.flags = CLONE_INTO_CGROUP;
  how.exit_signal = SIGCHLD;
  how.cgroup = static_cast<std::uint64_t>(cgroup);
  return static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
}

}  // namespace

bool record_failure(const Request& request, SpawnFlag flag, int error, SpawnOutcome& outcome) {
  outcome.failed_flags |= flag;
  outcome.flag_errors[__builtin_ctz(flag)] = error;
  if (!(request.required_flags & flag)) return true;
  outcome.error = error;
  outcome.step = step_for(flag);
  return false;
}

// Uses fork, not vfork, so that the keeper does not wait until the program is loaded. The keeper has little
// memory to copy.
LaunchedChild launch(const LaunchParams& params, SpawnOutcome& outcome) {
  int exec_pipe[2];
  if (pipe2(exec_pipe, O_CLOEXEC) < 0) return {0, -1, errno};
  const pid_t keeper = getpid();
  pid_t pid = params.cgroup_fd < 0 ? -1 : fork_into_cgroup(params.cgroup_fd);
  const bool in_cgroup = pid >= 0;
  if (pid < 0) pid = _Fork();
  if (pid == 0) ChildSetup(params, outcome).run(keeper, in_cgroup);
  const int error = errno;
  close(exec_pipe[1]);
  if (pid > 0) return {pid, exec_pipe[0], 0};
  close(exec_pipe[0]);
  return {0, -1, error};
}

}  // namespace fairlead::keeper
