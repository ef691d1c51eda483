// Limits on the duration of turns, for tests of hostile input.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
// The factor by which turns may take longer than in a release build.
inline constexpr int kTurnFactor = 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr int kTurnFactor = 20;
#else
inline constexpr int kTurnFactor = 1;
#endif
#else
inline constexpr int kTurnFactor = 1;
#endif

// The maximum thread CPU time of a turn: 50 ms in a release build, more in slower builds.
inline constexpr std::chrono::milliseconds kTurnBound = std::chrono::milliseconds(50) * kTurnFactor;

// Sizes of large frames and request bodies: nearly the maximum size or, in slower builds, where measured
// times are not meaningful, a size that is still parsed in several steps.
inline constexpr std::size_t kLargeFrameBytes = kTurnFactor == 1 ? (10u << 20) - 2000 : 1u << 20;
inline constexpr std::size_t kLargeBodyBytes = kTurnFactor == 1 ? (4u << 20) - 2000 : 1u << 20;

// Expects that no turn since the last reset() of the meter took longer than kTurnBound.
inline void expect_short_turns(Loop& loop) {
  const auto longest =
      std::chrono::duration_cast<std::chrono::microseconds>(loop.turn_meter().longest_turn());
  ::testing::Test::RecordProperty("longest_turn_us", std::to_string(longest.count()));
  EXPECT_LT(longest, kTurnBound) << "the longest turn took " << longest.count() << " us";
}

// The same for the turns while `attack` runs.
template <class Attack>
void expect_short_turns(Loop& loop, Attack attack) {
  loop.turn_meter().reset();
  attack();
  expect_short_turns(loop);
}

// DrainMonitor: observes how a count, such as the number of sessions while they end, falls to 0. It samples
// the count on the loop between slices of work. Tests expect that the count falls by at most
// kTwoSlices between two samples.
class DrainMonitor {
 public:
  static constexpr std::size_t kTwoSlices = 2 * Slices::kMaxEntriesPerSlice;

  explicit DrainMonitor(std::function<std::size_t()> count) { state_->count = std::move(count); }
  DrainMonitor(const DrainMonitor&) = delete;
  // `count` is not called after destruction.
  ~DrainMonitor() {
    const std::lock_guard lock(state_->mutex);
    state_->count = [] { return std::size_t(0); };
  }

  // Starts sampling. Called on the loop thread, before the count falls.
  void start(Loop& loop) { loop.spawn(sample_until_zero(loop, state_)); }
  // Returns whether the count has reached 0. Thread-safe.
  bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->done;
  }
  // Returns the largest decrease between two samples. Thread-safe.
  std::size_t largest_step() const {
    const std::lock_guard lock(state_->mutex);
    return state_->largest_step;
  }

 private:
  struct State {
    std::mutex mutex;
    std::function<std::size_t()> count;
    std::size_t last = 0;
    std::size_t largest_step = 0;
    bool done = false;

    // Samples the count. Returns whether it is still above 0.
    bool sample() {
      const std::lock_guard lock(mutex);
      const std::size_t now = count();
      largest_step = std::max(largest_step, last - std::min(last, now));
      last = now;
      done = now == 0;
      return !done;
    }
  };
  static Task<void> sample_until_zero(Loop& loop, std::shared_ptr<State> state) {
    while (state->sample()) co_await sleep_for(loop, Slices::kPause);
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Returns the least thread CPU time of three runs of `work`. A test compares two such times with each other,
// so that it passes on slow and busy machines too.
template <class Work>
std::chrono::nanoseconds cpu_time(Work work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  auto least = std::chrono::nanoseconds::max();
  for (int run = 0; run < 3; ++run) {
    const std::chrono::nanoseconds before = now();
    work();
    least = std::min<std::chrono::nanoseconds>(least, now() - before);
  }
  return least;
}

}  // namespace fairlead::test
