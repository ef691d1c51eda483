// The bound on how long one callback may hold an event loop, for tests of hostile input.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/timer.hpp"

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

// Waits until `count` is 0 and sets `largest_step` to the most that it fell by between two passes of the
// loop, in which other work has its turn. The caller keeps `largest_step`.
inline Task<void> watch_fall(Loop& loop, std::function<std::size_t()> count, std::size_t& largest_step) {
  for (std::size_t before = count(); before > 0;) {
    co_await sleep_for(loop, std::chrono::nanoseconds(1));
    const std::size_t now = count();
    largest_step = std::max(largest_step, before - std::min(before, now));
    before = now;
  }
}

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
