// Semaphore: limits how many callers hold a permit at a time. Further callers wait, each up to its timeout:
// urgent waiters are woken first, the others round-robin by caller, and those of one caller in FIFO order.
// Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "pool/fair_wait_queue.hpp"

namespace fairlead::pool {

// A coroutine that waits until it is woken, cancelled, or timed out. wake() does not resume the coroutine
// itself but posts that to the loop, because the coroutine may do anything, even destroy the caller of
// wake().
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  explicit Waiter(Loop& loop) : loop_(loop) {}
  void wake();
  bool woken() const noexcept { return woken_; }
  // Returns true if it was woken, false if it timed out or was cancelled.
  static Task<bool> wait(std::shared_ptr<Waiter> self, Clock::duration timeout, std::stop_token stop);

 private:
  Loop& loop_;
  Event resumed_;
  bool woken_ = false;
};

class Semaphore : public std::enable_shared_from_this<Semaphore> {
 public:
  // A permit of the semaphore, or empty. The destructor releases the permit, which wakes the next waiter.
  class Permit {
   public:
    Permit() = default;
    explicit Permit(std::shared_ptr<Semaphore> semaphore) : semaphore_(std::move(semaphore)) {}
    Permit(Permit&&) noexcept = default;
    Permit& operator=(Permit&& other) noexcept {
      std::swap(semaphore_, other.semaphore_);
      return *this;
    }
    ~Permit() {
      if (semaphore_) semaphore_->release();
    }
    explicit operator bool() const noexcept { return static_cast<bool>(semaphore_); }

   private:
    std::shared_ptr<Semaphore> semaphore_;
  };

  Semaphore(Loop& loop, std::size_t limit) : loop_(loop), limit_(limit) {}

  // Returns an empty permit if all permits are in use or other callers wait for one.
  Permit try_acquire();
  // Waits for a permit. Returns an empty permit if it times out or is cancelled.
  Task<Permit> acquire(Clock::duration timeout, std::stop_token stop, bool urgent = false,
                       CallerKey caller = CallerKey());

  // Changes how many permits can be held at a time. If more are held, no caller gets one until enough of them
  // have been released.
  void set_limit(std::size_t limit);
  std::size_t limit() const noexcept { return limit_; }
  std::size_t in_use() const noexcept { return in_use_; }
  std::size_t waiter_count() const noexcept { return urgent_queue_.size() + queue_.size(); }

 private:
  struct QueuedWaiter;
  // A released permit counts as in use by the next waiter at once, before the coroutine of that waiter is
  // resumed, so that no other caller can acquire it.
  void release() {
    --in_use_;
    if (waiter_count() > 0) wake_waiters();
  }
  void wake_waiters();  // as long as there are permits for them

  Loop& loop_;
  std::size_t limit_;
  std::size_t in_use_ = 0;
  FairWaitQueue urgent_queue_;
  FairWaitQueue queue_;
};

}  // namespace fairlead::pool
