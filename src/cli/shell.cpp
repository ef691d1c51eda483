#include "cli/shell.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::cli {

namespace {

constexpr std::size_t kMaxShellOutputBytes = 64u << 10;

// Starts /bin/sh with `script` and the arguments. stdout goes to `output`, unless that is negative.
Result<pid_t> start_shell(const std::string& script, const std::string& argument, int output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (output >= 0) ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE, SIGTERM}) ::sigaddset(&defaults, signal);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::array<std::string, 5> words = {"sh", "-c", script, "sh", argument};
  std::array<char*, 6> pointers{};
  for (std::size_t i = 0; i < words.size(); ++i) pointers[i] = words[i].data();
  pid_t pid = 0;
  const int problem = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return Error::from_errno(ErrorKind::spawn, "cannot run /bin/sh", problem);
  return pid;
}

Result<void> wait_for_exit(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return Error::from_errno(ErrorKind::process_exited, "waitpid", errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status))
    return Error(ErrorKind::process_exited,
                 "it ended with the status " + std::to_string(WEXITSTATUS(status)));
  return Error(ErrorKind::process_exited, "it was ended by the signal " + std::to_string(WTERMSIG(status)));
}

Result<std::string> read_output(int fd, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() <= kMaxShellOutputBytes) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Error::timeout("the command", timeout);
    pollfd input{fd, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0) return Error::from_errno(ErrorKind::io, "cannot read its output", errno);
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return Error(ErrorKind::frame_too_large, "it printed more than max_shell_output_bytes (65536)");
}

// While an editor runs, it alone gets ctrl-C.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~IgnoredInterrupts() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
  }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  struct sigaction interrupt_ = {};
  struct sigaction quit_ = {};
};

std::string editor_command() {
  for (const char* const name : {"VISUAL", "EDITOR"}) {
    const char* const value = std::getenv(name);
    if (value && *value != '\0') return value;
  }
  return "vi";
}

}  // namespace

Result<std::string> run_shell(const std::string& command, std::chrono::milliseconds timeout) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(ErrorKind::io, "pipe", errno);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const Result<pid_t> pid = start_shell(command, "", writer.get());
  writer.reset();
  if (!pid) return pid.error();
  Result<std::string> text = read_output(reader.get(), timeout);
  if (!text) ::kill(*pid, SIGKILL);
  const Result<void> ended = wait_for_exit(*pid);
  if (!text || ended) return text;
  return ended.error();
}

Result<void> edit_file(const std::string& path) {
  const std::string editor = editor_command();
  const IgnoredInterrupts ignored;
  const Result<pid_t> pid = start_shell(editor + " \"$1\"", path, -1);
  if (!pid) return pid.error();
  const Result<void> ended = wait_for_exit(*pid);
  if (ended) return {};
  return Error(ended.error().kind(), "the editor `" + editor + "`: " + ended.error().message());
}

}  // namespace fairlead::cli
