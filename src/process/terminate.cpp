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
#include "process/cgroup_home.hpp"
#include "process/keeper/cgroup.hpp"
#include "process/manifest_file.hpp"

namespace fairlead {

std::string_view to_string(Ending ending) noexcept {
  switch (ending) {
    case Ending::would_end: return "would end";
    case Ending::ended: return "ended";
    case Ending::killed: return "killed";
    case Ending::not_permitted: return "not permitted";
    case Ending::still_there: return "still there";
  }
  return "unknown";
}

bool TerminateReport::all_gone() const noexcept {
  return std::ranges::all_of(processes, [](const TerminatedProcess& process) {
    return process.ending == Ending::ended || process.ending == Ending::killed;
  });
}

namespace process {

namespace {

using std::chrono::milliseconds;

// Between two looks for what the dying have started in the meantime.
constexpr milliseconds kRound{20};

struct Target {
  keeper::Identity identity;
  TerminatedProcess told;
  bool keeper = false;
  bool alive = true;
  UniqueFd pidfd;
};

class Terminator {
 public:
  Terminator(std::string path, const TerminateOptions& options) : path_(std::move(path)), options_(options) {}

  Result<TerminateReport> run() {
    const Result<bool> first = look();
    if (!first) return first.error();
    if (!options_.dry_run) {
      ask();
      const Result<void> insisted = insist();
      if (!insisted) return insisted.error();
      remove_cgroups();
      static_cast<void>(compact_manifest(path_));  // stale entries do no harm
    }
    for (Target& target : targets_) report_.processes.push_back(std::move(target.told));
    return std::move(report_);
  }

 private:
  // Adds what belongs to the manifest and is new to us. Returns whether anything that can be killed is alive.
  Result<bool> look() {
    const Result<ManifestText> manifest = read_manifest(path_);
    if (!manifest) return manifest.error();
    entries_ = manifest->entries;
    const Belongings seen = find_belongings(entries_, list_processes(), here_);
    std::map<pid_t, UniqueFd> held;
    for (const Belonging& one : seen.alive) {
      held[one.identity.pid] = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, one.identity.pid, 0)));
    }
    // Again, with the pidfds in hand: what belongs now as it did before, and is held, is what we mean.
    const Belongings again = seen.alive.empty() ? seen : find_belongings(entries_, list_processes(), here_);
    report_.entries = entries_.size();
    report_.unreadable = manifest->unreadable;
    report_.recycled = again.recycled;
    report_.other_system = again.other_system;
    report_.foreign_cgroups = foreign_cgroups();
    for (const Belonging& one : again.alive) add(one, seen, held);
    has_some_ = again.has_some;
    return std::ranges::any_of(targets_, &Target::alive);
  }

  void add(const Belonging& one, const Belongings& seen, std::map<pid_t, UniqueFd>& held) {
    const auto is_it = [&](const keeper::Identity& other) {
      return other.pid == one.identity.pid && other.start == one.identity.start;
    };
    if (std::ranges::any_of(targets_, is_it, &Target::identity)) return;
    if (std::ranges::none_of(seen.alive, is_it, &Belonging::identity)) return;  // in the next round
    UniqueFd& pidfd = held[one.identity.pid];
    if (!pidfd) return;
    const ManifestFacts& facts = entries_[one.entry].facts;
    Target target;
    target.identity = one.identity;
    target.keeper = facts.role == "keeper" && std::string_view(one.by) == "entry";
    target.told = {one.identity.pid, facts.name, one.by, Ending::would_end};
    target.pidfd = std::move(pidfd);
    targets_.push_back(std::move(target));
  }

  void send(Target& target, int signal) {
    if (!target.alive) return;
    if (::syscall(SYS_pidfd_send_signal, target.pidfd.get(), signal, nullptr, 0) == 0) return;
    if (errno != EPERM) return;
    target.told.ending = Ending::not_permitted;
    target.alive = false;  // for us
  }

  // A keeper has no ears for this, and reaps the others meanwhile.
  void ask() {
    for (Target& target : targets_) {
      target.told.ending = Ending::ended;
      if (target.keeper) continue;
      send(target, SIGTERM);
      send(target, SIGCONT);
    }
    wait(options_.grace, false);
  }

  Result<void> insist() {
    const auto deadline = Clock::now() + options_.patience;
    // Processes are listed one by one, so one look may miss what is born during it; two do not.
    for (int empty = 0; empty < 2;) {
      const Result<bool> any = look();
      if (!any) return any.error();
      empty = *any ? 0 : empty + 1;
      if (!*any) continue;
      for (Target& target : targets_) {
        if (target.alive) target.told.ending = Ending::killed;
        send(target, SIGKILL);
      }
      kill_cgroups();
      wait(kRound, true);
      if (Clock::now() < deadline) continue;
      for (Target& target : targets_) {
        if (target.alive) target.told.ending = Ending::still_there;
      }
      return {};
    }
    return {};
  }

  void kill_cgroups() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!has_some_[i]) continue;
      if (const OwnCgroup cgroup(entries_[i].facts); cgroup) keeper::kill_cgroup(cgroup.path());
    }
  }

  // The kernel keeps those in which something lives.
  void remove_cgroups() {
    for (const ManifestEntry& entry : entries_) {
      if (entry.system != here_.system) continue;
      if (const OwnCgroup cgroup(entry.facts); cgroup) keeper::remove_cgroup(cgroup.path());
    }
  }

  std::vector<std::string> foreign_cgroups() const {
    std::vector<std::string> foreign;
    for (const ManifestEntry& entry : entries_) {
      const ManifestFacts& facts = entry.facts;
      if (entry.system == here_.system && !facts.cgroup.empty() && own_cgroup_name(facts).empty())
        foreign.push_back(facts.cgroup);
    }
    return foreign;
  }

  // Until all have ended, but at most so long.
  void wait(milliseconds patience, bool with_keepers) {
    const auto deadline = Clock::now() + patience;
    for (;;) {
      std::vector<pollfd> waiting;
      for (Target& target : targets_) {
        if (!target.alive) continue;
        pollfd ended{target.pidfd.get(), POLLIN, 0};
        if (::poll(&ended, 1, 0) > 0) {
          target.alive = false;
        } else if (with_keepers || !target.keeper) {
          waiting.push_back(ended);
        }
      }
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (waiting.empty() || left <= milliseconds(0)) return;
      ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
    }
  }

  std::string path_;
  const TerminateOptions& options_;
  const Whereabouts here_ = whereabouts();
  std::vector<ManifestEntry> entries_;
  std::vector<bool> has_some_;
  std::vector<Target> targets_;
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
  // Whoever told us to watch it had seen it before we were there.
  keeper::Identity watched;
  keeper::Identity self;
  if (!keeper::identify(pid, watched)) return {};
  if (keeper::identify(::getpid(), self) && watched.start > self.start) return {};
  pollfd ended{pidfd.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) continue;
  return {};
}

}  // namespace fairlead
