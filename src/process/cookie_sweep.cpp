#include "process/cookie_sweep.hpp"

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

// Not one of the kernel's own, and not dead.
bool has_program(const char* pid) {
  char link[1];
  return ::readlink((std::string("/proc/") + pid + "/exe").c_str(), link, sizeof link) >= 0;
}

// There is nothing to be read while a process becomes another program: then it is unclear.
enum class Ours : std::uint8_t { yes, no, unclear };

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

Ours look_at(const char* pid, pid_t keeper, std::uint64_t run) {
  const std::string environment = read_environment(pid);
  if (environment.empty()) return has_program(pid) ? Ours::unclear : Ours::no;
  const std::string name = std::string(keeper::kCookieName) + '=';
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.starts_with(name))
      return names(variable.substr(name.size()), keeper, run) ? Ours::yes : Ours::no;
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return Ours::no;
}

// Says what it was.
Ours kill_if_ours(const char* pid, pid_t keeper, std::uint64_t run) {
  const Ours first = look_at(pid, keeper, run);
  if (first != Ours::yes) return first;
  // The number could be another's by now, the pidfd cannot: so look again with it in hand.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(pid), 0)));
  if (!process) return Ours::no;
  const Ours again = look_at(pid, keeper, run);
  if (again != Ours::yes) return again;
  return ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 ? Ours::yes : Ours::no;
}

class Sweep {
 public:
  Sweep(pid_t keeper, std::uint64_t run) : keeper_(keeper), run_(run) {}

  // Returns how many it killed.
  int round() {
    killed_ = 0;
    std::vector<std::string> unclear;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
    while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (!settle(entry->d_name) && !bare_.contains(entry->d_name)) unclear.emplace_back(entry->d_name);
    }
    constexpr timespec kBetween{0, 1'000'000};
    for (int look = 0; look < kLooks && !unclear.empty(); ++look) {
      ::nanosleep(&kBetween, nullptr);
      std::erase_if(unclear, [this](const std::string& pid) { return settle(pid.c_str()); });
    }
    bare_.insert(unclear.begin(), unclear.end());  // they have none
    return killed_;
  }

 private:
  // Becoming another program does not take longer than this many milliseconds.
  static constexpr int kLooks = 100;

  bool settle(const char* pid) {
    const Ours was = kill_if_ours(pid, keeper_, run_);
    if (was == Ours::yes) ++killed_;
    return was != Ours::unclear;
  }

  pid_t keeper_;
  std::uint64_t run_;
  int killed_ = 0;
  std::set<std::string, std::less<>> bare_;
};

}  // namespace

void kill_by_cookie(pid_t keeper, std::uint64_t some_token) {
  Sweep sweep(keeper, some_token);
  for (int round = 0; round < kMaxRounds && sweep.round() > 0; ++round) {
  }
}

}  // namespace fairlead::process
