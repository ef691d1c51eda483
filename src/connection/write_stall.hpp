// WriteStall: notices that the other side of a connection takes nothing of what is written to it. Private to
// the library.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "fairlead/loop/timer.hpp"

namespace fairlead {

class WriteStall {
 public:
  // `stalled` is called once nothing was taken for `limit`. 0: never.
  WriteStall(Loop& loop, std::chrono::milliseconds limit, std::function<void()> stalled)
      : loop_(loop), limit_(limit), stalled_(std::move(stalled)) {}

  // A write did not take everything. `moved`: it took something, so the clock starts anew.
  void blocked(bool moved) {
    if (moved || !waiting_) since_ = Clock::now();
    waiting_ = true;
    if (timer_ || limit_.count() == 0) return;
    timer_.emplace(loop_);
    timer_->arm(since_ + limit_, [this] { check(); });
  }
  // Nothing is left to be written. The timer stays armed: blocking again is frequent, stalling is not.
  void flushed() noexcept { waiting_ = false; }
  void stop() noexcept {
    waiting_ = false;
    timer_.reset();
  }
  std::chrono::milliseconds limit() const noexcept { return limit_; }
  // For what is written from now on.
  void set_limit(std::chrono::milliseconds limit) noexcept {
    if (limit != limit_) stop();
    limit_ = limit;
  }

 private:
  void check() {
    if (!waiting_) return timer_.reset();
    const Clock::time_point end = since_ + limit_;
    if (Clock::now() < end) return timer_->arm(end, [this] { check(); });
    stalled_();
  }

  Loop& loop_;
  std::chrono::milliseconds limit_;
  std::function<void()> stalled_;
  std::optional<Timer> timer_;
  Clock::time_point since_;
  bool waiting_ = false;
};

}  // namespace fairlead
