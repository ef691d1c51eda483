#include "process/cookie_sweep.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/loop/descriptor.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

namespace {

// A process that forks while we look is found in the next round, or its child is.
constexpr int kMaxRounds = 8;

std::string read_environment(const char* pid) {
  const UniqueFd file(::open((std::string("/proc/") + pid + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[16 << 10];
  for (;;) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

// Whether one of the segments of the cookie is `<keeper>.<token>` with the upper half of `run`.
bool names(std::string_view cookie, pid_t keeper, std::uint64_t run) {
  const std::string prefix = std::to_string(keeper) + '.';
  while (!cookie.empty()) {
    const std::string_view segment = cookie.substr(0, cookie.find('/'));
    std::uint64_t token = 0;
    if (segment.starts_with(prefix)) {
      std::from_chars(segment.data() + prefix.size(), segment.data() + segment.size(), token);
      if (token >> 32 == run >> 32) return true;
    }
    cookie.remove_prefix(std::min(cookie.size(), segment.size() + 1));
  }
  return false;
}

bool is_ours(const char* pid, pid_t keeper, std::uint64_t run) {
  const std::string environment = read_environment(pid);
  const std::string name = std::string(keeper::kCookieName) + '=';
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.starts_with(name)) return names(variable.substr(name.size()), keeper, run);
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return false;
}

bool kill_if_ours(const char* pid, pid_t keeper, std::uint64_t run) {
  if (!is_ours(pid, keeper, run)) return false;
  // The number could be another's by now, the pidfd cannot: so look again with it in hand.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(pid), 0)));
  if (!process || !is_ours(pid, keeper, run)) return false;
  return ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0;
}

int one_round(pid_t keeper, std::uint64_t run) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  int killed = 0;
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (kill_if_ours(entry->d_name, keeper, run)) ++killed;
  }
  return killed;
}

}  // namespace

void kill_by_cookie(pid_t keeper, std::uint64_t some_token) {
  for (int round = 0; round < kMaxRounds && one_round(keeper, some_token) > 0; ++round) {
  }
}

}  // namespace fairlead::process
