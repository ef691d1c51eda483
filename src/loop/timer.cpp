#include "fairlead/loop/timer.hpp"

#include <utility>

#include "loop/reactor.hpp"

namespace fairlead {

struct Timer::Impl final : detail::Reactor::TimerEntry {
  explicit Impl(Loop& loop) : reactor(loop.reactor()) {}
  ~Impl() override { reactor.disarm(*this); }

  // The callback may destroy the timer.
  void run() override {
    Loop::Callback due = std::exchange(callback, nullptr);
    due();
  }

  detail::Reactor& reactor;
  Loop::Callback callback;
};

Timer::Timer(Loop& loop) noexcept : loop_(&loop) {}
Timer::Timer(Timer&&) noexcept = default;
Timer& Timer::operator=(Timer&& other) noexcept {
  std::swap(loop_, other.loop_);
  std::swap(impl_, other.impl_);
  return *this;
}
Timer::~Timer() = default;

void Timer::arm(Clock::time_point when, Loop::Callback callback) {
  if (!impl_) impl_ = std::make_unique<Impl>(*loop_);
  // The callback that is replaced is destroyed last, because it may own this timer.
  const Loop::Callback replaced = std::exchange(impl_->callback, std::move(callback));
  impl_->reactor.arm(*impl_, when);
}

void Timer::arm_after(Clock::duration delay, Loop::Callback callback) {
  arm(Clock::now() + delay, std::move(callback));
}

void Timer::cancel() {
  if (!impl_) return;
  const Loop::Callback cancelled = std::exchange(impl_->callback, nullptr);  // destroyed last; see arm()
  impl_->reactor.disarm(*impl_);
}

bool Timer::armed() const noexcept {
  return impl_ && impl_->callback;
}

}  // namespace fairlead
