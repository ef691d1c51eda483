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

void TurnMeter::begin_first_turn(Clock::time_point now) noexcept {
  turn_began_ = sampled_at_ = now;
  sampled_cpu_ = thread_cpu_time();
  label_size_ = 0;
}

void TurnMeter::end_turn(Clock::time_point now) {
  const Duration elapsed = now - std::exchange(turn_began_, now);
  const std::string_view activity(label_.data(), std::exchange(label_size_, 0));
  if (now - sampled_at_ < kResolution) return;
  // The difference of the CPU times covers all turns since the last sample; the turns before this one took
  // less than kResolution in total. `elapsed` also includes the time for which the loop waited for events.
  const Duration cpu = thread_cpu_time();
  const Duration turn = std::min(elapsed, cpu - std::exchange(sampled_cpu_, cpu));
  sampled_at_ = now;
  longest_turn_ = std::max(longest_turn_, turn);
  if (turn <= budget_) return;
  ++slow_turn_count_;
  if (observer_) observer_(SlowTurn{turn, activity});
}

}  // namespace fairlead
