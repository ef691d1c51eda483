#include "process/subreaper.hpp"

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
  bool is_subreaper = false;  // become_subreaper() has succeeded
  std::set<pid_t> keepers;
};

SubreaperState& subreaper_state() {
  static SubreaperState state;
  return state;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// Returns the children of all threads of this process, including zombies. Only this process reaps them, so
// none of the pids has been reused.
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  const auto self = static_cast<std::uint64_t>(::getpid());
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    const std::string stat = read_whole_file("/proc/" + std::to_string(pid) + "/stat");
    if (keeper::fields_after_name(stat.c_str()) && keeper::stat_field(stat.c_str(), 4) == self)
      children.push_back(pid);
  }
  return children;
}

}  // namespace

std::unique_lock<std::mutex> lock_keepers() {
  return std::unique_lock(subreaper_state().mutex);
}

void add_keeper(pid_t pid) {
  subreaper_state().keepers.insert(pid);
}

void remove_keeper(pid_t pid) {
  const std::lock_guard lock(subreaper_state().mutex);
  subreaper_state().keepers.erase(pid);
}

bool kill_orphans() {
  SubreaperState& state = subreaper_state();
  const std::lock_guard lock(state.mutex);
  if (!state.is_subreaper || !has_children()) return false;
  bool found = false;
  for (const pid_t pid : own_children()) {
    if (state.keepers.contains(pid)) continue;
    ::kill(pid, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG);
    // Also if the process is reaped, because its children may have become children of this process.
    found = true;
  }
  return found;
}

}  // namespace process

Result<void> become_subreaper() {
  using namespace process;
  SubreaperState& state = subreaper_state();
  const std::lock_guard lock(state.mutex);
  if (state.is_subreaper) return {};
  if (has_children())
    return Error(ErrorKind::io, "this process had children before it could become a subreaper");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
    return Error::from_errno(ErrorKind::io, "this process cannot become a subreaper", errno);
  state.is_subreaper = true;
  return {};
}

}  // namespace fairlead
