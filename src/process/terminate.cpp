#include "fairlead/process/terminate.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/process/manifest.hpp"
#include "process/cgroup_parent.hpp"
#include "process/keeper/cgroup.hpp"
#include "process/manifest_file.hpp"

namespace fairlead {

std::string_view to_string(TerminationResult result) noexcept {
  switch (result) {
    case TerminationResult::would_end: return "would end";
    case TerminationResult::ended: return "ended";
    case TerminationResult::killed: return "killed";
    case TerminationResult::not_permitted: return "not permitted";
    case TerminationResult::still_running: return "still there";
  }
  return "unknown";
}

bool TerminateReport::all_ended() const noexcept {
  return std::ranges::all_of(processes, [](const TerminatedProcess& process) {
    return process.result == TerminationResult::ended || process.result == TerminationResult::killed;
  });
}

namespace process {

namespace {

using std::chrono::milliseconds;

// The interval between two scans of /proc. A scan finds processes that were started since the previous one.
constexpr milliseconds kScanInterval{20};

struct SignalTarget {
  keeper::ProcessIdentity identity;
  TerminatedProcess report;
  bool is_keeper = false;
  bool alive = true;  // the process exists, and this process may signal it
  UniqueFd pidfd;
};

class Terminator {
 public:
  Terminator(std::string path, const TerminateOptions& options) : path_(std::move(path)), options_(options) {}

  Result<TerminateReport> run() {
    const Result<bool> first = find_targets();
    if (!first) return first.error();
    if (!options_.dry_run) {
      send_sigterm();
      const Result<void> killed = kill_until_gone();
      if (!killed) return killed.error();
      remove_cgroups();
      static_cast<void>(compact_manifest(path_));  // if this fails, the stale entries are harmless
    }
    for (SignalTarget& target : targets_) report_.processes.push_back(std::move(target.report));
    return std::move(report_);
  }

 private:
  // Adds to targets_ the processes that match the manifest and are not in it yet. Returns whether a process
  // in targets_ is alive and may be signalled.
  Result<bool> find_targets() {
    const Result<ParsedManifest> manifest = read_manifest(path_);
    if (!manifest) return manifest.error();
    entries_ = manifest->entries;
    const ManifestMatches before = match_processes(entries_, list_processes(), context_);
    std::map<pid_t, UniqueFd> pidfds;
    for (const MatchedProcess& match : before.alive) {
      pidfds[match.identity.pid] =
          UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, match.identity.pid, 0)));
    }
    // Match again after opening the pidfds. If a process with the same pid and start time matches both times,
    // its pidfd refers to that process and not to one that reused the pid.
    const ManifestMatches after =
        before.alive.empty() ? before : match_processes(entries_, list_processes(), context_);
    report_.entry_count = entries_.size();
    report_.unreadable_line_count = manifest->unreadable_line_count;
    report_.recycled_count = after.recycled_count;
    report_.other_system_count = after.other_system_count;
    report_.foreign_cgroups = foreign_cgroups();
    for (const MatchedProcess& match : after.alive) add_target(match, before, pidfds);
    has_live_process_ = after.has_live_process;
    return std::ranges::any_of(targets_, &SignalTarget::alive);
  }

  void add_target(const MatchedProcess& match, const ManifestMatches& before,
                  std::map<pid_t, UniqueFd>& pidfds) {
    const auto is_same_process = [&](const keeper::ProcessIdentity& other) {
      return other.pid == match.identity.pid && other.start == match.identity.start;
    };
    if (std::ranges::any_of(targets_, is_same_process, &SignalTarget::identity)) return;
    // A process becomes a target only if it matched before and after its pidfd was opened. A process that
    // matched only afterwards is added by the next find_targets().
    if (std::ranges::none_of(before.alive, is_same_process, &MatchedProcess::identity)) return;
    UniqueFd& pidfd = pidfds[match.identity.pid];
    if (!pidfd) return;
    const EntryFields& fields = entries_[match.entry_index].fields;
    SignalTarget target;
    target.identity = match.identity;
    target.is_keeper = fields.role == "keeper" && std::string_view(match.matched_by) == "entry";
    target.report = {match.identity.pid, fields.name, match.matched_by, TerminationResult::would_end};
    target.pidfd = std::move(pidfd);
    targets_.push_back(std::move(target));
  }

  void send(SignalTarget& target, int signal) {
    if (!target.alive) return;
    if (::syscall(SYS_pidfd_send_signal, target.pidfd.get(), signal, nullptr, 0) == 0) return;
    if (errno != EPERM) return;
    target.report.result = TerminationResult::not_permitted;
    target.alive = false;  // cannot be signalled
  }

  // Keepers get no SIGTERM: they block it, and they are needed to reap the other processes.
  void send_sigterm() {
    for (SignalTarget& target : targets_) {
      target.report.result = TerminationResult::ended;
      if (target.is_keeper) continue;
      send(target, SIGTERM);
      send(target, SIGCONT);
    }
    wait_for_targets(options_.grace, false);
  }

  Result<void> kill_until_gone() {
    const auto deadline = Clock::now() + options_.kill_timeout;
    // A scan reads one process after the other and may miss one that is created meanwhile, so two scans in a
    // row must find none.
    for (int empty_scans = 0; empty_scans < 2;) {
      const Result<bool> alive = find_targets();
      if (!alive) return alive.error();
      empty_scans = *alive ? 0 : empty_scans + 1;
      if (!*alive) continue;
      for (SignalTarget& target : targets_) {
        if (target.alive) target.report.result = TerminationResult::killed;
        send(target, SIGKILL);
      }
      kill_cgroups();
      wait_for_targets(kScanInterval, true);
      if (Clock::now() < deadline) continue;
      for (SignalTarget& target : targets_) {
        if (target.alive) target.report.result = TerminationResult::still_running;
      }
      return {};
    }
    return {};
  }

  void kill_cgroups() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!has_live_process_[i]) continue;
      if (const EntryCgroup cgroup(entries_[i].fields); cgroup) keeper::kill_cgroup(cgroup.path());
    }
  }

  // The kernel does not remove cgroups that contain processes.
  void remove_cgroups() {
    for (const ManifestEntry& entry : entries_) {
      if (entry.system != context_.system) continue;
      if (const EntryCgroup cgroup(entry.fields); cgroup) keeper::remove_cgroup(cgroup.path());
    }
  }

  std::vector<std::string> foreign_cgroups() const {
    std::vector<std::string> foreign;
    for (const ManifestEntry& entry : entries_) {
      const EntryFields& fields = entry.fields;
      if (entry.system == context_.system && !fields.cgroup.empty() && entry_cgroup_name(fields).empty())
        foreign.push_back(fields.cgroup);
    }
    return foreign;
  }

  // Waits until all targets have ended, at most for `timeout`. Does not wait for keepers unless
  // `with_keepers`.
  void wait_for_targets(milliseconds timeout, bool with_keepers) {
    const auto deadline = Clock::now() + timeout;
    for (;;) {
      std::vector<pollfd> waiting;
      for (SignalTarget& target : targets_) {
        if (!target.alive) continue;
        pollfd ended{target.pidfd.get(), POLLIN, 0};
        if (::poll(&ended, 1, 0) > 0) {
          target.alive = false;
        } else if (with_keepers || !target.is_keeper) {
          waiting.push_back(ended);
        }
      }
      const auto remaining = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (waiting.empty() || remaining <= milliseconds(0)) return;
      ::poll(waiting.data(), waiting.size(), static_cast<int>(remaining.count()));
    }
  }

  std::string path_;
  const TerminateOptions& options_;
  const MatchContext context_ = current_match_context();
  std::vector<ManifestEntry> entries_;
  std::vector<bool> has_live_process_;
  std::vector<SignalTarget> targets_;
  TerminateReport report_;
};

}  // namespace
}  // namespace process

Result<TerminateReport> terminate_manifest(const std::string& path, const TerminateOptions& options) {
  return process::Terminator(path, options).run();
}

Result<void> wait_for_process(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd && errno == ESRCH) return {};
  if (!pidfd)
    return Error::from_errno(ErrorKind::validation, "cannot watch process " + std::to_string(pid), errno);
  // The process to wait for existed before this one, so a process that started later has reused its pid.
  keeper::ProcessIdentity watched;
  keeper::ProcessIdentity self;
  if (!keeper::read_process_identity(pid, watched)) return {};
  if (keeper::read_process_identity(::getpid(), self) && watched.start > self.start) return {};
  pollfd ended{pidfd.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) continue;
  return {};
}

}  // namespace fairlead
