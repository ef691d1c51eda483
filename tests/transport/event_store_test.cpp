// Replay: only of the stream an id names, only of this session, within bounds.
#include "transport/event_store.hpp"

#include <gtest/gtest.h>

#include "support/byte_budget.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using Place = EventStore::Place;

class EventStoreTest : public ::testing::Test {
 public:
  std::shared_ptr<EventStore::Total> total =
      std::make_shared<EventStore::Total>(EventStore::Total{1u << 20, 0});

  static Place put(EventStore& store, std::uint64_t stream, const std::string& text) {
    const Place place = store.next(stream);
    store.keep(place, {Bytes::copy_of(text)});
    return place;
  }
  static std::string replay(const EventStore& store, Place place) {
    const auto events = store.after(place);
    if (!events) return "unknown";
    std::string all;
    for (const http::sse::Parts& event : *events) all += std::string(event.front().view()) + " ";
    return all;
  }
};

TEST_F(EventStoreTest, OnlyTheNamedStreamIsReplayed) {
  EventStore store(100, 1u << 20, total);
  const Place first = put(store, 1, "a");
  put(store, 2, "x");
  put(store, 1, "b");
  put(store, 2, "y");
  EXPECT_EQ(replay(store, first), "b ");
  EXPECT_EQ(replay(store, Place{1, 0}), "a b ");
  EXPECT_EQ(replay(store, Place{2, 2}), "");
}

TEST_F(EventStoreTest, IdsOfNobodyAreUnknown) {
  EventStore store(100, 1u << 20, total);
  put(store, 1, "a");
  EXPECT_EQ(replay(store, Place{3, 0}), "unknown");
  EXPECT_EQ(replay(store, Place{1, 2}), "unknown");
  EXPECT_EQ(EventStore::id_of(Place{12, 3}), "12-3");
  EXPECT_EQ(EventStore::read_id("12-3")->event, 3u);
  for (const char* id : {"", "-", "1-", "-1", "1", "01-1", "1-01", "1-1 ", " 1-1", "+1-1", "a-1", "1-1-1",
                         "99999999999999999999-1"}) {
    EXPECT_FALSE(EventStore::read_id(id)) << id;
  }
}

TEST_F(EventStoreTest, WhatWasDroppedIsNotReplayedWithAGap) {
  EventStore store(2, 1u << 20, total);
  for (const char* text : {"a", "b", "c"}) put(store, 1, text);
  EXPECT_EQ(store.events(), 2u);
  EXPECT_EQ(replay(store, Place{1, 0}), "unknown");
  EXPECT_EQ(replay(store, Place{1, 1}), "b c ");
  EXPECT_EQ(store.left_after(Place{1, 0}).size(), 2u);
}

TEST_F(EventStoreTest, BytesAreBoundedToo) {
  EventStore store(100, 5000, total);
  for (int i = 0; i < 10; ++i) put(store, 1, std::string(1000, 'x'));
  EXPECT_LE(store.bytes(), 5000u);
  put(store, 1, std::string(6000, 'x'));  // more than the store may hold: not kept at all
  EXPECT_EQ(store.events(), 0u);
  EXPECT_EQ(total->bytes, 0u);
}

TEST_F(EventStoreTest, AllSessionsTogetherAreBounded) {
  total->most_bytes = 5000;
  EventStore first(100, 1u << 20, total);
  put(first, 1, std::string(3000, 'x'));
  {
    EventStore second(100, 1u << 20, total);
    put(second, 1, std::string(3000, 'x'));
    EXPECT_EQ(second.events(), 0u);  // it pays itself; others keep theirs
    EXPECT_EQ(first.events(), 1u);
    put(second, 1, std::string(100, 'x'));
  }
  EXPECT_EQ(total->bytes, first.bytes());
}

TEST_F(EventStoreTest, EventsAreChargedToTheirClientAndLeaveHalfOfItsBudget) {
  const auto budget = test::budget_of(10'000, 1'000'000);
  const auto account = budget->account("a");
  EventStore first(100, 1u << 20, total);
  EventStore second(100, 1u << 20, total);
  first.charge_to(account);
  second.charge_to(account);
  put(first, 1, std::string(3000, 'x'));
  EXPECT_EQ(account->used(), first.bytes());
  put(second, 1, std::string(3000, 'x'));  // more than half with that of the first
  EXPECT_EQ(second.events(), 0u);
  EXPECT_EQ(first.events(), 1u);
  put(second, 1, std::string(1000, 'x'));
  EXPECT_EQ(account->used(), first.bytes() + second.bytes());
  for (int i = 0; i < 10; ++i) put(first, 1, std::string(1000, 'x'));
  EXPECT_LE(account->used(), 5'000u);
  EXPECT_GT(first.events(), 0u);
  first.end(1, Clock::time_point());
  first.drop_ended(Clock::time_point());
  EXPECT_EQ(account->used(), second.bytes());
}

TEST_F(EventStoreTest, EventsLeaveHalfOfTheBudgetOfAllClients) {
  const auto budget = test::budget_of(10'000, 8'000);
  EventStore store(100, 1u << 20, total);
  store.charge_to(budget->account("a"));
  put(store, 1, std::string(3'000, 'x'));
  ByteCharge other(budget->account("b"));
  EXPECT_EQ(other.resize(2'000), ChargeOutcome::charged);
  put(store, 1, "y");  // makes the first one go
  EXPECT_EQ(store.events(), 1u);
  EXPECT_EQ(budget->used(), 2'000 + store.bytes());
}

TEST_F(EventStoreTest, AStreamThatEndedIsForgottenWithItsLastEvent) {
  EventStore store(2, 1u << 20, total);
  put(store, 1, "a");
  store.end(1, Clock::now());
  EXPECT_EQ(replay(store, Place{1, 1}), "");
  put(store, 2, "b");
  put(store, 2, "c");
  EXPECT_EQ(replay(store, Place{1, 1}), "unknown");
  store.next(3);
  store.end(3, Clock::now());
  EXPECT_EQ(replay(store, Place{3, 1}), "unknown");
}

TEST_F(EventStoreTest, EventsOfAnEndedStreamAreDroppedWhenTheirTimeIsOver) {
  EventStore store(100, 1u << 20, total);
  const Clock::time_point start;
  put(store, 1, "a");
  put(store, 2, "x");
  put(store, 1, "b");
  put(store, 3, "y");
  store.end(1, start + 10s);
  store.end(2, start + 20s);
  store.drop_ended(start + 9s);
  EXPECT_EQ(replay(store, Place{1, 0}), "a b ");
  store.drop_ended(start + 15s);
  EXPECT_EQ(replay(store, Place{1, 0}), "unknown");
  EXPECT_EQ(replay(store, Place{2, 0}), "x ");
  store.drop_ended(start + 20s);
  EXPECT_EQ(store.events(), 1u);
  EXPECT_EQ(total->bytes, store.bytes());
  EXPECT_EQ(replay(store, Place{3, 0}), "y ");  // has not ended
}

}  // namespace
}  // namespace fairlead::transport
