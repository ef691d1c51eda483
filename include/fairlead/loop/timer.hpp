// Timer: calls back once, on its loop, at a point in time. Destroying the timer cancels it. Loop thread only.
#pragma once

#include <coroutine>
#include <memory>

#include "fairlead/loop/loop.hpp"

namespace fairlead {

class Timer {
 public:
  explicit Timer(Loop& loop) noexcept;
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;
  ~Timer();

  // Calls `callback` at the time `when`, or after `delay`. Replaces an earlier callback. A callback that is
  // cancelled or replaced, or whose timer is destroyed, is never called. REQUIRES: `callback` is not empty.
  void arm(Clock::time_point when, Loop::Callback callback);
  void arm_after(Clock::duration delay, Loop::Callback callback);
  void cancel();
  bool armed() const noexcept;

 private:
  struct Impl;
  Loop* loop_;
  std::unique_ptr<Impl> impl_;  // null: the timer has never been armed
};

// co_await sleep_for(loop, 50ms) suspends the coroutine for that time.
class Sleep {
 public:
  Sleep(Loop& loop, Clock::duration delay) : timer_(loop), delay_(delay) {}
  bool await_ready() const noexcept { return delay_ <= Clock::duration::zero(); }
  void await_suspend(std::coroutine_handle<> handle) {
    timer_.arm_after(delay_, [handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  Timer timer_;
  Clock::duration delay_;
};

inline Sleep sleep_for(Loop& loop, Clock::duration delay) {
  return Sleep(loop, delay);
}

}  // namespace fairlead
