// How children end: reaped, their groups and orphans killed, the library told.
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#include "process/keeper/cgroup.hpp"
#include "process/keeper/keeper.hpp"
#include "process/keeper/orphans.hpp"

namespace fairlead::keeper {

namespace {

// How long the report of a child's end waits for what the child started to be gone too.
constexpr std::int64_t kLingerMs = 500;

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

// Reaps every zombie there is. True when there are children left.
bool Keeper::reap() {
  signalfd_siginfo ignored;
  while (read(signals_, &ignored, sizeof ignored) > 0) {
  }
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return errno != ECHILD;
    if (info.si_pid == 0) return true;
    reap_one(info);
  }
}

void Keeper::reap_one(const siginfo_t& info) {
  const pid_t pid = info.si_pid;
  if (const Record* known = table_.running(pid)) settle_child(known->token);
  Record* record = table_.running(pid);
  // While the leader is a zombie nobody else can get its group's number.
  if (record) kill(-pid, SIGKILL);
  const bool out_of_memory = record && record->cgroup && ran_out_of_memory(record->cgroup);
  if (record && record->cgroup) kill_cgroup(record->cgroup);
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED);
  dead_since_sweep_ = true;
  if (!record) return;
  const bool exited = info.si_code == CLD_EXITED;
  record->reaped = true;
  record->deadline = now_ms() + kLingerMs;
  record->report = {Event::ended,
                    out_of_memory,
                    record->token,
                    pid,
                    exited ? info.si_status : -1,
                    exited ? 0 : info.si_status,
                    {}};
  table_.remember_gone(*record);
}

// Kills the orphans of children that are gone, and reports those children of which nothing is left. What
// dies here brings another SIGCHLD, and so another sweep that finds what it had started.
void Keeper::sweep() {
  dead_since_sweep_ = false;
  for (Record& record : table_) {
    record.lingering = record.reaped && (kill(-record.pid, 0) == 0 || errno == EPERM);
    if (record.reaped && record.cgroup && !remove_cgroup(record.cgroup)) record.lingering = true;
  }
  claim_orphans();
  report_ended();
}

void Keeper::claim_orphans() {
  const ChildList children(scan_);
  if (children.size() == table_.running_count()) return;  // each is one we started
  for (const pid_t pid : children) {
    if (table_.running(pid)) continue;
    const Claim owner = claim(table_, self_, pid);
    if (owner.owner != Owner::gone) continue;
    kill(pid, SIGKILL);
    if (Record* record = table_.find(owner.token)) record->lingering = true;
  }
}

void Keeper::report_ended() {
  const std::int64_t now = now_ms();
  for (std::size_t i = table_.size(); i-- > 0;) {
    Record& record = table_.begin()[i];
    if (!record.reaped || (record.lingering && now < record.deadline)) continue;
    if (!record.refused) say(record.report);
    table_.remove(record);
  }
}

int Keeper::milliseconds_to_deadline() {
  std::int64_t first = -1;
  for (const Record& record : table_) {
    if (record.reaped && (first < 0 || record.deadline < first)) first = record.deadline;
  }
  if (first < 0) return -1;
  const std::int64_t left = first - now_ms();
  return left < 0 ? 0 : static_cast<int>(left);
}

void Keeper::end() {
  close(kSocket);
  for (const Record& record : table_) {
    if (!record.reaped) kill(-record.pid, SIGKILL);
    if (record.cgroup) kill_cgroup(record.cgroup);
  }
  kill_children();
  for (const Record& record : table_) {
    if (record.cgroup) remove_cgroup(record.cgroup);
  }
}

void Keeper::kill_children() {
  for (;;) {
    const ChildList children(scan_);
    for (const pid_t pid : children) kill(pid, SIGKILL);
    if (!children.valid()) return;
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0 && errno != EINTR) return;
    if (!reap()) return;
  }
}

}  // namespace fairlead::keeper
