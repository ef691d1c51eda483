#include "fairlead/rpc/queued_responses.hpp"

#include <gtest/gtest.h>

namespace fairlead::rpc {
namespace {

TEST(QueuedResponsesTest, CountsOnlyResponseBytes) {
  QueuedResponses responses;
  responses.add(0, 100);
  responses.add(100, 150);    // merged with the first
  responses.add(1000, 1200);  // 850 bytes of requests before it
  EXPECT_EQ(responses.unwritten_bytes(0), 350u);
  EXPECT_EQ(responses.unwritten_bytes(120), 230u);
  EXPECT_EQ(responses.unwritten_bytes(500), 200u);
  EXPECT_EQ(responses.unwritten_bytes(1100), 100u);
  EXPECT_EQ(responses.unwritten_bytes(1200), 0u);
}

TEST(QueuedResponsesTest, PositionLeavingReturnsWhereBytesAreLeft) {
  QueuedResponses responses;
  responses.add(0, 100);
  responses.add(1000, 1200);
  EXPECT_EQ(responses.position_leaving(300), 0u);
  EXPECT_EQ(responses.position_leaving(250), 50u);
  EXPECT_EQ(responses.position_leaving(150), 1050u);
  EXPECT_EQ(responses.position_leaving(0), 1200u);
}

TEST(QueuedResponsesTest, EmptyRangeCountsNothing) {
  QueuedResponses responses;
  responses.add(0, 0);
  EXPECT_EQ(responses.unwritten_bytes(0), 0u);
}

}  // namespace
}  // namespace fairlead::rpc
