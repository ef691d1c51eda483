#include "process/keeper_start.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "fairlead/process/failure.hpp"
#include "process/above_stdio.hpp"
#include "process/descriptor_limit.hpp"
#include "process/files.hpp"
#include "process/keeper/protocol.hpp"
#include "process/keeper_image.hpp"
#include "process/orphan_sweep.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead::process {

namespace {

#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x10;
#endif

constexpr char kName[] = "fairlead-keeper";
constexpr char kPathVariable[] = "FAIRLEAD_KEEPER";

// Unless something is short, it is the keeper that cannot be had.
Error failed(std::string_view what, int os_error) {
  const Error error = explain_shortage(kName, what, os_error);
  const bool short_of = error.detail().code != failure::spawn_failed;
  return short_of ? error : spawn_error(failure::keeper_failed, error.message(), os_error);
}

// The embedded program as a file without a name.
Result<UniqueFd> program_in_memory() {
  UniqueFd file(::memfd_create(kName, MFD_CLOEXEC | MFD_EXEC));
  if (!file && errno == EINVAL) file = UniqueFd(::memfd_create(kName, MFD_CLOEXEC));  // before Linux 6.3
  if (!file) return failed("no memory file", errno);
  if (!write_all(file.get(), keeper_image())) return failed("no memory file", errno);
  // Out of the way of the number its socket gets.
  UniqueFd moved(::fcntl(file.get(), F_DUPFD_CLOEXEC, keeper::kSocket + 1));
  if (!moved) return failed("no descriptor", errno);
  return moved;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, keeper::kSocket);
    ::posix_spawnattr_init(&attributes_);
    // Born with every signal blocked: one sent to all of our cgroup just now does not kill it.
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int run(pid_t& pid, const std::string& path) const {
    std::string parent = std::to_string(::getpid());
    char* const argv[] = {const_cast<char*>(kName), parent.data(), nullptr};
    // Of our environment only what lets a keeper above us claim this one.
    std::string cookie = keeper::kCookieName;
    const char* inherited = ::getenv(keeper::kCookieName);
    if (inherited) (cookie += '=') += inherited;
    char* const envp[] = {inherited ? cookie.data() : nullptr, nullptr};
    return ::posix_spawn(&pid, path.c_str(), &actions_, &attributes_, argv, envp);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Result<pid_t> run_program(int socket) {
  const SpawnSettings settings(socket);
  // A sweep in another thread must not take it for an orphan.
  const std::unique_lock<std::mutex> no_sweep = block_orphan_sweeps();
  pid_t pid = 0;
  if (const char* path = ::secure_getenv(kPathVariable); path && *path) {
    const int error = settings.run(pid, path);
    if (error) return failed(std::string(kPathVariable) + "=" + path, error);
    add_keeper(pid);
    return pid;
  }
  const Result<UniqueFd> program = program_in_memory();
  if (!program) return program.error();
  const int error = settings.run(pid, "/proc/self/fd/" + std::to_string(program->get()));
  if (error) {
    return failed(
        "running it from memory is refused here; set FAIRLEAD_KEEPER to the path of fairlead-keeper", error);
  }
  add_keeper(pid);
  return pid;
}

}  // namespace

Result<KeeperProcess> start_keeper() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return failed("no socket", errno);
  KeeperProcess process;
  process.socket = above_stdio(UniqueFd(ends[0]));
  const UniqueFd theirs(ends[1]);
  if (!process.socket) return failed("no socket", errno);
  const Result<pid_t> pid = run_program(theirs.get());
  if (!pid) return pid.error();
  process.pid = *pid;
  restore_descriptor_limit(*pid);  // it has started nothing yet
  process.pidfd = above_stdio(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0))));
  if (!process.pidfd) {
    const int os_error = errno;
    process.socket.reset();  // it has no child yet, so it ends at once
    ::waitpid(*pid, nullptr, 0);
    remove_keeper(*pid);
    return failed("no descriptor for it", os_error);
  }
  return process;
}

Error keeper_lost(const std::string& child, bool had_answered) {
  const char* const path = ::secure_getenv(kPathVariable);
  if (path && *path && !had_answered) {
    return spawn_error(
        failure::keeper_failed,
        "cannot start `" + child + "`, " + path + " is no " + kName + " (" + kPathVariable + ")", EPIPE);
  }
  return spawn_error(failure::keeper_died, "the keeper process died while it was to start `" + child + "`",
                     EPIPE);
}

bool reap_keeper(int pidfd, std::chrono::milliseconds patience) noexcept {
  pollfd ended{pidfd, POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(patience.count())) <= 0) return false;
  siginfo_t info{};
  // ECHILD: the program ignores SIGCHLD, so the kernel has reaped it.
  const bool reaped = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0;
  if (reaped) remove_keeper(info.si_pid);
  return reaped || errno == ECHILD;
}

}  // namespace fairlead::process
