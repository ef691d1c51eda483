#include "fairlead/loop/workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>

#include "loop/run_blocking.hpp"

namespace fairlead {
namespace {

TEST(WorkersTest, JobsRunConcurrentlyUpToTheLimit) {
  Limits limits;
  limits.max_blocking_threads = 4;
  std::latch together(4);  // released only when four jobs run concurrently
  std::latch done(4);
  Workers workers(limits);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(workers.submit([&] {
      together.arrive_and_wait();
      done.count_down();
    }));
  }
  done.wait();
}

TEST(WorkersTest, SubmitFailsWhenTheQueueIsFull) {
  Limits limits;
  limits.max_blocking_threads = 1;
  limits.max_blocking_queue = 2;
  std::latch started(1);
  std::latch release(1);
  Workers workers(limits);
  ASSERT_TRUE(workers.submit([&] {
    started.count_down();
    release.wait();
  }));
  started.wait();
  ASSERT_TRUE(workers.submit([] {}));
  ASSERT_TRUE(workers.submit([] {}));
  const Result<void> refused = workers.submit([] {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(refused.error().message().find("max_blocking_queue (2)"), std::string::npos);
  release.count_down();
}

TEST(WorkersTest, DestructorWaitsForRunningJobs) {
  std::atomic<bool> finished = false;
  {
    Workers workers;
    std::latch started(1);
    ASSERT_TRUE(workers.submit([&] {
      started.count_down();
      finished = true;
    }));
    started.wait();
  }
  EXPECT_TRUE(finished);
}

TEST(RunBlockingTest, ReturnsTheResultOfTheJob) {
  Loop loop;
  Workers workers;
  std::move_only_function<Result<int>()> job = [&loop] { return loop.in_loop_thread() ? 1 : 2; };
  const Result<int> result = loop.block_on(run_blocking(loop, workers, std::move(job)));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 2);
}

TEST(RunBlockingTest, RethrowsTheExceptionOfTheJob) {
  Loop loop;
  Workers workers;
  std::move_only_function<Result<int>()> job = []() -> Result<int> { throw std::bad_alloc(); };
  EXPECT_THROW(static_cast<void>(loop.block_on(run_blocking(loop, workers, std::move(job)))), std::bad_alloc);
}

}  // namespace
}  // namespace fairlead
