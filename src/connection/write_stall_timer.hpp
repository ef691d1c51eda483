// WriteStallTimer: detects that the remote peer of a connection has stopped reading. Private to the library.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "fairlead/loop/timer.hpp"

namespace fairlead {

class WriteStallTimer {
 public:
  // Calls `on_stalled` when no byte could be written for `limit`. A limit of 0 means no limit.
  WriteStallTimer(Loop& loop, std::chrono::milliseconds limit, std::function<void()> on_stalled)
      : loop_(loop), limit_(limit), on_stalled_(std::move(on_stalled)) {}

  // Called when a write was incomplete. `progressed` is true if it wrote some bytes; the time starts again
  // then.
  void on_blocked(bool progressed) {
    if (progressed || !blocked_) blocked_since_ = Clock::now();
    blocked_ = true;
    if (timer_ || limit_.count() == 0) return;
    timer_.emplace(loop_);
    timer_->arm(blocked_since_ + limit_, [this] { check(); });
  }
  // Called when everything is written. The timer stays armed, because blocked writes are frequent and stalls
  // are rare.
  void on_flushed() noexcept { blocked_ = false; }
  void stop() noexcept {
    blocked_ = false;
    timer_.reset();
  }
  std::chrono::milliseconds limit() const noexcept { return limit_; }
  // Sets the limit for the writes that follow.
  void set_limit(std::chrono::milliseconds limit) noexcept {
    if (limit != limit_) stop();
    limit_ = limit;
  }

 private:
  void check() {
    if (!blocked_) return timer_.reset();
    const Clock::time_point deadline = blocked_since_ + limit_;
    if (Clock::now() < deadline) return timer_->arm(deadline, [this] { check(); });
    on_stalled_();
  }

  Loop& loop_;
  std::chrono::milliseconds limit_;
  std::function<void()> on_stalled_;
  std::optional<Timer> timer_;
  Clock::time_point blocked_since_;
  bool blocked_ = false;
};

}  // namespace fairlead
