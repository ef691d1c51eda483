// TurnMeter: turns are measured in thread CPU time, and a slow one is reported with its label.
#include "fairlead/loop/turn_meter.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <optional>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"

namespace fairlead {
namespace {

using std::chrono::milliseconds;

TurnMeter::Duration cpu_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void burn(TurnMeter::Duration time) {
  const auto until = cpu_now() + time;
  while (cpu_now() < until) continue;
}

// Runs `callback` as one turn.
void run_turn(Loop& loop, std::function<void()> callback) {
  bool done = false;
  loop.post([&] {
    callback();
    done = true;
  });
  loop.run_until([&] { return done; });
}

TEST(TurnMeterTest, ReportsTurnOverBudgetWithItsLabel) {
  Loop loop;
  std::optional<TurnMeter::Duration> reported;
  std::string activity;
  loop.turn_meter().observe(milliseconds(20), [&](const TurnMeter::SlowTurn& turn) {
    reported = turn.cpu_time;
    activity = turn.activity;
  });
  run_turn(loop, [&] {
    loop.turn_meter().label("server `files`");
    burn(milliseconds(40));
  });
  ASSERT_TRUE(reported);
  EXPECT_GE(*reported, milliseconds(40));
  EXPECT_EQ(activity, "server `files`");
  EXPECT_EQ(loop.turn_meter().slow_turn_count(), 1u);
  EXPECT_GE(loop.turn_meter().longest_turn(), milliseconds(40));
}

TEST(LoopTimeTest, NowFollowsTheClockBetweenCallbacksAndAfterWaiting) {
  Loop loop;
  const Clock::time_point start = Clock::now();
  Clock::time_point first;
  Clock::time_point after_wait;
  Timer timer(loop);
  bool done = false;
  loop.post([&] {
    first = loop.now();
    burn(milliseconds(5));
    EXPECT_EQ(loop.now(), first);
    loop.post([&] { EXPECT_GE(loop.now(), first + milliseconds(5)); });
    timer.arm_after(milliseconds(20), [&] {
      after_wait = loop.now();
      done = true;
    });
  });
  loop.run_until([&] { return done; });
  EXPECT_GE(first, start);
  EXPECT_GE(after_wait, first + milliseconds(25));
  EXPECT_LE(after_wait, Clock::now());
}

TEST(TurnMeterTest, DoesNotCountTimeSpentWaitingForEvents) {
  Loop loop;
  bool done = false;
  Timer timer(loop);
  timer.arm(Clock::now() + milliseconds(120), [&] { done = true; });
  loop.run_until([&] { return done; });
  EXPECT_EQ(loop.turn_meter().slow_turn_count(), 0u);
  EXPECT_LT(loop.turn_meter().longest_turn(), milliseconds(50));
}

TEST(TurnMeterTest, DoesNotAddUpShortTurns) {
  Loop loop;
  loop.turn_meter().observe(milliseconds(20), {});
  int left = 20;
  std::function<void()> next = [&] {
    burn(milliseconds(4));
    if (--left > 0) loop.post([&] { next(); });
  };
  loop.post([&] { next(); });
  loop.run_until([&] { return left == 0; });
  EXPECT_EQ(loop.turn_meter().slow_turn_count(), 0u);
}

TEST(TurnMeterTest, LabelIsClearedAtEndOfTurn) {
  Loop loop;
  std::string activity = "unset";
  loop.turn_meter().observe(milliseconds(20),
                            [&](const TurnMeter::SlowTurn& turn) { activity = turn.activity; });
  bool done = false;
  loop.post([&] { loop.turn_meter().label("first"); });
  loop.post([&] {
    burn(milliseconds(30));
    done = true;
  });
  loop.run_until([&] { return done; });
  EXPECT_EQ(activity, "");
}

}  // namespace
}  // namespace fairlead
