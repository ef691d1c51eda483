// Starter: starts an upstream once for any number of callers (single flight), and reports the outcome to all
// of them. Private to the layer.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <stop_token>

#include "fairlead/base/error.hpp"
#include "fairlead/pool/pool.hpp"
#include "pool/semaphore.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class Starter {
 public:
  // `upstream` owns the starter.
  explicit Starter(ManagedUpstream& upstream) : upstream_(upstream) {}

  // Starts the upstream unless a start is in progress, and waits for the outcome, on behalf of `client` (see
  // CallerKey). REQUIRES: the upstream is not ready. On success the upstream has been ready, but its
  // connection may already be lost again when the caller is resumed.
  Task<Result<void>> wait_until_ready(std::stop_token stop, StartPriority priority, std::string client);
  // Starts the upstream without waiting for the outcome.
  void start();
  // Ends the start in progress and wakes its waiters. `error` is nullopt if the upstream is ready.
  void finish(std::optional<Error> error);
  // Returns the error for calls when the upstream must not be started: in a crash loop the last error,
  // otherwise `connection_failed`.
  Error refusal_error() const;

  bool in_progress() const noexcept { return attempt_ != nullptr; }
  std::size_t waiter_count() const noexcept { return attempt_ ? attempt_->waiters.size() : 0; }
  // Interrupts a start that waits for max_concurrent_starts, so that it checks whether it is still needed.
  void wake_queued_start();
  // Releases the permit of max_concurrent_starts.
  void release_start_permit() { start_permit_ = Semaphore::Permit(); }

 private:
  using Action = Supervisor::Action;

  // A start and its waiters.
  struct Attempt {
    std::list<std::shared_ptr<Waiter>> waiters;
    std::optional<Error> error;
    StartPriority priority = StartPriority::background;
    bool queued = false;  // waits for max_concurrent_starts
    // Interrupts the wait for max_concurrent_starts when the priority has changed or no call waits for the
    // start any more.
    std::stop_source requeue;
  };

  // Waits until the upstream can be started, acquires the permits, and begins to open the connection.
  // finish() is called on every path on which the start ends.
  static Task<void> run(std::shared_ptr<ManagedUpstream> self);
  bool still_wanted(const Attempt& attempt) const noexcept;
  // Acquires a permit of max_concurrent_starts. A start that a call waits for has priority, and waits until
  // `deadline` at most. Fails with `cancelled` if no call waits for the start any more, with
  // `resource_exhausted` after `deadline`, or with refusal_error().
  static Task<Result<Semaphore::Permit>> acquire_start_permit(std::shared_ptr<ManagedUpstream> self,
                                                              std::shared_ptr<Attempt> attempt,
                                                              Clock::time_point deadline);
  void on_no_permit(const Error& error);
  // Returns the error for clocks.queue having elapsed while the server was backing off or its previous
  // process was ending.
  Error queue_timeout_error() const;

  ManagedUpstream& upstream_;
  std::shared_ptr<Attempt> attempt_;
  Semaphore::Permit start_permit_;  // while the upstream is being started
};

}  // namespace fairlead::pool
