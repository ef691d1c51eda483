// Starter: starts an upstream once, however many callers want it, and tells all of them the outcome. Private
// to the layer.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <stop_token>

#include "fairlead/base/error.hpp"
#include "fairlead/pool/pool.hpp"
#include "pool/gate.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class Starter {
 public:
  // `upstream` owns it.
  explicit Starter(ManagedUpstream& upstream) : upstream_(upstream) {}

  // Starts it unless that is under way, and waits for the outcome, on behalf of `client` (see Caller).
  // REQUIRES: the upstream is not ready. When it returns without an error, the upstream was ready a moment
  // ago.
  Task<Result<void>> become_ready(std::stop_token stop, StartPriority priority, std::string client);
  // The same without waiting.
  void begin();
  // The start under way has ended. Tells those who wait.
  void finish(std::optional<Error> error);
  // Kind connection_failed when the upstream is stopped; in a crash loop the last error.
  Error refusal() const;

  bool under_way() const noexcept { return attempt_ != nullptr; }
  std::size_t waiting() const noexcept { return attempt_ ? attempt_->waiting.size() : 0; }
  // Wakes a start that waits for max_concurrent_starts, to see whether it is still wanted.
  void leave_queue();
  // Gives up its place among max_concurrent_starts.
  void release_slot() { slot_ = Gate::Pass(); }

 private:
  using Action = Supervisor::Action;

  // A start and those who wait for it.
  struct Attempt {
    std::list<std::shared_ptr<Waiter>> waiting;
    std::optional<Error> error;
    StartPriority priority = StartPriority::background;
    bool queued = false;       // for max_concurrent_starts
    std::stop_source requeue;  // wakes it there: its priority has changed, or no call waits for it any more
  };

  static Task<void> run(std::shared_ptr<ManagedUpstream> self);
  bool wanted(const Attempt& attempt) const noexcept;
  static Task<Result<Gate::Pass>> wait_for_slot(std::shared_ptr<ManagedUpstream> self,
                                                std::shared_ptr<Attempt> attempt, Clock::time_point latest);
  void on_no_place(const Error& error);
  Error still_waiting() const;

  ManagedUpstream& upstream_;
  std::shared_ptr<Attempt> attempt_;
  Gate::Pass slot_;  // while it is being started
};

}  // namespace fairlead::pool
