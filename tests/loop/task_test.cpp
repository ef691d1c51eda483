// Task, all(), Loop, Timer and Event.
#include "fairlead/loop/task.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "fairlead/loop/all.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

Task<int> value(int n) {
  co_return n;
}

Task<int> sum_of(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    Task<int> next = value(1);
    sum += co_await next;
  }
  co_return sum;
}

Task<int> failing() {
  throw std::runtime_error("no");
  co_return 0;
}

Task<void> out_of_memory(bool* started) {
  *started = true;
  throw std::bad_alloc();
  co_return;
}

TEST(TaskTest, OutOfMemoryEndsOnlyTheSpawnedTask) {
  Loop loop;
  bool started = false;
  bool other = false;
  loop.post([&] { loop.spawn(out_of_memory(&started)); });
  loop.post([&] { other = true; });
  loop.run_until([&] { return other; });
  EXPECT_TRUE(started);
}

TEST(LoopTest, OutOfMemoryEndsOnlyTheCallback) {
  Loop loop;
  bool other = false;
  loop.post([] { throw std::bad_alloc(); });
  loop.post([&] { other = true; });
  loop.run_until([&] { return other; });
  EXPECT_TRUE(other);
}

TEST(TaskTest, AwaitingAMillionReadyTasksDoesNotGrowTheStack) {
  Loop loop;
  EXPECT_EQ(loop.block_on(sum_of(1'000'000)), 1'000'000);
}

TEST(TaskTest, ExceptionIsRethrownInAwaitingCoroutine) {
  Loop loop;
  EXPECT_THROW(loop.block_on(failing()), std::runtime_error);
}

TEST(TaskTest, TaskThatIsNotAwaitedNeitherRunsNorLeaks) {
  const Task<int> never = failing();
}

// ---- all --------------------------------------------------------------------------------------------------

Task<int> value_after(Event& event, Loop& loop, int n) {
  const bool was_set = co_await event.wait(loop, 10s);
  co_return was_set ? n : -1;
}

Task<std::string> note(std::string& notes) {
  notes += "started ";
  co_return "noted";
}

Task<bool> set_both(Event& first, Event& second) {
  second.set();
  first.set();
  co_return true;
}

Task<std::string> several(Loop& loop, Event& first, Event& second, std::string& notes) {
  auto running =
      all(value_after(first, loop, 1), value_after(second, loop, 2), note(notes), set_both(first, second));
  const auto [one, two, noted, set] = co_await running;
  co_return notes + std::to_string(one) + std::to_string(two) + noted + (set ? "" : "?");
}

TEST(AllTest, TasksThatDependOnEachOtherComplete) {
  Loop loop;
  Event first;
  Event second;
  std::string notes;
  EXPECT_EQ(loop.block_on(several(loop, first, second, notes)), "started 12noted");
}

Task<int> ready_and_failing() {
  auto running = all(value(1), failing(), value(2));
  const auto [one, never, two] = co_await running;
  co_return one + never + two;
}

TEST(AllTest, ExceptionOfOneTaskIsRethrownInAwaitingCoroutine) {
  Loop loop;
  EXPECT_THROW(loop.block_on(ready_and_failing()), std::runtime_error);
}

Task<void> outlived(Loop& loop, Event& event, std::shared_ptr<int> kept, bool& reached) {
  auto running = all(value_after(event, loop, *kept), value_after(event, loop, *kept));
  const auto [one, two] = co_await running;
  reached = one == two;
}

TEST(AllTest, DestructionWhileWaitingNeitherLeaksNorResumes) {
  auto kept = std::make_shared<int>(1);
  bool reached = false;
  Event event;
  {
    Loop loop;
    loop.spawn(outlived(loop, event, kept, reached));
    loop.run_until([&] { return kept.use_count() == 2; });
  }
  EXPECT_EQ(kept.use_count(), 1);
  event.set();
  EXPECT_FALSE(reached);
}

// ---- loop ------------------------------------------------------------------------------------------------

TEST(LoopTest, PostFromAnotherThreadRunsOnTheLoop) {
  Loop loop;
  bool on_loop = false;
  std::thread other([&] {
    loop.post([&] {
      on_loop = loop.in_loop_thread();
      loop.stop();
    });
  });
  loop.run();
  other.join();
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(loop.in_loop_thread());
}

Task<void> wait_forever(Loop& loop, std::shared_ptr<int> captured) {
  co_await sleep_for(loop, 1h);
  *captured = 1;
}

TEST(LoopTest, DestructorDestroysSuspendedTasks) {
  auto captured = std::make_shared<int>(0);
  {
    Loop loop;
    loop.spawn(wait_forever(loop, captured));
    loop.block_on(value(1));
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
}

TEST(LoopTest, BlockOnWorksWhileAnotherThreadRunsTheLoop) {
  Loop loop;
  std::thread runner([&] { loop.run(); });
  EXPECT_EQ(loop.block_on(value(7)), 7);
  loop.stop();
  runner.join();
}

TEST(LoopTest, WritingToAClosedPipeFailsWithoutSigpipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  Loop loop;
  ssize_t written = 0;
  loop.post([&] {
    written = ::write(ends[1], "x", 1);
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(written, -1);
  ::close(ends[1]);
}

TEST(LoopTest, ScratchBufferGrowsToAtMostOneMebibyte) {  // R2.7
  Loop loop;
  const std::size_t first = loop.scratch_buffer().size();
  for (int i = 0; i < 20; ++i) loop.grow_scratch_buffer();
  EXPECT_LT(first, 128u << 10);
  EXPECT_EQ(loop.scratch_buffer().size(), 1u << 20);
}

// ---- timer -----------------------------------------------------------------------------------------------

TEST(TimerTest, TimersFireInOrderOfTheirTime) {
  Loop loop;
  std::string order;
  Timer late(loop);
  Timer early(loop);
  late.arm_after(20ms, [&] {
    order += "late";
    loop.stop();
  });
  early.arm_after(1ms, [&] { order += "early "; });
  loop.run();
  EXPECT_EQ(order, "early late");
}

TEST(TimerTest, CancelledReplacedAndDestroyedCallbacksNeverRun) {
  Loop loop;
  int fired = 0;
  Timer cancelled(loop);
  cancelled.arm_after(0ms, [&] { fired += 1; });
  cancelled.cancel();
  Timer replaced(loop);
  replaced.arm_after(0ms, [&] { fired += 10; });
  replaced.arm_after(1ms, [&] { fired += 100; });
  {
    Timer(loop).arm_after(0ms, [&] { fired += 1000; });
  }
  Timer end(loop);
  end.arm_after(20ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(fired, 100);
}

TEST(TimerTest, CancelAfterExpiryPreventsTheCallback) {
  Loop loop;
  bool fired = false;
  Timer timer(loop);
  timer.arm(Clock::now() - 1s, [&] { fired = true; });
  timer.cancel();
  loop.post([&] { loop.post([&] { loop.stop(); }); });
  loop.run();
  EXPECT_FALSE(fired);
}

// ---- event -----------------------------------------------------------------------------------------------

Task<void> wait_and_note(Loop& loop, Event& event, std::chrono::milliseconds limit, int& set,
                         int& timed_out) {
  const bool was_set = co_await event.wait(loop, limit);
  ++(was_set ? set : timed_out);
}

TEST(EventTest, SetWakesAllWaitersThatHaveNotTimedOut) {
  Loop loop;
  Event event;
  int set = 0;
  int timed_out = 0;
  loop.spawn(wait_and_note(loop, event, 1h, set, timed_out));
  loop.spawn(wait_and_note(loop, event, 1h, set, timed_out));
  loop.spawn(wait_and_note(loop, event, 1ms, set, timed_out));
  loop.run_until([&] { return timed_out == 1; });
  EXPECT_EQ(set, 0);
  event.set();
  loop.spawn(wait_and_note(loop, event, 1h, set, timed_out));
  loop.run_until([&] { return set == 3; });
  EXPECT_EQ(timed_out, 1);
}

TEST(EventTest, ManyWaitersWakeInSeveralTurnsAfterSetAndReset) {
  constexpr int kMany = 10 * static_cast<int>(Event::kMaxWakesPerTurn);
  Loop loop;
  Event event;
  int woken = 0;
  int timed_out = 0;
  for (int i = 0; i < kMany; ++i)
    loop.spawn(wait_and_note(loop, event, std::chrono::hours(1), woken, timed_out));
  bool set = false;
  loop.post([&] {
    event.set();
    event.reset();
    set = true;
  });
  loop.run_until([&] { return set; });
  EXPECT_EQ(woken, static_cast<int>(Event::kMaxWakesPerTurn));
  loop.spawn(
      wait_and_note(loop, event, std::chrono::hours(1), woken, timed_out));  // waits for the next set()
  loop.run_until([&] { return woken == kMany; });
  bool over = false;
  loop.post([&] { over = true; });
  loop.run_until([&] { return over; });
  EXPECT_EQ(woken, kMany);
  EXPECT_EQ(timed_out, 0);
}

TEST(EventTest, CopyIsTheSameEvent) {
  for (const bool set_before : {false, true}) {
    Event event;
    if (set_before) event.set();
    Event copy = event;
    EXPECT_EQ(copy.is_set(), set_before);
    copy.reset();
    EXPECT_FALSE(event.is_set());
    event.set();
    EXPECT_TRUE(copy.is_set());
    Event other;
    other = copy;
    other.reset();
    EXPECT_FALSE(event.is_set());
  }
}

TEST(TimerTest, TimerThatWasNeverArmedCanBeCancelledAndMoved) {
  Loop loop;
  Timer timer(loop);
  timer.cancel();
  EXPECT_FALSE(timer.armed());
  Timer moved(std::move(timer));
  bool called = false;
  moved.arm_after(std::chrono::milliseconds(1), [&] { called = true; });
  EXPECT_TRUE(moved.armed());
  loop.run_until([&] { return called; });
}

Task<void> own_event(Loop& loop, Event*& mine, bool& done) {
  Event event;
  mine = &event;
  const bool was_set = co_await event.wait(loop, 1h);
  done = was_set;
}

TEST(EventTest, WokenWaiterMayDestroyTheEvent) {
  Loop loop;
  Event* event = nullptr;
  bool done = false;
  loop.spawn(own_event(loop, event, done));
  loop.run_until([&] { return event != nullptr; });
  event->set();  // resumes the coroutine, which ends and destroys the event
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace fairlead
