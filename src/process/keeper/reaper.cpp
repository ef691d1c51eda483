// Reaps children, kills their process groups and orphans, and reports their end to the library.
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#include "process/keeper/cgroup.hpp"
#include "process/keeper/keeper.hpp"
#include "process/keeper/orphans.hpp"

namespace fairlead::keeper {

namespace {

// While descendants of an ended child are alive, the report of its end is delayed, but not longer than this.
constexpr std::int64_t kMaxReportDelayMs = 500;

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

// Reaps all children that have ended. Returns whether other children remain.
bool Keeper::reap_all() {
  signalfd_siginfo ignored;
  while (read(signal_fd_, &ignored, sizeof ignored) > 0) {
  }
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return errno != ECHILD;
    if (info.si_pid == 0) return true;
    reap_child(info);
  }
}

// Kills the process group and the cgroup of an ended child, reaps it, and stores the report of its end. An
// orphan is only reaped.
void Keeper::reap_child(const siginfo_t& info) {
  const pid_t pid = info.si_pid;
  if (const ChildRecord* known = children_.find_running(pid)) finish_start_of(known->token);
  ChildRecord* record = children_.find_running(pid);
  // The child is not reaped yet: while the leader of a process group is a zombie, the kernel does not reuse
  // the number of the group.
  if (record) kill(-pid, SIGKILL);
  const bool out_of_memory = record && record->cgroup_path && had_oom_kill(record->cgroup_path);
  if (record && record->cgroup_path) kill_cgroup(record->cgroup_path);
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED);
  cleanup_due_ = true;
  if (!record) return;
  const bool exited = info.si_code == CLD_EXITED;
  record->reaped = true;
  record->report_deadline = now_ms() + kMaxReportDelayMs;
  record->report = {ReportType::ended,
                    out_of_memory,
                    record->token,
                    pid,
                    exited ? info.si_status : -1,
                    exited ? 0 : info.si_status,
                    {}};
  children_.remember_reaped(*record);
}

// Kills the orphans of children that have ended, and reports the end of those children that have no live
// descendants. Each process killed here causes another SIGCHLD and thus another call, which finds the
// descendants of that process.
void Keeper::clean_up_ended() {
  cleanup_due_ = false;
  for (ChildRecord& record : children_) {
    record.has_survivors = record.reaped && (kill(-record.pid, 0) == 0 || errno == EPERM);
    if (record.reaped && record.cgroup_path && !remove_cgroup(record.cgroup_path))
      record.has_survivors = true;
  }
  kill_orphans();
  report_ended_children();
}

void Keeper::kill_orphans() {
  const ChildList children(scan_proc_);
  if (children.size() == children_.running_count()) return;  // there are no orphans
  for (const pid_t pid : children) {
    if (children_.find_running(pid)) continue;
    const OrphanOwner owner = find_owner(children_, self_, pid);
    if (owner.state != OwnerState::ended) continue;
    kill(pid, SIGKILL);
    if (ChildRecord* record = children_.find(owner.token)) record->has_survivors = true;
  }
}

void Keeper::report_ended_children() {
  const std::int64_t now = now_ms();
  for (std::size_t i = children_.size(); i-- > 0;) {
    ChildRecord& record = children_.begin()[i];
    if (!record.reaped || (record.has_survivors && now < record.report_deadline)) continue;
    if (!record.refused) send_report(record.report);
    children_.remove(record);
  }
}

int Keeper::milliseconds_to_report_deadline() {
  std::int64_t first = -1;
  for (const ChildRecord& record : children_) {
    if (record.reaped && (first < 0 || record.report_deadline < first)) first = record.report_deadline;
  }
  if (first < 0) return -1;
  const std::int64_t remaining = first - now_ms();
  return remaining < 0 ? 0 : static_cast<int>(remaining);
}

void Keeper::shut_down() {
  close(kSocketFd);
  for (const ChildRecord& record : children_) {
    if (!record.reaped) kill(-record.pid, SIGKILL);
    if (record.cgroup_path) kill_cgroup(record.cgroup_path);
  }
  kill_remaining_children();
  for (const ChildRecord& record : children_) {
    if (record.cgroup_path) remove_cgroup(record.cgroup_path);
  }
}

void Keeper::kill_remaining_children() {
  for (;;) {
    const ChildList children(scan_proc_);
    for (const pid_t pid : children) kill(pid, SIGKILL);
    if (!children.was_read()) return;
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0 && errno != EINTR) return;
    if (!reap_all()) return;
  }
}

}  // namespace fairlead::keeper
