// EventStore replays only the stream that an event id names, and retains only as many events as the limits
// allow.
#include "transport/event_store.hpp"

#include <gtest/gtest.h>

#include "support/byte_budget.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using EventId = EventStore::EventId;

class EventStoreTest : public ::testing::Test {
 public:
  std::shared_ptr<EventStore::SharedBudget> shared_budget =
      std::make_shared<EventStore::SharedBudget>(EventStore::SharedBudget{1u << 20, 0});

  static EventId put(EventStore& store, std::uint64_t stream, const std::string& text) {
    const EventId id = store.allocate_id(stream);
    store.add(id, {Bytes::copy_of(text)});
    return id;
  }
  static std::string replay(const EventStore& store, EventId id) {
    const auto events = store.events_after(id);
    if (!events) return "unknown";
    std::string all;
    for (const http::sse::EncodedEvent& event : *events) all += std::string(event.front().view()) + " ";
    return all;
  }
};

TEST_F(EventStoreTest, OnlyStreamNamedByIdIsReplayed) {
  EventStore store(100, 1u << 20, shared_budget);
  const EventId first = put(store, 1, "a");
  put(store, 2, "x");
  put(store, 1, "b");
  put(store, 2, "y");
  EXPECT_EQ(replay(store, first), "b ");
  EXPECT_EQ(replay(store, EventId{1, 0}), "a b ");
  EXPECT_EQ(replay(store, EventId{2, 2}), "");
}

TEST_F(EventStoreTest, UnknownAndMalformedIdsAreRejected) {
  EventStore store(100, 1u << 20, shared_budget);
  put(store, 1, "a");
  EXPECT_EQ(replay(store, EventId{3, 0}), "unknown");
  EXPECT_EQ(replay(store, EventId{1, 2}), "unknown");
  EXPECT_EQ(EventStore::format_id(EventId{12, 3}), "12-3");
  EXPECT_EQ(EventStore::parse_id("12-3")->event, 3u);
  for (const char* id : {"", "-", "1-", "-1", "1", "01-1", "1-01", "1-1 ", " 1-1", "+1-1", "a-1", "1-1-1",
                         "99999999999999999999-1"}) {
    EXPECT_FALSE(EventStore::parse_id(id)) << id;
  }
}

TEST_F(EventStoreTest, ReplayFailsWhenEventsInBetweenWereDropped) {
  EventStore store(2, 1u << 20, shared_budget);
  for (const char* text : {"a", "b", "c"}) put(store, 1, text);
  EXPECT_EQ(store.retained_event_count(), 2u);
  EXPECT_EQ(replay(store, EventId{1, 0}), "unknown");
  EXPECT_EQ(replay(store, EventId{1, 1}), "b c ");
  EXPECT_EQ(store.retained_events_after(EventId{1, 0}).size(), 2u);
}

TEST_F(EventStoreTest, RetainedBytesAreBounded) {
  EventStore store(100, 5000, shared_budget);
  for (int i = 0; i < 10; ++i) put(store, 1, std::string(1000, 'x'));
  EXPECT_LE(store.retained_bytes(), 5000u);
  put(store, 1, std::string(6000, 'x'));  // larger than the store: not retained at all
  EXPECT_EQ(store.retained_event_count(), 0u);
  EXPECT_EQ(shared_budget->used_bytes, 0u);
}

TEST_F(EventStoreTest, RetainedBytesOfAllSessionsAreBounded) {
  shared_budget->max_bytes = 5000;
  EventStore first(100, 1u << 20, shared_budget);
  put(first, 1, std::string(3000, 'x'));
  {
    EventStore second(100, 1u << 20, shared_budget);
    put(second, 1, std::string(3000, 'x'));
    EXPECT_EQ(second.retained_event_count(), 0u);  // a store evicts its own events, not those of others
    EXPECT_EQ(first.retained_event_count(), 1u);
    put(second, 1, std::string(100, 'x'));
  }
  EXPECT_EQ(shared_budget->used_bytes, first.retained_bytes());
}

TEST_F(EventStoreTest, EventsUseAtMostHalfOfTheBudgetOfTheirClient) {
  const auto budget = test::make_budget(10'000, 1'000'000);
  const auto account = budget->account("a");
  EventStore first(100, 1u << 20, shared_budget);
  EventStore second(100, 1u << 20, shared_budget);
  first.charge_to(account);
  second.charge_to(account);
  put(first, 1, std::string(3000, 'x'));
  EXPECT_EQ(account->used_bytes(), first.retained_bytes());
  put(second, 1, std::string(3000, 'x'));  // exceeds half of the budget together with the first store's event
  EXPECT_EQ(second.retained_event_count(), 0u);
  EXPECT_EQ(first.retained_event_count(), 1u);
  put(second, 1, std::string(1000, 'x'));
  EXPECT_EQ(account->used_bytes(), first.retained_bytes() + second.retained_bytes());
  for (int i = 0; i < 10; ++i) put(first, 1, std::string(1000, 'x'));
  EXPECT_LE(account->used_bytes(), 5'000u);
  EXPECT_GT(first.retained_event_count(), 0u);
  first.end_stream(1, Clock::time_point());
  first.drop_ended(Clock::time_point());
  EXPECT_EQ(account->used_bytes(), second.retained_bytes());
}

TEST_F(EventStoreTest, EventsUseAtMostHalfOfTheBudgetOfAllClients) {
  const auto budget = test::make_budget(10'000, 8'000);
  EventStore store(100, 1u << 20, shared_budget);
  store.charge_to(budget->account("a"));
  put(store, 1, std::string(3'000, 'x'));
  ByteCharge other(budget->account("b"));
  EXPECT_EQ(other.resize(2'000), ChargeOutcome::charged);
  put(store, 1, "y");  // evicts the first event
  EXPECT_EQ(store.retained_event_count(), 1u);
  EXPECT_EQ(budget->used_bytes(), 2'000 + store.retained_bytes());
}

TEST_F(EventStoreTest, EndedStreamIsErasedWithItsLastEvent) {
  EventStore store(2, 1u << 20, shared_budget);
  put(store, 1, "a");
  store.end_stream(1, Clock::now());
  EXPECT_EQ(replay(store, EventId{1, 1}), "");
  put(store, 2, "b");
  put(store, 2, "c");
  EXPECT_EQ(replay(store, EventId{1, 1}), "unknown");
  store.allocate_id(3);
  store.end_stream(3, Clock::now());
  EXPECT_EQ(replay(store, EventId{3, 1}), "unknown");
}

TEST_F(EventStoreTest, EventsOfEndedStreamAreDroppedAfterGracePeriod) {
  EventStore store(100, 1u << 20, shared_budget);
  const Clock::time_point start;
  put(store, 1, "a");
  put(store, 2, "x");
  put(store, 1, "b");
  put(store, 3, "y");
  store.end_stream(1, start + 10s);
  store.end_stream(2, start + 20s);
  store.drop_ended(start + 9s);
  EXPECT_EQ(replay(store, EventId{1, 0}), "a b ");
  store.drop_ended(start + 15s);
  EXPECT_EQ(replay(store, EventId{1, 0}), "unknown");
  EXPECT_EQ(replay(store, EventId{2, 0}), "x ");
  store.drop_ended(start + 20s);
  EXPECT_EQ(store.retained_event_count(), 1u);
  EXPECT_EQ(shared_budget->used_bytes, store.retained_bytes());
  EXPECT_EQ(replay(store, EventId{3, 0}), "y ");  // has not ended
}

}  // namespace
}  // namespace fairlead::transport
