#include "process/kill_by_cookie.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/loop/descriptor.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

namespace {

// One scan may miss a process that is forked during it, so scans are repeated until one finds no process, at
// most this many times.
constexpr int kMaxScans = 8;

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

// Returns false for kernel threads and for processes that have ended.
bool has_program(const char* pid) {
  char link[1];
  return ::readlink((std::string("/proc/") + pid + "/exe").c_str(), link, sizeof link) >= 0;
}

// Whether a process has a matching cookie. It is `unknown` while the process is in execve, because its
// environment cannot be read then.
enum class CookieMatch : std::uint8_t { yes, no, unknown };

// Returns whether the cookie has a segment `<keeper>.<token>` whose token has the same upper half as
// `run_token`.
bool has_segment(std::string_view cookie, pid_t keeper, std::uint64_t run_token) {
  const std::string prefix = std::to_string(keeper) + '.';
  while (!cookie.empty()) {
    const std::string_view segment = cookie.substr(0, cookie.find('/'));
    std::uint64_t token = 0;
    if (segment.starts_with(prefix)) {
      std::from_chars(segment.data() + prefix.size(), segment.data() + segment.size(), token);
      if (token >> 32 == run_token >> 32) return true;
    }
    cookie.remove_prefix(std::min(cookie.size(), segment.size() + 1));
  }
  return false;
}

CookieMatch match_cookie(const char* pid, pid_t keeper, std::uint64_t run_token) {
  const std::string environment = read_environment(pid);
  if (environment.empty()) return has_program(pid) ? CookieMatch::unknown : CookieMatch::no;
  const std::string name = std::string(keeper::kCookieName) + '=';
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.starts_with(name))
      return has_segment(variable.substr(name.size()), keeper, run_token) ? CookieMatch::yes
                                                                          : CookieMatch::no;
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return CookieMatch::no;
}

// Kills the process if its cookie matches. Returns whether it matched.
CookieMatch kill_if_matching(const char* pid, pid_t keeper, std::uint64_t run_token) {
  const CookieMatch before_open = match_cookie(pid, keeper, run_token);
  if (before_open != CookieMatch::yes) return before_open;
  // The pid may have been reused since. The pidfd refers to one process only, so check again after opening
  // it.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(pid), 0)));
  if (!process) return CookieMatch::no;
  const CookieMatch after_open = match_cookie(pid, keeper, run_token);
  if (after_open != CookieMatch::yes) return after_open;
  return ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 ? CookieMatch::yes
                                                                                   : CookieMatch::no;
}

// CookieScan: kills the processes with a matching cookie.
class CookieScan {
 public:
  CookieScan(pid_t keeper, std::uint64_t run_token) : keeper_(keeper), run_token_(run_token) {}

  // Scans /proc once and kills the processes that match. Returns the number of killed processes.
  int scan_and_kill() {
    killed_ = 0;
    std::vector<std::string> unknown;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
    while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (!kill_and_count_if_matching(entry->d_name) && !without_environment_.contains(entry->d_name))
        unknown.emplace_back(entry->d_name);
    }
    constexpr timespec kRetryInterval{0, 1'000'000};
    for (int retry = 0; retry < kMaxRetries && !unknown.empty(); ++retry) {
      ::nanosleep(&kRetryInterval, nullptr);
      std::erase_if(unknown,
                    [this](const std::string& pid) { return kill_and_count_if_matching(pid.c_str()); });
    }
    without_environment_.insert(unknown.begin(), unknown.end());
    return killed_;
  }

 private:
  // The maximum number of retries for a process in execve, one per millisecond. An execve does not take
  // longer.
  static constexpr int kMaxRetries = 100;

  // Kills the process and counts it in killed_ if its cookie matches. Returns false if the call must be
  // repeated, because the process is in execve.
  bool kill_and_count_if_matching(const char* pid) {
    const CookieMatch match = kill_if_matching(pid, keeper_, run_token_);
    if (match == CookieMatch::yes) ++killed_;
    return match != CookieMatch::unknown;
  }

  pid_t keeper_;
  std::uint64_t run_token_;
  int killed_ = 0;
  // Pids of processes whose environment stayed empty during all retries.
  std::set<std::string, std::less<>> without_environment_;
};

}  // namespace

void kill_by_cookie(pid_t keeper, std::uint64_t run_token) {
  CookieScan scan(keeper, run_token);
  for (int count = 0; count < kMaxScans && scan.scan_and_kill() > 0; ++count) {
  }
}

}  // namespace fairlead::process
