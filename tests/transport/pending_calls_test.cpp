// PendingCalls: calls are found by id, also after many others were added and removed.
#include "transport/pending_calls.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fairlead::transport {
namespace {

struct TestCall : PendingCalls<TestCall>::Link {
  explicit TestCall(std::string text) : id(std::move(text)) {}
  std::string id;
};

std::shared_ptr<TestCall> call_named(int number) {
  return std::make_shared<TestCall>(std::to_string(number));
}

TEST(PendingCallsTest, CallsAreFoundUntilTheyAreRemoved) {
  constexpr int kCalls = 1000;
  PendingCalls<TestCall> calls;
  EXPECT_EQ(calls.find("0"), nullptr);
  std::vector<std::shared_ptr<TestCall>> added;
  for (int i = 0; i < kCalls; ++i) {
    calls.add(added.emplace_back(call_named(i)));
    EXPECT_TRUE(added.back()->is_pending());
  }
  for (int i = 0; i < kCalls; i += 3) {
    calls.remove(*added[static_cast<std::size_t>(i)]);
    calls.remove(*added[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < kCalls; ++i) {
    const std::shared_ptr<TestCall>& call = added[static_cast<std::size_t>(i)];
    EXPECT_EQ(calls.find(std::to_string(i)), i % 3 == 0 ? nullptr : call);
    EXPECT_EQ(call->is_pending(), i % 3 != 0);
    EXPECT_EQ(call.use_count(), i % 3 == 0 ? 1 : 2);
  }
  calls.clear();
  EXPECT_EQ(calls.find("1"), nullptr);
  EXPECT_EQ(added[1].use_count(), 1);
  EXPECT_FALSE(added[1]->is_pending());
  calls.add(added[1]);
  EXPECT_EQ(calls.find("1"), added[1]);
}

TEST(PendingCallsTest, CallWithTheSameIdIsReplaced) {
  PendingCalls<TestCall> calls;
  const std::shared_ptr<TestCall> first = call_named(1);
  const std::shared_ptr<TestCall> second = call_named(1);
  calls.add(first);
  calls.add(second);
  EXPECT_FALSE(first->is_pending());
  EXPECT_EQ(calls.find("1"), second);
  calls.remove(*first);
  EXPECT_EQ(calls.find("1"), second);
  calls.remove(*second);
  EXPECT_EQ(calls.find("1"), nullptr);
}

TEST(PendingCallsTest, TableReleasesItsCallsWhenDestroyed) {
  const std::shared_ptr<TestCall> call = call_named(1);
  { PendingCalls<TestCall>().add(call); }
  EXPECT_EQ(call.use_count(), 1);
  EXPECT_FALSE(call->is_pending());
}

}  // namespace
}  // namespace fairlead::transport
