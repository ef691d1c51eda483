// The keeper: a small process beside each loop that starts children. It starts them for the library, is the
// parent or the subreaper of everything they start, and outlives us just long enough to kill it all.
// docs/processes.md says what that buys. One thread, no exceptions, one socket.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

#include "process/keeper/array.hpp"
#include "process/keeper/protocol.hpp"
#include "process/keeper/table.hpp"

namespace fairlead::keeper {

class Keeper {
 public:
  static constexpr std::size_t kMaxPending = 64;

  // `signals`: a signalfd of SIGCHLD; `parent`: a pidfd of the library's process, or -1; `outcomes`:
  // kMaxPending of them in memory that children share with us; `scan`: for tests, see ChildList.
  Keeper(int signals, int parent, Outcome* outcomes, bool scan)
      : signals_(signals), parent_(parent), outcomes_(outcomes), scan_(scan) {}

  // Until the library is gone.
  void serve();
  // Kills all there is and all that becomes our child, until there is none.
  void end();

 private:
  // A child on its way to its program. No request is read while there is no room for another.
  struct Pending {
    std::uint64_t token;
    pid_t pid;
    int arrival;       // see launch()
    Outcome* outcome;  // one of outcomes_
  };

  // requests.cpp
  bool take_requests();
  void take(char* packet, std::size_t size, int* fds, int count);
  void spawn(const Request& request, char* payload, const int* fds);
  void start(const struct Launch& what, const char* cgroup);
  Outcome& free_outcome();
  void settle(std::size_t index);
  void settle_child(std::uint64_t token);
  void signal_group(const Request& request);
  void refuse(std::uint64_t token, Step step, int error);
  void refuse(std::uint64_t token, const Outcome& outcome);

  // reaper.cpp
  bool reap();
  void reap_one(const siginfo_t& info);
  void sweep();
  void claim_orphans();
  void report_ended();
  int milliseconds_to_deadline();
  void kill_children();

  // serve.cpp
  void say(const Report& report);
  bool flush();

  int signals_;
  int parent_;
  Outcome* outcomes_;
  bool scan_;
  pid_t self_ = getpid();
  Table table_;
  Pending pending_[kMaxPending];
  std::size_t pending_count_ = 0;
  bool dead_since_sweep_ = false;
  Array<Report> backlog_;  // what the socket did not take. While there is any, no request is read.
};

}  // namespace fairlead::keeper
