#include "fairlead/loop/posted_bytes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "fairlead/loop/run_on.hpp"

namespace fairlead {
namespace {

constexpr std::size_t kOverheadBytes = PostedBytes::kOverheadBytes;

TEST(PostedBytesTest, ChargeFailsOneByteOverTheLimit) {
  const PostedBytes posted(1000 + kOverheadBytes);
  EXPECT_TRUE(posted.charge(1000));
  const Result<PostedBytes::Charge> refused = posted.charge(1001);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(refused.error().message().find("max_backlog_bytes (1256)"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(posted.used_bytes(), 0u);
}

TEST(PostedBytesTest, MovedChargeCountsUntilReleasedOrDestroyed) {
  const PostedBytes posted(10'000);
  {
    Result<PostedBytes::Charge> first = posted.charge(100);
    ASSERT_TRUE(first);
    PostedBytes::Charge moved = std::move(*first);
    moved.release();
    EXPECT_EQ(posted.used_bytes(), 0u);
    moved.release();
    EXPECT_EQ(posted.used_bytes(), 0u);
    Result<PostedBytes::Charge> second = posted.charge(200);
    Result<PostedBytes::Charge> third = posted.charge(300);
    ASSERT_TRUE(second && third);
    moved = std::move(*second);
    EXPECT_EQ(posted.used_bytes(), 500 + 2 * kOverheadBytes);
    moved = std::move(*third);
    EXPECT_EQ(posted.used_bytes(), 300 + kOverheadBytes);
  }
  EXPECT_EQ(posted.used_bytes(), 0u);
}

TEST(PostedBytesTest, EmptyMessagesCountTheirOverhead) {
  const PostedBytes posted(2 * kOverheadBytes);
  const Result<PostedBytes::Charge> first = posted.charge(0);
  const Result<PostedBytes::Charge> second = posted.charge(0);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(posted.charge(0));
}

TEST(PostedBytesTest, ConcurrentChargesReachButDoNotExceedTheLimit) {
  constexpr std::size_t kFit = 10;
  const PostedBytes posted(kFit * (1 + kOverheadBytes));
  std::vector<Result<PostedBytes::Charge>> charges[4];
  {
    std::vector<std::jthread> threads;
    for (auto& own : charges) {
      threads.emplace_back([&own, posted] {
        for (int i = 0; i < 1000; ++i) own.push_back(posted.charge(1));
      });
    }
  }
  std::size_t granted = 0;
  for (const auto& own : charges)
    for (const auto& charge : own) granted += charge.has_value();
  EXPECT_EQ(granted, kFit);
  EXPECT_EQ(posted.used_bytes(), kFit * (1 + kOverheadBytes));
}

// ---- run_charged() ---------------------------------------------------------------------------------------

using Text = Result<std::string>;

std::size_t text_bytes(const Text& text) {
  return text ? text->size() : 0;
}

// Both loops run on the test's thread, and only during run_queued().
class RunChargedTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1000;

  Loop here;
  Loop other;
  // Fits two large charges and one small charge.
  const PostedBytes posted{2 * (kBytes + kOverheadBytes) + 1 + kOverheadBytes};
  int started = 0;
  std::vector<Text> outcomes;

  static Task<Text> answer(RunChargedTest* self, std::size_t bytes) {
    ++self->started;
    co_return std::string(bytes, 'x');
  }
  static Task<void> run(RunChargedTest* self, std::size_t argument_bytes, std::size_t outcome_bytes) {
    Text outcome = co_await run_charged(self->here, self->other, self->posted, argument_bytes,
                                        answer(self, outcome_bytes), text_bytes);
    self->outcomes.push_back(std::move(outcome));
  }
  void begin(std::size_t argument_bytes, std::size_t outcome_bytes) {
    here.spawn(run(this, argument_bytes, outcome_bytes));
    run_queued(here);
  }
  // Runs the callbacks that are queued on the loop.
  static void run_queued(Loop& loop) {
    bool reached = false;
    loop.post([&] { reached = true; });
    loop.run_until([&] { return reached; });
  }
};

TEST_F(RunChargedTest, TaskIsNotStartedWhenItsArgumentsExceedTheLimit) {
  for (int i = 0; i < 3; ++i) begin(kBytes, 1);
  ASSERT_EQ(outcomes.size(), 1u);
  ASSERT_FALSE(outcomes[0]);
  EXPECT_EQ(outcomes[0].error().kind(), ErrorKind::resource_exhausted);
  run_queued(other);
  EXPECT_EQ(started, 2);
  run_queued(here);
  EXPECT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(posted.used_bytes(), 0u);
}

TEST_F(RunChargedTest, ArgumentsCountUntilTheOtherLoopStartsTheTask) {
  for (int i = 0; i < 10; ++i) {
    begin(kBytes, 1);
    run_queued(other);
    run_queued(here);
  }
  EXPECT_EQ(started, 10);
  for (const Text& outcome : outcomes) EXPECT_TRUE(outcome) << outcome.error().to_string();
}

TEST_F(RunChargedTest, OutcomeIsAnErrorWhenItExceedsTheLimit) {
  for (int i = 0; i < 3; ++i) begin(1, kBytes);
  run_queued(other);
  EXPECT_EQ(started, 3);
  EXPECT_EQ(posted.used_bytes(), 2 * (kBytes + kOverheadBytes));
  run_queued(here);
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_TRUE(outcomes[0]);
  EXPECT_TRUE(outcomes[1]);
  ASSERT_FALSE(outcomes[2]);
  EXPECT_EQ(outcomes[2].error().kind(), ErrorKind::resource_exhausted);
  EXPECT_EQ(posted.used_bytes(), 0u);
}

}  // namespace
}  // namespace fairlead
