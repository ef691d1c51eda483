#include "fairlead/rpc/queued_answers.hpp"

#include <gtest/gtest.h>

namespace fairlead::rpc {
namespace {

TEST(QueuedAnswers, CountsAnswersAndNotWhatIsQueuedBetweenThem) {
  QueuedAnswers answers;
  answers.add(0, 100);
  answers.add(100, 150);    // merged with the first
  answers.add(1000, 1200);  // 850 bytes of requests before it
  EXPECT_EQ(answers.bytes(0), 350u);
  EXPECT_EQ(answers.bytes(120), 230u);
  EXPECT_EQ(answers.bytes(500), 200u);
  EXPECT_EQ(answers.bytes(1100), 100u);
  EXPECT_EQ(answers.bytes(1200), 0u);
}

TEST(QueuedAnswers, PositionAtWhichSomeAreLeft) {
  QueuedAnswers answers;
  answers.add(0, 100);
  answers.add(1000, 1200);
  EXPECT_EQ(answers.position_at(300), 0u);
  EXPECT_EQ(answers.position_at(250), 50u);
  EXPECT_EQ(answers.position_at(150), 1050u);
  EXPECT_EQ(answers.position_at(0), 1200u);
}

TEST(QueuedAnswers, TransportWithoutPositionsCountsNothing) {
  QueuedAnswers answers;
  answers.add(0, 0);
  EXPECT_EQ(answers.bytes(0), 0u);
}

}  // namespace
}  // namespace fairlead::rpc
