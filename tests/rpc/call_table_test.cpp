// CallTable (R5.1, R5.2): each response is matched with its own call only.
#include "fairlead/rpc/call_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <set>

namespace fairlead::rpc {
namespace {

using std::chrono::milliseconds;
using Time = CallTable::Time;

constexpr Time at(int ms) {
  return Time(milliseconds(ms));
}

struct Call final : PendingCall {
  explicit Call(Time call_deadline = Time::max()) { deadline = call_deadline; }
  void finish(Message&&) override {}
  void fail(Error) override {}
  void handle_progress(const Message&) override {}
};

using Ids = std::vector<std::uint64_t>;

Ids sorted(Ids ids) {
  std::ranges::sort(ids);
  return ids;
}

TEST(CallTableTest, AssignsAscendingIdsFromOne) {  // R5.1
  CallTable calls;
  std::deque<Call> added(5);
  for (Call& call : added) calls.add(call);
  for (std::size_t i = 0; i < added.size(); ++i) EXPECT_EQ(added[i].id, i + 1);
  EXPECT_EQ(calls.size(), 5u);
  EXPECT_EQ(sorted(calls.ids()), (Ids{1, 2, 3, 4, 5}));
}

TEST(CallTableTest, RemovesCallsInAnyOrder) {  // R5.1
  CallTable calls;
  std::deque<Call> added(1000);
  for (Call& call : added) calls.add(call);
  std::vector<std::size_t> order(added.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (const std::size_t i : order) {
    EXPECT_EQ(calls.find(added[i].id), &added[i]);
    EXPECT_EQ(calls.remove(added[i].id), &added[i]);
    EXPECT_EQ(calls.remove(added[i].id), nullptr) << "a second response";
  }
  EXPECT_EQ(calls.size(), 0u);
}

TEST(CallTableTest, FindsNoCallForUnknownId) {  // R5.3
  CallTable calls;
  EXPECT_EQ(calls.remove(1), nullptr);
  EXPECT_EQ(calls.find(0), nullptr);
  Call call;
  calls.add(call);
  for (const std::uint64_t id : {0ull, 2ull, 17ull, 33ull, 1ull + (1ull << 32), ~0ull})
    EXPECT_EQ(calls.remove(id), nullptr) << id;
  EXPECT_EQ(calls.remove(1), &call);
}

TEST(CallTableTest, NeverReusesId) {
  CallTable calls;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    Call call;
    calls.add(call);
    EXPECT_TRUE(seen.insert(call.id).second);
    if (i % 3 == 0) {
      calls.abandon(call);
    } else {
      EXPECT_EQ(calls.remove(call.id), &call);
    }
  }
}

TEST(CallTableTest, RecognisesLateResponseOnce) {  // R5.2
  CallTable calls;
  Call late;
  Call other;
  calls.add(late);
  calls.abandon(late);
  calls.add(other);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.remove(late.id), nullptr) << "a late response must not reach another call";
  EXPECT_TRUE(calls.erase_abandoned(late.id));
  EXPECT_FALSE(calls.erase_abandoned(late.id));
  EXPECT_FALSE(calls.erase_abandoned(other.id));
  EXPECT_FALSE(calls.erase_abandoned(99));
}

TEST(CallTableTest, AbandonIgnoresCallThatIsNotInTable) {
  CallTable calls;
  Call call;
  calls.add(call);
  EXPECT_EQ(calls.remove(call.id), &call);
  calls.abandon(call);
  EXPECT_FALSE(calls.erase_abandoned(call.id));
  EXPECT_EQ(calls.size(), 0u);
  Call never_added;
  calls.abandon(never_added);
  EXPECT_EQ(calls.size(), 0u);
}

TEST(CallTableTest, ForgetsOldestAbandonedCalls) {  // memory is bounded
  CallTable calls;
  for (int i = 0; i < 100'000; ++i) {
    Call call;
    calls.add(call);
    calls.abandon(call);
  }
  EXPECT_FALSE(calls.erase_abandoned(1));
  EXPECT_TRUE(calls.erase_abandoned(100'000));
  EXPECT_TRUE(calls.erase_abandoned(100'000 - 4000));
}

TEST(CallTableTest, GrowsWhileOldCallsRemain) {
  CallTable calls;
  std::deque<Call> old(3);
  for (Call& call : old) calls.add(call);
  // The ids wrap around the table many times while the old calls occupy their slots.
  for (int round = 0; round < 2000; ++round) {
    std::deque<Call> burst(static_cast<std::size_t>(round % 40));
    for (Call& call : burst) calls.add(call);
    for (Call& call : burst) ASSERT_EQ(calls.remove(call.id), &call);
    if (round % 100 == 0) calls.add(old.emplace_back());
  }
  EXPECT_EQ(calls.size(), old.size());
  for (Call& call : old) EXPECT_EQ(calls.remove(call.id), &call);
}

TEST(CallTableTest, StoresHundredThousandCalls) {
  CallTable calls;
  std::deque<Call> added(100'000);
  for (Call& call : added) calls.add(call);
  EXPECT_EQ(calls.size(), added.size());
  EXPECT_EQ(added.back().id, 100'000u);
  EXPECT_EQ(calls.ids().size(), added.size());
  for (std::size_t i = 0; i < added.size(); i += 2) EXPECT_EQ(calls.remove(added[i].id), &added[i]);
  for (std::size_t i = 1; i < added.size(); i += 2) EXPECT_EQ(calls.remove(added[i].id), &added[i]);
  EXPECT_EQ(calls.size(), 0u);
  EXPECT_TRUE(calls.ids().empty());
  Call next;  // also works after the large table was freed
  calls.add(next);
  EXPECT_EQ(next.id, 100'001u);
  EXPECT_EQ(calls.remove(next.id), &next);
}

// ---- deadlines -------------------------------------------------------------------------------------------

TEST(CallTableTest, HasNoDeadlineWithoutCalls) {
  CallTable calls;
  EXPECT_EQ(calls.next_deadline(), Time::max());
  EXPECT_TRUE(calls.expired_ids(at(0)).empty());
  EXPECT_TRUE(calls.expired_ids(Time::max()).empty());
  Call call(at(10));
  calls.add(call);
  EXPECT_EQ(calls.remove(call.id), &call);
  EXPECT_EQ(calls.next_deadline(), Time::max());
}

TEST(CallTableTest, ReturnsExpiredCalls) {  // R5.2
  CallTable calls;
  Call late(at(30));
  Call early(at(10));
  Call never;
  for (Call* call : {&late, &early, &never}) calls.add(*call);
  EXPECT_EQ(calls.next_deadline(), at(10));
  EXPECT_TRUE(calls.expired_ids(at(9)).empty());
  EXPECT_EQ(calls.expired_ids(at(10)), (Ids{early.id}));
  calls.abandon(early);
  EXPECT_EQ(calls.next_deadline(), at(30));
  EXPECT_EQ(calls.expired_ids(at(1000)), (Ids{late.id}));
  calls.abandon(late);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.next_deadline(), Time::max());
}

TEST(CallTableTest, NextDeadlineIsNeverTooLate) {
  CallTable calls;
  Call first(at(10));
  Call second(at(20));
  calls.add(first);
  calls.add(second);
  EXPECT_EQ(calls.remove(first.id), &first);
  EXPECT_LE(calls.next_deadline(), at(20));
  EXPECT_TRUE(calls.expired_ids(at(15)).empty());
  EXPECT_EQ(calls.next_deadline(), at(20));
  EXPECT_EQ(calls.expired_ids(at(20)), (Ids{second.id}));
}

TEST(CallTableTest, UsesDeadlineExtendedByProgress) {  // R5.5
  CallTable calls;
  Call call(at(10));
  calls.add(call);
  call.deadline = at(50);
  EXPECT_TRUE(calls.expired_ids(at(10)).empty());
  EXPECT_EQ(calls.next_deadline(), at(50));
  EXPECT_EQ(calls.expired_ids(at(50)), (Ids{call.id}));
}

TEST(CallTableTest, IgnoresDeadlinesOfRemovedCalls) {
  CallTable calls;
  Call gone(at(10));
  calls.add(gone);
  calls.remove(gone.id);
  Call call(at(100));
  calls.add(call);
  EXPECT_EQ(calls.next_deadline(), at(100));
}

TEST(CallTableTest, ExpiresManyCallsAtOnce) {
  CallTable calls;
  std::deque<Call> added;
  for (int i = 0; i < 10'000; ++i) calls.add(added.emplace_back(at(i)));
  const Ids expired = sorted(calls.expired_ids(at(4999)));
  ASSERT_EQ(expired.size(), 5000u);
  EXPECT_EQ(expired.front(), 1u);
  EXPECT_EQ(expired.back(), 5000u);
  for (const std::uint64_t id : expired) calls.abandon(*calls.find(id));
  EXPECT_EQ(calls.next_deadline(), at(5000));
  EXPECT_EQ(calls.size(), 5000u);
}

}  // namespace
}  // namespace fairlead::rpc
