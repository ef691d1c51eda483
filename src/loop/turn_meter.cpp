#include "fairlead/loop/turn_meter.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace fairlead {

namespace {

TurnMeter::Duration thread_cpu_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

void TurnMeter::observe(Duration budget, Observer observer) {
  budget_ = budget;
  observer_ = std::move(observer);
}

void TurnMeter::label(std::string_view activity) noexcept {
  label_size_ = std::min(activity.size(), label_.size());
  std::copy_n(activity.data(), label_size_, label_.data());
}

void TurnMeter::begin() noexcept {
  turn_began_ = sampled_at_ = Clock::now();
  sampled_cpu_ = thread_cpu_time();
  label_size_ = 0;
}

void TurnMeter::end_turn() {
  const Clock::time_point now = Clock::now();
  const Duration elapsed = now - std::exchange(turn_began_, now);
  const std::string_view activity(label_.data(), std::exchange(label_size_, 0));
  if (now - sampled_at_ < kResolution) return;
  // All turns since the sample, of which those before this one lasted less than kResolution together. The
  // time that the loop waited for events counts in `elapsed` only.
  const Duration cpu = thread_cpu_time();
  const Duration turn = std::min(elapsed, cpu - std::exchange(sampled_cpu_, cpu));
  sampled_at_ = now;
  longest_ = std::max(longest_, turn);
  if (turn <= budget_) return;
  ++slow_turns_;
  if (observer_) observer_(SlowTurn{turn, activity});
}

}  // namespace fairlead
