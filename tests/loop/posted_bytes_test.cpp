#include "fairlead/loop/posted_bytes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "fairlead/loop/run_on.hpp"

namespace fairlead {
namespace {

constexpr std::size_t kOverhead = PostedBytes::kOverhead;

TEST(PostedBytes, ChargesUpToTheLimitAndRefusesOneByteMoreByName) {
  const PostedBytes posted(1000 + kOverhead);
  EXPECT_TRUE(posted.charge(1000));
  const Result<PostedBytes::Charge> refused = posted.charge(1001);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(refused.error().message().find("max_backlog_bytes (1256)"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(posted.used(), 0u);
}

TEST(PostedBytes, ChargeCountsUntilItIsReleasedOrDestroyedWhereverItWasMovedTo) {
  const PostedBytes posted(10'000);
  {
    Result<PostedBytes::Charge> first = posted.charge(100);
    ASSERT_TRUE(first);
    PostedBytes::Charge moved = std::move(*first);
    moved.release();
    EXPECT_EQ(posted.used(), 0u);
    moved.release();
    EXPECT_EQ(posted.used(), 0u);
    Result<PostedBytes::Charge> second = posted.charge(200);
    Result<PostedBytes::Charge> third = posted.charge(300);
    ASSERT_TRUE(second && third);
    moved = std::move(*second);
    EXPECT_EQ(posted.used(), 500 + 2 * kOverhead);
    moved = std::move(*third);
    EXPECT_EQ(posted.used(), 300 + kOverhead);
  }
  EXPECT_EQ(posted.used(), 0u);
}

TEST(PostedBytes, EmptyMessagesAreCountedToo) {
  const PostedBytes posted(2 * kOverhead);
  const Result<PostedBytes::Charge> first = posted.charge(0);
  const Result<PostedBytes::Charge> second = posted.charge(0);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(posted.charge(0));
}

TEST(PostedBytes, ThreadsThatChargeTogetherUseTheLimitAndDoNotExceedIt) {
  constexpr std::size_t kFit = 10;
  const PostedBytes posted(kFit * (1 + kOverhead));
  std::vector<Result<PostedBytes::Charge>> charges[4];
  {
    std::vector<std::jthread> threads;
    for (auto& own : charges) {
      threads.emplace_back([&own, posted] {
        for (int i = 0; i < 1000; ++i) own.push_back(posted.charge(1));
      });
    }
  }
  std::size_t made = 0;
  for (const auto& own : charges)
    for (const auto& charge : own) made += charge.has_value();
  EXPECT_EQ(made, kFit);
  EXPECT_EQ(posted.used(), kFit * (1 + kOverhead));
}

// ---- run_charged() ---------------------------------------------------------------------------------------

using Text = Result<std::string>;

std::size_t text_bytes(const Text& text) {
  return text ? text->size() : 0;
}

// Both loops run on the test's thread, and only while turn() runs them.
class RunChargedTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1000;

  Loop here;
  Loop other;
  // Room for two large ones and one small one.
  const PostedBytes posted{2 * (kBytes + kOverhead) + 1 + kOverhead};
  int started = 0;
  std::vector<Text> outcomes;

  static Task<Text> answer(RunChargedTest* self, std::size_t bytes) {
    ++self->started;
    co_return std::string(bytes, 'x');
  }
  static Task<void> run(RunChargedTest* self, std::size_t argument_bytes, std::size_t outcome_bytes) {
    Task<Text> running = run_charged(self->here, self->other, self->posted, argument_bytes,
                                     answer(self, outcome_bytes), text_bytes);
    Text outcome = co_await running;
    self->outcomes.push_back(std::move(outcome));
  }
  void begin(std::size_t argument_bytes, std::size_t outcome_bytes) {
    here.spawn(run(this, argument_bytes, outcome_bytes));
    turn(here);
  }
  // Runs what is queued for the loop.
  static void turn(Loop& loop) {
    bool reached = false;
    loop.post([&] { reached = true; });
    loop.run_until([&] { return reached; });
  }
};

TEST_F(RunChargedTest, TaskIsNotStartedWhenItsArgumentsWouldWaitOverTheLimit) {
  for (int i = 0; i < 3; ++i) begin(kBytes, 1);
  ASSERT_EQ(outcomes.size(), 1u);
  ASSERT_FALSE(outcomes[0]);
  EXPECT_EQ(outcomes[0].error().kind(), ErrorKind::resource_exhausted);
  turn(other);
  EXPECT_EQ(started, 2);
  turn(here);
  EXPECT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(posted.used(), 0u);
}

TEST_F(RunChargedTest, ArgumentsCountOnlyUntilTheOtherLoopStartsTheTask) {
  for (int i = 0; i < 10; ++i) {
    begin(kBytes, 1);
    turn(other);
    turn(here);
  }
  EXPECT_EQ(started, 10);
  for (const Text& outcome : outcomes) EXPECT_TRUE(outcome) << outcome.error().to_string();
}

TEST_F(RunChargedTest, OutcomeIsReplacedByAnErrorWhenItWouldWaitOverTheLimit) {
  for (int i = 0; i < 3; ++i) begin(1, kBytes);
  turn(other);
  EXPECT_EQ(started, 3);
  EXPECT_EQ(posted.used(), 2 * (kBytes + kOverhead));
  turn(here);
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_TRUE(outcomes[0]);
  EXPECT_TRUE(outcomes[1]);
  ASSERT_FALSE(outcomes[2]);
  EXPECT_EQ(outcomes[2].error().kind(), ErrorKind::resource_exhausted);
  EXPECT_EQ(posted.used(), 0u);
}

}  // namespace
}  // namespace fairlead
