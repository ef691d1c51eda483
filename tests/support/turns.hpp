// The bound on how long one callback may hold an event loop, for tests of hostile input.
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

// In thread CPU time, at release optimisation; more where the build is slower.
inline constexpr std::chrono::milliseconds kTurnBound = std::chrono::milliseconds(50) * kTurnFactor;

// Nearly as many bytes as a frame and a request body may have. Where the build is slower, and times say
// little, fewer, but still several steps of a parser.
inline constexpr std::size_t kLargestFrame = kTurnFactor == 1 ? (10u << 20) - 2000 : 1u << 20;
inline constexpr std::size_t kLargestBody = kTurnFactor == 1 ? (4u << 20) - 2000 : 1u << 20;

inline void expect_short_turns(Loop& loop) {
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(loop.turns().longest());
  ::testing::Test::RecordProperty("longest_turn_us", std::to_string(longest.count()));
  EXPECT_LT(longest, kTurnBound) << "the longest turn took " << longest.count() << " us";
}

// Judges the turns that `attack` causes.
template <class Attack>
void expect_short_turns(Loop& loop, Attack attack) {
  loop.turns().reset();
  attack();
  expect_short_turns(loop);
}

// Watches how a number of things falls to 0 on a loop, such as sessions that end: not more than two slices of
// them may end between two passes of the loop, in which other work has its turn.
class FallWatch {
 public:
  static constexpr std::size_t kTwoSlices = 2 * Slices::kEntries;

  explicit FallWatch(std::function<std::size_t()> count) { state_->count = std::move(count); }
  FallWatch(const FallWatch&) = delete;
  // `count` is not called any more.
  ~FallWatch() {
    const std::lock_guard lock(state_->mutex);
    state_->count = [] { return std::size_t(0); };
  }

  // Called on the loop thread, before anything ends.
  void begin(Loop& loop) { loop.spawn(watch(loop, state_)); }
  // From any thread: the number is 0.
  bool over() const {
    const std::lock_guard lock(state_->mutex);
    return state_->over;
  }
  // The most by which the number fell in one pass.
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
    bool over = false;

    // Returns whether any are left.
    bool look() {
      const std::lock_guard lock(mutex);
      const std::size_t now = count();
      largest_step = std::max(largest_step, last - std::min(last, now));
      last = now;
      over = now == 0;
      return !over;
    }
  };
  static Task<void> watch(Loop& loop, std::shared_ptr<State> state) {
    while (state->look()) co_await sleep_for(loop, Slices::kPause);
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// The least CPU time of this thread that `work` took in three runs. For comparisons within one test, which
// hold on slow and busy machines too.
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
