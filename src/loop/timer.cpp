#include "fairlead/loop/timer.hpp"

#include <boost/asio/steady_timer.hpp>

namespace fairlead {

struct Timer::Impl : std::enable_shared_from_this<Timer::Impl> {
  explicit Impl(Loop& loop) : timer(loop.asio_context()) {}

  boost::asio::steady_timer timer;
  Loop::Callback callback;
  // Incremented by arm() and cancel(). A wait that expired before, and whose callback has not run yet, has an
  // older generation and is ignored.
  std::uint64_t generation = 0;

  void fire(std::uint64_t armed_generation) {
    if (armed_generation != generation || !callback) return;
    Loop::Callback due = std::move(callback);
    callback = nullptr;
    due();
  }
};

Timer::Timer(Loop& loop) : impl_(std::make_shared<Impl>(loop)) {}
Timer::Timer(Timer&&) noexcept = default;
Timer& Timer::operator=(Timer&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}
Timer::~Timer() {
  if (impl_) cancel();
}

void Timer::arm(Clock::time_point when, Loop::Callback callback) {
  ++impl_->generation;
  impl_->callback = std::move(callback);
  impl_->timer.expires_at(when);
  impl_->timer.async_wait(
      [impl = impl_, generation = impl_->generation](const boost::system::error_code& ec) {
        if (!ec) impl->fire(generation);
      });
}

void Timer::arm_after(Clock::duration delay, Loop::Callback callback) {
  arm(Clock::now() + delay, std::move(callback));
}

void Timer::cancel() {
  ++impl_->generation;
  impl_->callback = nullptr;
  impl_->timer.cancel();
}

bool Timer::armed() const noexcept {
  return static_cast<bool>(impl_->callback);
}

}  // namespace fairlead
