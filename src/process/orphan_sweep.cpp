#include "process/orphan_sweep.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fairlead/process/subreaper.hpp"
#include "process/files.hpp"
#include "process/keeper/proc.hpp"

namespace fairlead {

namespace process {

namespace {

struct SubreaperState {
  std::mutex mutex;
  bool active = false;
  std::set<pid_t> keepers;
};

SubreaperState& subreaper() {
  static SubreaperState state;
  return state;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// Children of all our threads, zombies included. Only we reap them, so none of the numbers is another's.
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  const auto self = static_cast<std::uint64_t>(::getpid());
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    const std::string stat = read_whole("/proc/" + std::to_string(pid) + "/stat");
    if (keeper::after_name(stat.c_str()) && keeper::stat_field(stat.c_str(), 4) == self)
      children.push_back(pid);
  }
  return children;
}

}  // namespace

std::unique_lock<std::mutex> block_orphan_sweeps() {
  return std::unique_lock(subreaper().mutex);
}

void add_keeper(pid_t pid) {
  subreaper().keepers.insert(pid);
}

void remove_keeper(pid_t pid) {
  const std::lock_guard lock(subreaper().mutex);
  subreaper().keepers.erase(pid);
}

bool kill_orphans() {
  SubreaperState& state = subreaper();
  const std::lock_guard lock(state.mutex);
  if (!state.active || !has_children()) return false;
  bool left = false;
  for (const pid_t pid : own_children()) {
    if (state.keepers.contains(pid)) continue;
    ::kill(pid, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG);
    left = true;  // even if it has been reaped: what it had started may have become our child since we looked
  }
  return left;
}

}  // namespace process

Result<void> become_subreaper() {
  using namespace process;
  SubreaperState& state = subreaper();
  const std::lock_guard lock(state.mutex);
  if (state.active) return {};
  if (has_children())
    return Error(ErrorKind::io, "this process had children before it could become a subreaper");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
    return Error::from_errno(ErrorKind::io, "this process cannot become a subreaper", errno);
  state.active = true;
  return {};
}

}  // namespace fairlead
