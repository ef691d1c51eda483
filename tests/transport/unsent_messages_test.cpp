// UnsentMessages keeps the position up to which all messages are sent, in whatever order they are sent.
#include "transport/unsent_messages.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

TEST(UnsentMessagesTest, SentPositionIsStartOfFirstUnsentMessage) {
  UnsentMessages unsent;
  EXPECT_EQ(unsent.sent_position(5), 5U);
  unsent.add(10, 5);
  unsent.add(30, 10);  // the bytes from 10 to 20 belong to a message that was not added
  unsent.add(40, 10);
  EXPECT_EQ(unsent.bytes(), 25U);
  EXPECT_EQ(unsent.sent_position(40), 5U);
  EXPECT_TRUE(unsent.remove(30));
  EXPECT_EQ(unsent.sent_position(40), 5U);
  EXPECT_EQ(unsent.bytes(), 15U);
  EXPECT_TRUE(unsent.remove(10));
  EXPECT_EQ(unsent.sent_position(40), 30U);
  EXPECT_TRUE(unsent.remove(40));
  EXPECT_EQ(unsent.sent_position(40), 40U);
  EXPECT_EQ(unsent.bytes(), 0U);
}

TEST(UnsentMessagesTest, MessageIsRemovedOnce) {
  UnsentMessages unsent;
  unsent.add(10, 10);
  unsent.add(20, 10);
  EXPECT_FALSE(unsent.contains(15));
  EXPECT_FALSE(unsent.remove(15));
  EXPECT_TRUE(unsent.contains(20));
  EXPECT_TRUE(unsent.remove(20));
  EXPECT_FALSE(unsent.contains(20));
  EXPECT_FALSE(unsent.remove(20));
  EXPECT_TRUE(unsent.remove(10));
  EXPECT_FALSE(unsent.remove(10));
  EXPECT_EQ(unsent.bytes(), 0U);
}

}  // namespace
}  // namespace fairlead::transport
