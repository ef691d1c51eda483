// KeeperClient: the library's end of the keeper, one for each loop that has started a child. It queues
// requests, tells each child what the keeper reports about it, and starts a new keeper when one has died.
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
#include "process/belt_plan.hpp"
#include "process/cgroup_home.hpp"
#include "process/keeper/protocol.hpp"
#include "process/last_words.hpp"

namespace fairlead::process {

// One program to start, all names resolved.
struct SpawnOrder {
  std::string path;
  std::string cwd;
  std::vector<std::string> args;  // with argv[0]
  std::vector<std::string> env;   // NAME=value, without the cookie
  UniqueFd stdio[3];              // the child's ends
  BeltPlan belts;
  std::string cgroup_home;  // where its cgroup is to be made; with belts.wants(with_cgroup)
  ManifestOptions manifest;
  std::string name;    // for the manifest
  std::string digest;  // of program, directory and arguments; for the manifest
  LastWords last_words;
};

// Who is told about a child. Every call is on the loop, and each may release the child or destroy others.
class KeeperObserver {
 public:
  virtual void started(pid_t pid, const keeper::Outcome& outcome) = 0;
  virtual void refused(const keeper::Outcome& outcome) = 0;  // the last call
  virtual void ended(const ExitStatus& status) = 0;          // the last call
  virtual void keeper_died() = 0;                            // the last call, started or not
  virtual void loop_ends() = 0;                              // let go of all that is on the loop

 protected:
  ~KeeperObserver() = default;
};

class KeeperClient : public std::enable_shared_from_this<KeeperClient> {
 public:
  using Token = std::uint64_t;

  // The one of this loop, made at first use.
  static std::shared_ptr<KeeperClient> of(Loop& loop);

  explicit KeeperClient(Loop& loop);
  ~KeeperClient();

  // Enrolled observers are told when the loop ends, whether they have a process then or not.
  void enroll(KeeperObserver& observer) { enrolled_.insert(&observer); }
  void dismiss(KeeperObserver& observer) { enrolled_.erase(&observer); }

  // Starts the keeper unless it runs, and asks it for the program. The observer is told how it went, later.
  // Errors are of kind `spawn`.
  Result<Token> spawn(SpawnOrder order, KeeperObserver& observer);
  // Where cgroups can be made, found out once for each name (see Containment::cgroup_parent).
  const CgroupHome& cgroup_home(const std::string& parent);
  // Enters the keeper in the manifest, unless it is. Errors are of kind `spawn`.
  Result<void> enter_keeper(const ManifestOptions& manifest);

  // Whether the keeper that runs, or ran last, has ever said anything.
  bool has_answered() const noexcept { return has_answered_; }

  // True the first time: that there is no cgroup is the same for every child.
  bool first_without_cgroup() noexcept { return !std::exchange(told_of_no_cgroup_, true); }

  // Limits::keeper_timeout. The last value applies to all children of the loop.
  void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }
  // Continues the keeper if somebody has stopped it, and asks it for a sign of life. One that stays stopped
  // for the timeout, or runs and does not answer for five times as long, is killed; then its children are
  // killed and told, as if it had died by itself. Every other request pings as well.
  void ping();

  // To the child's whole group. Nothing happens when it has ended.
  void signal(Token token, int signal);
  // The observer is told nothing more, and what it observed is killed.
  void release(Token token);

  // Ends the keeper and all its children, and waits for that, within bounds.
  void shut_down();

 private:
  struct Outgoing {
    keeper::Request request;
    std::string payload;
    std::vector<UniqueFd> fds;
  };

  Result<void> ensure_keeper();
  Result<Outgoing> pack(SpawnOrder order, Token token) const;
  std::string cookie(Token token) const;

  void flush();
  bool flush_signals();
  bool flush_spawns();
  bool wait_to_write();
  int send(const Outgoing& message) const;

  void read_when_ready();
  void on_readable();
  void dispatch(const keeper::Report& report);
  KeeperObserver* take_observer(Token token);
  void refuse(Token token, const keeper::Outcome& outcome);
  void compact_if_due(const ManifestOptions& manifest);
  void on_keeper_death();
  void reap_later(UniqueFd pidfd);
  void wait_for_answer();
  void on_silence();
  void answered();
  void kill_descendants_of(pid_t keeper);
  void sweep_orphans(int rounds);
  void end_keeper();

  Loop& loop_;
  pid_t pid_ = 0;
  bool has_answered_ = false;
  bool told_of_no_cgroup_ = false;
  std::optional<Descriptor> socket_;
  UniqueFd pidfd_;
  std::deque<std::unique_ptr<Descriptor>> dying_;  // keepers that died and are not reaped yet
  Token next_token_;
  std::unordered_map<Token, KeeperObserver*> observers_;
  std::unordered_set<KeeperObserver*> enrolled_;
  std::deque<Outgoing> spawns_;
  std::deque<Outgoing> signals_;
  std::size_t unanswered_ = 0;  // spawns sent
  std::chrono::milliseconds timeout_ = Limits().keeper_timeout;
  std::optional<Timer> silence_;  // while an answer is awaited
  int silent_periods_ = 0;
  bool killed_ = false;  // for its silence
  std::optional<Timer> orphan_sweep_;
  std::map<std::string, CgroupHome> cgroup_homes_;
  std::map<std::string, std::size_t>
      manifests_;  // those this keeper is in, and entries since the last compaction
  bool down_ = false;
};

}  // namespace fairlead::process
