// Keeper: the main class of the keeper program. Each loop that starts children has its own keeper process.
// The keeper starts the children for the library, is the parent of the children and the subreaper of their
// descendants, and kills them all when the library's process has ended (docs/processes.md). It has one thread
// and one socket, and uses no exceptions.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

#include "process/keeper/array.hpp"
#include "process/keeper/child_table.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

class Keeper {
 public:
  static constexpr std::size_t kMaxPendingStarts = 64;

  // `signal_fd` is a signalfd for SIGCHLD; `parent_pidfd` a pidfd of the library's process, or -1; `outcomes`
  // an array of kMaxPendingStarts in memory that is shared with the children. `scan_proc` is for tests; see
  // ChildList.
  Keeper(int signal_fd, int parent_pidfd, SpawnOutcome* outcomes, bool scan_proc)
      : signal_fd_(signal_fd), parent_pidfd_(parent_pidfd), outcomes_(outcomes), scan_proc_(scan_proc) {}

  // Serves requests until the library's process has ended or closed the socket.
  void serve();
  // Kills all children, and the orphans that become children of the keeper, until none is left.
  void shut_down();

 private:
  // A child that has been forked and has not yet executed its program. While there are kMaxPendingStarts of
  // these, no request is read.
  struct PendingStart {
    std::uint64_t token;
    pid_t pid;
    int exec_pipe;          // see LaunchedChild
    SpawnOutcome* outcome;  // an element of outcomes_
  };

  // requests.cpp
  bool read_requests();
  void handle_packet(char* packet, std::size_t size, int* fds, int fd_count);
  void handle_spawn(const Request& request, char* payload, const int* fds);
  void start_child(const struct LaunchParams& params, const char* cgroup_path);
  SpawnOutcome& unused_outcome();
  void finish_start(std::size_t index);
  void finish_start_of(std::uint64_t token);
  void handle_signal(const Request& request);
  void report_refusal(std::uint64_t token, SpawnStep step, int error);
  void report_refusal(std::uint64_t token, const SpawnOutcome& outcome);

  // reaper.cpp
  bool reap_all();
  void reap_child(const siginfo_t& info);
  void clean_up_ended();
  void kill_orphans();
  void report_ended_children();
  int milliseconds_to_report_deadline();  // the next report_deadline; -1 if there is none
  void kill_remaining_children();

  // serve.cpp
  void send_report(const Report& report);
  bool flush_reports();

  int signal_fd_;
  int parent_pidfd_;
  SpawnOutcome* outcomes_;
  bool scan_proc_;
  pid_t self_ = getpid();
  ChildTable children_;
  PendingStart pending_starts_[kMaxPendingStarts];
  std::size_t pending_start_count_ = 0;
  bool cleanup_due_ = false;  // clean_up_ended() must run, because a child was reaped
  // Reports that the socket did not accept yet; while there are any, no request is read.
  Array<Report> unsent_reports_;
};

}  // namespace fairlead::keeper
