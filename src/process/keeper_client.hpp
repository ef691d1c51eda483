// KeeperClient: the library's connection to the keeper process, one per loop that has started a child. It
// queues requests, dispatches the keeper's reports to the children, and starts a new keeper after one has
// died.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/process/child.hpp"
#include "process/cgroup_parent.hpp"
#include "process/child_error_context.hpp"
#include "process/containment_plan.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

// The parameters for starting one program, with all names resolved.
struct LaunchPlan {
  std::string path;  // of the program
  std::string cwd;
  std::vector<std::string> args;  // with argv[0]
  std::vector<std::string> env;   // NAME=value, without the cookie
  UniqueFd stdio[3];              // the child's ends of its pipes
  ContainmentPlan containment;
  std::string cgroup_parent;  // directory for the child's cgroup; used if containment includes with_cgroup
  ManifestOptions manifest;
  std::string name;    // for the manifest
  std::string digest;  // hash of program, working directory and arguments; for the manifest
  ChildErrorContext error_context;
};

// KeeperObserver: receives the keeper's reports about one child. Called on the loop thread. Every function
// may destroy the observer itself or other observers.
class KeeperObserver {
 public:
  virtual void on_started(pid_t pid, const keeper::SpawnOutcome& outcome) = 0;
  // The start has failed. No further function is called after this one, except on_loop_shutdown().
  virtual void on_refused(const keeper::SpawnOutcome& outcome) = 0;
  // The child has ended. No further function is called after this one, except on_loop_shutdown().
  virtual void on_ended(const ExitStatus& status) = 0;
  // The keeper has died, and with it the child, whether it was started or not. No further function is called
  // after this one, except on_loop_shutdown().
  virtual void on_keeper_died() = 0;
  // The loop is being destroyed. The observer must release everything that uses the loop.
  virtual void on_loop_shutdown() = 0;

 protected:
  ~KeeperObserver() = default;
};

class KeeperClient : public std::enable_shared_from_this<KeeperClient> {
 public:
  using Token = std::uint64_t;

  // Returns the client of this loop; creates it on first use.
  static std::shared_ptr<KeeperClient> for_loop(Loop& loop);

  explicit KeeperClient(Loop& loop);
  ~KeeperClient();

  // Registers an observer for on_loop_shutdown(), whether it has a process at that time or not.
  void add_shutdown_observer(KeeperObserver& observer) { shutdown_observers_.insert(&observer); }
  void remove_shutdown_observer(KeeperObserver& observer) { shutdown_observers_.erase(&observer); }

  // Starts the keeper unless it runs, and requests the start of the program. The observer is notified of the
  // result later. Fails with kind `spawn`.
  Result<Token> spawn(LaunchPlan plan, KeeperObserver& observer);
  // Returns the directory in which cgroups are created. `parent` is Containment::cgroup_parent; the result is
  // cached for each value until the keeper dies.
  const CgroupParent& cgroup_parent(const std::string& parent);
  // Writes the keeper's entry to the manifest unless it is already there. Fails with kind `spawn`.
  Result<void> write_keeper_entry(const ManifestOptions& manifest);

  // Returns whether the current keeper, or the last one if there is none, has sent a report.
  bool has_answered() const noexcept { return has_answered_; }

  // Returns true on the first call only. The reason for a missing cgroup is the same for every child, so it
  // is logged once.
  bool should_log_missing_cgroup() noexcept { return !std::exchange(missing_cgroup_logged_, true); }

  // Sets Limits::keeper_timeout. The last value set applies to all children of the loop.
  void set_keeper_timeout(std::chrono::milliseconds timeout) noexcept { keeper_timeout_ = timeout; }
  // Sends a ping to the keeper, and SIGCONT in case the keeper is stopped. Kills a keeper that stays stopped
  // for the timeout, or that runs and does not answer for five times the timeout. Then its children are
  // killed and the observers notified, as after any other death of the keeper. Every other request sends a
  // ping too.
  void ping();

  // Sends `signal` to the child's whole process group. Does nothing if the child has ended.
  void signal(Token token, int signal);
  // Kills the child, or cancels its start, and unregisters its observer, which is not called again for it.
  void kill_and_unregister(Token token);

  // Ends the keeper and all its children, and blocks until they have ended or a timeout has passed.
  void shut_down();

 private:
  struct QueuedRequest {
    keeper::Request request;
    std::string payload;
    std::vector<UniqueFd> fds;
  };

  Result<void> ensure_keeper();
  Result<QueuedRequest> make_spawn_request(LaunchPlan plan, Token token) const;
  std::string cookie_for(Token token) const;

  void flush_queues();
  // Return false if nothing more can be sent now.
  bool flush_control();
  bool flush_spawns();
  // Continues with flush_queues() when the socket is writable. Returns false.
  bool wait_to_write();
  int send_request(const QueuedRequest& message) const;

  void wait_for_report();
  void read_reports();
  void dispatch_report(const keeper::Report& report);
  KeeperObserver* extract_observer(Token token);
  void notify_refusal(Token token, const keeper::SpawnOutcome& outcome);
  // Counts the entry that the next child will write, and compacts the manifest after every compact_after
  // entries.
  void count_entry_and_compact_if_due(const ManifestOptions& manifest);
  void on_keeper_death();
  // Reaps a dead keeper when its end is visible, then kills its orphans.
  void reap_when_ended(UniqueFd pidfd);
  void arm_answer_timer();
  // Called when half of keeper_timeout_ has elapsed without an answer.
  void on_answer_timeout();
  void on_answer();
  void kill_descendants_of(pid_t keeper);
  void kill_orphans_until_none(int rounds);
  // REQUIRES: the socket is closed, which makes the keeper kill its children and exit.
  void stop_keeper();

  Loop& loop_;
  pid_t pid_ = 0;  // of the keeper
  bool has_answered_ = false;
  bool missing_cgroup_logged_ = false;
  std::optional<Descriptor> socket_;
  UniqueFd pidfd_;
  // Pidfds of dead keepers that are not yet reaped.
  std::deque<std::unique_ptr<Descriptor>> unreaped_keepers_;
  Token last_token_;
  std::unordered_map<Token, KeeperObserver*> observers_;
  std::unordered_set<KeeperObserver*> shutdown_observers_;
  std::deque<QueuedRequest> queued_spawns_;
  std::deque<QueuedRequest> queued_control_requests_;  // signals and pings
  std::size_t unanswered_spawns_ = 0;                  // spawn requests that were sent and not yet answered
  std::chrono::milliseconds keeper_timeout_ = Limits().keeper_timeout;
  std::optional<Timer> answer_timer_;  // set while an answer is awaited
  int missed_periods_ = 0;             // consecutive half timeouts in which no answer arrived
  bool kill_sent_ = false;             // SIGKILL was sent to the keeper because it did not answer
  std::optional<Timer> orphan_timer_;
  std::map<std::string, CgroupParent> cgroup_parents_;  // by Containment::cgroup_parent
  // Keys: the manifests with an entry of this keeper. Values: the number of entries added since the last
  // compaction.
  std::map<std::string, std::size_t> manifest_entry_counts_;
  bool is_shut_down_ = false;
};

}  // namespace fairlead::process
