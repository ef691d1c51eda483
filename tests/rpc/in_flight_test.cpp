// Calls in flight (R5.1, R5.2): every answer to its own call, and no other.
#include "fairlead/rpc/in_flight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <set>

namespace fairlead::rpc {
namespace {

using std::chrono::milliseconds;
using Time = InFlight::Time;

constexpr Time at(int ms) {
  return Time(milliseconds(ms));
}

struct Call final : PendingCall {
  explicit Call(Time due = Time::max()) { deadline = due; }
  void finish(Result<Message>) override {}
  void progress(const Message&) override {}
};

using Ids = std::vector<std::uint64_t>;

Ids sorted(Ids ids) {
  std::ranges::sort(ids);
  return ids;
}

TEST(InFlight, CountsIdsUpFromOne) {  // R5.1
  InFlight calls;
  std::deque<Call> made(5);
  for (Call& call : made) calls.add(call);
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].id, i + 1);
  EXPECT_EQ(calls.size(), 5u);
  EXPECT_EQ(sorted(calls.ids()), (Ids{1, 2, 3, 4, 5}));
}

TEST(InFlight, TakesAnswersInAnyOrder) {  // R5.1
  InFlight calls;
  std::deque<Call> made(1000);
  for (Call& call : made) calls.add(call);
  std::vector<std::size_t> order(made.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (const std::size_t i : order) {
    EXPECT_EQ(calls.find(made[i].id), &made[i]);
    EXPECT_EQ(calls.take(made[i].id), &made[i]);
    EXPECT_EQ(calls.take(made[i].id), nullptr) << "answered twice";
  }
  EXPECT_EQ(calls.size(), 0u);
}

TEST(InFlight, KnowsNobodyElsesIds) {  // R5.3
  InFlight calls;
  EXPECT_EQ(calls.take(1), nullptr);
  EXPECT_EQ(calls.find(0), nullptr);
  Call call;
  calls.add(call);
  for (const std::uint64_t id : {0ull, 2ull, 17ull, 33ull, 1ull + (1ull << 32), ~0ull})
    EXPECT_EQ(calls.take(id), nullptr) << id;
  EXPECT_EQ(calls.take(1), &call);
}

TEST(InFlight, NeverGivesAnIdAgain) {
  InFlight calls;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    Call call;
    calls.add(call);
    EXPECT_TRUE(seen.insert(call.id).second);
    if (i % 3 == 0) {
      calls.abandon(call);
    } else {
      EXPECT_EQ(calls.take(call.id), &call);
    }
  }
}

TEST(InFlight, RecognisesALateAnswerOnce) {  // R5.2
  InFlight calls;
  Call late;
  Call other;
  calls.add(late);
  calls.abandon(late);
  calls.add(other);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.take(late.id), nullptr) << "never given to someone else";
  EXPECT_TRUE(calls.was_abandoned(late.id));
  EXPECT_FALSE(calls.was_abandoned(late.id));
  EXPECT_FALSE(calls.was_abandoned(other.id));
  EXPECT_FALSE(calls.was_abandoned(99));
}

TEST(InFlight, AbandonsACallOnlyOnceAndOnlyWhenItIsThere) {
  InFlight calls;
  Call call;
  calls.add(call);
  EXPECT_EQ(calls.take(call.id), &call);
  calls.abandon(call);
  EXPECT_FALSE(calls.was_abandoned(call.id));
  EXPECT_EQ(calls.size(), 0u);
  Call never_added;
  calls.abandon(never_added);
  EXPECT_EQ(calls.size(), 0u);
}

TEST(InFlight, ForgetsTheOldestAbandonedCallsInTheEnd) {  // memory stays bounded
  InFlight calls;
  for (int i = 0; i < 100'000; ++i) {
    Call call;
    calls.add(call);
    calls.abandon(call);
  }
  EXPECT_FALSE(calls.was_abandoned(1));
  EXPECT_TRUE(calls.was_abandoned(100'000));
  EXPECT_TRUE(calls.was_abandoned(100'000 - 4000));
}

TEST(InFlight, GrowsAroundOldCallsThatStaySitting) {
  InFlight calls;
  std::deque<Call> old(3);
  for (Call& call : old) calls.add(call);
  // Many turns round the table while the old ones sit in it.
  for (int round = 0; round < 2000; ++round) {
    std::deque<Call> burst(static_cast<std::size_t>(round % 40));
    for (Call& call : burst) calls.add(call);
    for (Call& call : burst) ASSERT_EQ(calls.take(call.id), &call);
    if (round % 100 == 0) calls.add(old.emplace_back());
  }
  EXPECT_EQ(calls.size(), old.size());
  for (Call& call : old) EXPECT_EQ(calls.take(call.id), &call);
}

TEST(InFlight, HoldsAHundredThousandCalls) {
  InFlight calls;
  std::deque<Call> made(100'000);
  for (Call& call : made) calls.add(call);
  EXPECT_EQ(calls.size(), made.size());
  EXPECT_EQ(made.back().id, 100'000u);
  EXPECT_EQ(calls.ids().size(), made.size());
  for (std::size_t i = 0; i < made.size(); i += 2) EXPECT_EQ(calls.take(made[i].id), &made[i]);
  for (std::size_t i = 1; i < made.size(); i += 2) EXPECT_EQ(calls.take(made[i].id), &made[i]);
  EXPECT_EQ(calls.size(), 0u);
  EXPECT_TRUE(calls.ids().empty());
  Call next;  // also after the large table has been given back
  calls.add(next);
  EXPECT_EQ(next.id, 100'001u);
  EXPECT_EQ(calls.take(next.id), &next);
}

// ---- deadlines -------------------------------------------------------------------------------------------

TEST(InFlight, HasNoDeadlineWithoutCalls) {
  InFlight calls;
  EXPECT_EQ(calls.next_deadline(), Time::max());
  EXPECT_TRUE(calls.expired(at(0)).empty());
  EXPECT_TRUE(calls.expired(Time::max()).empty());
  Call call(at(10));
  calls.add(call);
  EXPECT_EQ(calls.take(call.id), &call);
  EXPECT_EQ(calls.next_deadline(), Time::max());
}

TEST(InFlight, ExpiresTheCallsWhoseTimeHasCome) {  // R5.2
  InFlight calls;
  Call late(at(30));
  Call early(at(10));
  Call never;
  for (Call* call : {&late, &early, &never}) calls.add(*call);
  EXPECT_EQ(calls.next_deadline(), at(10));
  EXPECT_TRUE(calls.expired(at(9)).empty());
  EXPECT_EQ(calls.expired(at(10)), (Ids{early.id}));
  calls.abandon(early);
  EXPECT_EQ(calls.next_deadline(), at(30));
  EXPECT_EQ(calls.expired(at(1000)), (Ids{late.id}));
  calls.abandon(late);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.next_deadline(), Time::max());
}

TEST(InFlight, MayWakeTooEarlyButNeverTooLate) {
  InFlight calls;
  Call first(at(10));
  Call second(at(20));
  calls.add(first);
  calls.add(second);
  EXPECT_EQ(calls.take(first.id), &first);
  EXPECT_LE(calls.next_deadline(), at(20));
  EXPECT_TRUE(calls.expired(at(15)).empty());
  EXPECT_EQ(calls.next_deadline(), at(20));
  EXPECT_EQ(calls.expired(at(20)), (Ids{second.id}));
}

TEST(InFlight, RespectsADeadlineThatProgressMoved) {  // R5.5
  InFlight calls;
  Call call(at(10));
  calls.add(call);
  call.deadline = at(50);
  EXPECT_TRUE(calls.expired(at(10)).empty());
  EXPECT_EQ(calls.next_deadline(), at(50));
  EXPECT_EQ(calls.expired(at(50)), (Ids{call.id}));
}

TEST(InFlight, ForgetsTheDeadlinesOfCallsThatAreGone) {
  InFlight calls;
  Call gone(at(10));
  calls.add(gone);
  calls.take(gone.id);
  Call call(at(100));
  calls.add(call);
  EXPECT_EQ(calls.next_deadline(), at(100));
}

TEST(InFlight, ExpiresManyAtOnceAndLeavesTheRest) {
  InFlight calls;
  std::deque<Call> made;
  for (int i = 0; i < 10'000; ++i) calls.add(made.emplace_back(at(i)));
  const Ids due = sorted(calls.expired(at(4999)));
  ASSERT_EQ(due.size(), 5000u);
  EXPECT_EQ(due.front(), 1u);
  EXPECT_EQ(due.back(), 5000u);
  for (const std::uint64_t id : due) calls.abandon(*calls.find(id));
  EXPECT_EQ(calls.next_deadline(), at(5000));
  EXPECT_EQ(calls.size(), 5000u);
}

}  // namespace
}  // namespace fairlead::rpc
