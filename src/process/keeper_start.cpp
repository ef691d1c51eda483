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
#include "process/spawn_errors.hpp"
#include "process/subreaper.hpp"

namespace fairlead::process {

namespace {

#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x10;
#endif

constexpr char kKeeperName[] = "fairlead-keeper";
constexpr char kKeeperPathVariable[] = "FAIRLEAD_KEEPER";

// Returns the error for a keeper that cannot be started: keeper_failed unless a resource is exhausted.
Error keeper_start_error(std::string_view detail, int os_error) {
  const Error error = start_error_from_errno(kKeeperName, detail, os_error);
  const bool exhausted = error.detail().failure_code != failure::spawn_failed;
  return exhausted ? error : spawn_error(failure::keeper_failed, error.message(), os_error);
}

// Returns a memfd with the embedded program.
Result<UniqueFd> create_program_memfd() {
  UniqueFd file(::memfd_create(kKeeperName, MFD_CLOEXEC | MFD_EXEC));
  if (!file && errno == EINVAL)
    file = UniqueFd(::memfd_create(kKeeperName, MFD_CLOEXEC));  // before Linux 6.3
  if (!file) return keeper_start_error("cannot create a memfd", errno);
  if (!write_all(file.get(), keeper_image())) return keeper_start_error("cannot write the memfd", errno);
  // Move the descriptor above kSocketFd, the number that the keeper's socket will get.
  UniqueFd moved(::fcntl(file.get(), F_DUPFD_CLOEXEC, keeper::kSocketFd + 1));
  if (!moved) return keeper_start_error("cannot duplicate the memfd", errno);
  return moved;
}

class PosixSpawn {
 public:
  explicit PosixSpawn(int socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, keeper::kSocketFd);
    ::posix_spawnattr_init(&attributes_);
    // All signals are blocked from the start: a signal to the whole cgroup at this moment does not kill the
    // keeper.
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  }
  ~PosixSpawn() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  PosixSpawn(const PosixSpawn&) = delete;
  PosixSpawn& operator=(const PosixSpawn&) = delete;

  int run(pid_t& pid, const std::string& path) const {
    std::string parent = std::to_string(::getpid());
    char* const argv[] = {const_cast<char*>(kKeeperName), parent.data(), nullptr};
    // The environment of the keeper has only the cookie. By the cookie, a keeper among the ancestors of this
    // process can identify the new one.
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

Result<pid_t> run_keeper(int socket) {
  const PosixSpawn settings(socket);
  // The lock prevents another thread from killing the new keeper as an orphan before add_keeper().
  const std::unique_lock<std::mutex> lock = lock_keepers();
  pid_t pid = 0;
  if (const char* path = ::secure_getenv(kKeeperPathVariable); path && *path) {
    const int error = settings.run(pid, path);
    if (error) return keeper_start_error(std::string(kKeeperPathVariable) + "=" + path, error);
    add_keeper(pid);
    return pid;
  }
  const Result<UniqueFd> program = create_program_memfd();
  if (!program) return program.error();
  const int error = settings.run(pid, "/proc/self/fd/" + std::to_string(program->get()));
  if (error) {
    return keeper_start_error(
        "running it from memory is not permitted; set FAIRLEAD_KEEPER to the path of fairlead-keeper", error);
  }
  add_keeper(pid);
  return pid;
}

}  // namespace

Result<KeeperProcess> start_keeper() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
    return keeper_start_error("cannot create a socket pair", errno);
  KeeperProcess process;
  process.socket = move_above_stdio(UniqueFd(ends[0]));
  const UniqueFd keeper_end(ends[1]);
  if (!process.socket) return keeper_start_error("cannot create a socket pair", errno);
  const Result<pid_t> pid = run_keeper(keeper_end.get());
  if (!pid) return pid.error();
  process.pid = *pid;
  restore_descriptor_limit(*pid);  // the keeper has no children yet
  process.pidfd = move_above_stdio(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0))));
  if (!process.pidfd) {
    const int os_error = errno;
    process.socket.reset();  // the keeper has no children yet, so it exits immediately
    ::waitpid(*pid, nullptr, 0);
    remove_keeper(*pid);
    return keeper_start_error("cannot open a pidfd", os_error);
  }
  return process;
}

Error keeper_death_error(const std::string& child, bool had_answered) {
  const char* const path = ::secure_getenv(kKeeperPathVariable);
  if (path && *path && !had_answered) {
    return spawn_error(failure::keeper_failed,
                       "cannot start `" + child + "`: " + path + " is not a " + kKeeperName + " (" +
                           kKeeperPathVariable + ")",
                       EPIPE);
  }
  return spawn_error(failure::keeper_died, "the keeper process died while starting `" + child + "`", EPIPE);
}

bool reap_keeper(int pidfd, std::chrono::milliseconds timeout) noexcept {
  pollfd ended{pidfd, POLLIN, 0};
  if (::poll(&ended, 1, static_cast<int>(timeout.count())) <= 0) return false;
  siginfo_t info{};
  // ECHILD: this process ignores SIGCHLD, so the kernel has reaped the keeper.
  const bool reaped = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0;
  if (reaped) remove_keeper(info.si_pid);
  return reaped || errno == ECHILD;
}

}  // namespace fairlead::process
