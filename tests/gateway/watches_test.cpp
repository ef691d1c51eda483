#include "gateway/watches.hpp"

#include "gateway/memory_servers.hpp"

namespace fairlead::gateway {
namespace {

constexpr const char* kOne = "memo://one";

class WatchesTest : public MemoryServersTest {
 protected:
  using Asked = std::vector<std::string>;

  // One client's subscription.
  struct Watcher {
    std::optional<Result<std::shared_ptr<void>>> outcome;
    std::vector<std::string> told;
    std::stop_source stop;
    PrincipalPtr client = Principal::anonymous("192.0.2.1:1");
    std::function<void()> on_told = [] {};

    bool subscribed() const { return outcome && *outcome; }
    void leave() { outcome.reset(); }
  };
  using WatcherPtr = std::shared_ptr<Watcher>;

  void SetUp() override {
    open_pool();
    pool::ServerSpec server = spec("a");
    server.max_calls = max_calls;
    ASSERT_TRUE(pool->add(server));
    watches = std::make_shared<Watches>(loop, pool, log);
  }
  void TearDown() override {
    watches->stop();
    for (const WatcherPtr& one : watchers) one->leave();
    MemoryServersTest::TearDown();
  }

  static Task<void> run(std::shared_ptr<Watches> in, std::string uri, WatcherPtr watcher) {
    const std::weak_ptr<Watcher> weak = watcher;
    Watches::Updated updated = [weak](const std::string& changed) {
      const WatcherPtr self = weak.lock();
      if (!self) return;
      self->told.push_back(changed);
      self->on_told();
    };
    Task<Result<std::shared_ptr<void>>> subscribing = in->subscribe(
        pool::Target("a"), std::move(uri), watcher->stop.get_token(), std::move(updated), watcher->client);
    Result<std::shared_ptr<void>> outcome = co_await subscribing;
    watcher->outcome = std::move(outcome);
  }
  // Begins to subscribe, as the client at this address.
  WatcherPtr begin(const std::string& uri = kOne, const std::string& address = "192.0.2.1:1") {
    watchers.push_back(std::make_shared<Watcher>());
    watchers.back()->client = Principal::anonymous(address);
    loop.spawn(run(watches, uri, watchers.back()));
    settle();
    return watchers.back();
  }
  WatcherPtr subscribe(const std::string& uri = kOne) {
    const WatcherPtr made = begin(uri);
    EXPECT_TRUE(comes_true([&] { return made->outcome.has_value(); }));
    EXPECT_TRUE(made->subscribed()) << made->outcome->error().to_string();
    return made;
  }
  // So many subscribers, each of a resource of its own or all of kOne.
  void subscribe_many(std::size_t many, bool own = false) {
    for (std::size_t i = 0; i < many; ++i) {
      watchers.push_back(std::make_shared<Watcher>());
      loop.spawn(run(watches, own ? "memo://" + std::to_string(i) : kOne, watchers.back()));
    }
    EXPECT_TRUE(comes_true([&] {
      return std::ranges::all_of(watchers, [](const WatcherPtr& one) { return one->subscribed(); });
    }));
  }
  // As many updates as there are URIs, and what follows from them.
  void tell(const std::vector<std::string>& uris) {
    const auto upstream = start("a");
    loop.post([this, upstream, uris] {
      for (const std::string& uri : uris) watches->tell(*upstream, uri);
    });
    settle();
  }
  const Asked& asked() { return memory["a"].asked; }

  std::size_t max_calls = pool::ServerSpec().max_calls;  // of the server, as of SetUp()
  std::shared_ptr<Watches> watches;
  std::vector<WatcherPtr> watchers;
};

TEST_F(WatchesTest, AllWhoSubscribeToAResourceShareOneSubscriptionUntilTheLastLeaves) {
  const auto first = subscribe();
  const auto second = subscribe();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one"}));
  first->leave();
  settle();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one"}));
  second->leave();
  settle();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one", "unsubscribe 1"}));
  subscribe();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one", "unsubscribe 1", "subscribe memo://one"}));
}

TEST_F(WatchesTest, SubscribersAreToldOfTheirResourceAndOfThoseInsideIt) {
  const auto one = subscribe();
  const auto two = subscribe("memo://two");
  tell({"memo://one", "memo://one/part", "memo://one?q", "memo://one#f", "memo://oneself", "memo://on",
        "memo://two/"});
  EXPECT_EQ(one->told, (Asked{"memo://one", "memo://one/part", "memo://one?q", "memo://one#f"}));
  EXPECT_EQ(two->told, (Asked{"memo://two/"}));
}

TEST_F(WatchesTest, UpdatesOfAnotherServerAreNotTold) {
  ASSERT_TRUE(pool->add(spec("b")));
  const auto one = subscribe();
  watches->tell(*start("b"), kOne);
  settle();
  EXPECT_EQ(one->told, Asked());
}

TEST_F(WatchesTest, SubscriberThatLeavesWhileOthersAreToldIsNotTold) {
  const auto first = subscribe();
  const auto second = subscribe();
  first->on_told = [&] { second->leave(); };
  second->on_told = [&] { first->leave(); };
  tell({kOne});
  EXPECT_EQ(first->told.size() + second->told.size(), 1u);
}

TEST_F(WatchesTest, RefusalReachesAllWhoWaitForTheSameSubscriptionAndTheNextOneAsksAgain) {
  start("a");
  memory["a"].held.emplace();
  memory["a"].refusal = Error::rpc(-32602, "no such resource");
  const auto first = begin();
  const auto second = begin();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one"}));
  EXPECT_FALSE(first->outcome || second->outcome);
  memory["a"].held->set();
  ASSERT_TRUE(comes_true([&] { return first->outcome && second->outcome; }));
  for (const auto& one : {first, second}) {
    ASSERT_FALSE(one->subscribed());
    EXPECT_NE(one->outcome->error().message().find("no such resource"), std::string::npos);
  }
  memory["a"].refusal.reset();
  subscribe();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one", "subscribe memo://one"}));
}

TEST_F(WatchesTest, ServerWithoutResourcesIsNotAsked) {
  memory["a"].capabilities = test::raw(R"({"tools":{}})");
  const auto one = begin();
  ASSERT_TRUE(comes_true([&] { return one->outcome.has_value(); }));
  ASSERT_FALSE(one->subscribed());
  EXPECT_EQ(one->outcome->error().message(), "Server `a` does not tell of changes of its resources");
  EXPECT_EQ(asked(), Asked());
}

TEST_F(WatchesTest, SubscriptionIsGivenUpWhileItsServerStarts) {
  memory["a"].held.emplace();
  const auto one = begin();
  one->stop.request_stop();
  ASSERT_TRUE(comes_true([&] { return one->outcome.has_value(); }));
  ASSERT_FALSE(one->subscribed());
  EXPECT_EQ(one->outcome->error().kind(), ErrorKind::cancelled);
  memory["a"].held->set();
  start("a");
  settle();
  EXPECT_EQ(asked(), Asked());
}

TEST_F(WatchesTest, SubscriptionIsMadeAgainWhenItsServerWasLostAndTheSubscriberIsTold) {
  const auto one = subscribe();
  const auto upstream = start("a");
  watches->renew("a");
  watches->renew("b");
  settle();
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one"})) << "its upstream is as it was";
  lose("a", upstream);
  watches->renew("a");
  EXPECT_TRUE(comes_true([&] { return !one->told.empty(); }));
  EXPECT_EQ(one->told, (Asked{kOne})) << "it may have changed meanwhile";
  EXPECT_EQ(memory["a"].count("subscribe memo://one"), 2);
  tell({kOne});
  EXPECT_EQ(one->told.size(), 2u);
}

TEST_F(WatchesTest, ServerThatCannotBeReachedIsTriedAgainWhenItsUpstreamsChange) {
  const auto one = subscribe();
  const auto upstream = start("a");
  memory["a"].unreachable = Error(ErrorKind::connection_failed, "not now");
  lose("a", upstream);
  watches->renew("a");
  EXPECT_TRUE(comes_true([&] { return !logged.empty(); }));
  EXPECT_NE(logged.at(0).find("cannot subscribe again"), std::string::npos) << logged.at(0);
  memory["a"].unreachable.reset();
  start("a");
  watches->renew("a");
  EXPECT_TRUE(comes_true([&] { return !one->told.empty(); }));
  EXPECT_EQ(memory["a"].count("subscribe memo://one"), 2);
}

TEST_F(WatchesTest, ServerThatRefusesToRenewIsNotAskedAgain) {
  const auto one = subscribe();
  const auto upstream = start("a");
  memory["a"].refusal = Error::rpc(-32602, "no such resource any more").with([](ErrorDetail& detail) {
    detail.retry_after = 0ms;
  });
  lose("a", upstream);
  watches->renew("a");
  EXPECT_TRUE(comes_true([&] { return !logged.empty(); }));
  EXPECT_NE(logged.at(0).find("no such resource any more"), std::string::npos) << logged.at(0);
  settle();
  EXPECT_EQ(memory["a"].count("subscribe memo://one"), 2);
  EXPECT_EQ(one->told, Asked());
}

TEST_F(WatchesTest, SubscribersThatFailedAreTriedAgainAtTheEarliestTimeThatAnyOfTheirErrorsNames) {
  for (const char* uri : {"memo://one", "memo://two", "memo://three"}) subscribe(uri);
  lose("a", start("a"));
  start("a");
  for (const auto retry_after : {3'600'000ms, 0ms, 3'600'000ms}) {
    memory["a"].next_refusals.push_back(
        Error(ErrorKind::timeout, "not now").with([retry_after](ErrorDetail& detail) {
          detail.retry_after = retry_after;
        }));
  }
  memory["a"].held.emplace();
  loop.post([&] { watches->renew("a"); });
  ASSERT_TRUE(comes_true([&] { return asked().size() == 6; }));
  memory["a"].held->set();
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(watchers, [](const WatcherPtr& one) { return one->told.size() == 1; });
  }));
}

TEST_F(WatchesTest, NoSubscriberIsToldAndNoServerIsAskedAfterStop) {
  const auto one = subscribe();
  const auto upstream = start("a");
  watches->stop();
  watches->tell(*upstream, kOne);
  watches->renew("a", true);
  settle();
  one->leave();
  settle();
  EXPECT_EQ(one->told, Asked());
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one"}));
}

// ---- waiting ---------------------------------------------------------------------------------------------

class WaitingWatchesTest : public WatchesTest {
 protected:
  void SetUp() override {}
  // One subscription of a client may wait.
  void open(std::size_t calls_of_server) {
    limits.max_client_waiting_calls = 1;
    max_calls = calls_of_server;
    WatchesTest::SetUp();
  }
  // The client at 192.0.2.1 has one that waits.
  void expect_one_more_is_refused_and_another_client_waits() {
    const auto refused = begin("memo://refused");
    ASSERT_TRUE(refused->outcome && !*refused->outcome);
    EXPECT_NE(refused->outcome->error().message().find("max_client_waiting_calls (1) calls of this client"),
              std::string::npos)
        << refused->outcome->error().message();
    const auto other = begin("memo://other", "192.0.2.2:1");
    EXPECT_FALSE(other->outcome);
    memory["a"].held->set();
    EXPECT_TRUE(comes_true([&] { return other->outcome.has_value(); }));
    EXPECT_TRUE(other->subscribed()) << other->outcome->error().to_string();
  }
};

TEST_F(WaitingWatchesTest, SubscriptionsThatWaitForTheStartOfTheirServerCountAsWaitingCallsOfTheirClient) {
  open(10);
  memory["a"].held.emplace();
  EXPECT_FALSE(begin()->outcome);
  expect_one_more_is_refused_and_another_client_waits();
}

TEST_F(WaitingWatchesTest, SubscriptionsThatWaitForTheirTurnCountAsWaitingCallsOfTheirClient) {
  open(1);
  start("a");
  memory["a"].held.emplace();
  EXPECT_FALSE(begin()->outcome);  // is under way
  EXPECT_FALSE(begin("memo://two")->outcome);
  expect_one_more_is_refused_and_another_client_waits();
}

// ---- many ------------------------------------------------------------------------------------------------

TEST_F(WatchesTest, ManySubscribersOfAnUpdateAreToldInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t told = 0;
  for (const WatcherPtr& one : watchers) one->on_told = [&] { ++told; };
  const auto upstream = start("a");
  loop.post([&] { watches->tell(*upstream, kOne); });
  loop.run_until([&] { return told > 0; });
  EXPECT_LT(told, kMany);  // a turn has ended before all of them were told
  loop.run_until([&] { return told == kMany; });
}

TEST_F(WatchesTest, UpdatesThatAreRepeatedBeforeTheyAreToldAreToldOnce) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t told = 0;
  for (const WatcherPtr& one : watchers) one->on_told = [&] { ++told; };
  const auto upstream = start("a");
  loop.post([&] {
    for (int i = 0; i < 1000; ++i) watches->tell(*upstream, kOne);
  });
  loop.run_until([&] { return told >= 2 * kMany; });
  settle();
  EXPECT_EQ(told, 2 * kMany);  // once by the first update, once by all others
}

TEST_F(WatchesTest, SubscribersAreToldOfTheirOwnResourceWhenTooManyUpdatesWait) {
  const auto one = subscribe();
  const auto other = subscribe("memo://two");
  subscribe_many(1000);
  const auto upstream = start("a");
  loop.post([&] {
    watches->tell(*upstream, kOne);  // takes several turns
    for (int i = 0; i < 50'000; ++i) watches->tell(*upstream, "memo://one/" + std::to_string(i));
  });
  EXPECT_TRUE(comes_true([&] { return other->told == Asked{"memo://two"}; }));
  settle();
  EXPECT_EQ(one->told, (Asked{kOne, kOne}));
}

TEST_F(WatchesTest, ManySubscribersOfALostServerAreCheckedInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  const std::weak_ptr<MemoryUpstream> before = memory["a"].newest;
  lose("a", start("a"));
  start("a");
  memory["a"].held.emplace();  // nobody subscribes again meanwhile
  bool renewed = false;
  loop.post([&] {
    watches->renew("a");
    renewed = true;
  });
  loop.run_until([&] { return renewed; });
  EXPECT_FALSE(before.expired());  // a turn has ended before all of them have let go of it
  EXPECT_TRUE(comes_true([&] { return before.expired(); }));
}

TEST_F(WatchesTest, ManySubscribersOfAResourceAreSubscribedAgainInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t told = 0;
  for (const WatcherPtr& one : watchers) one->on_told = [&] { ++told; };
  const std::weak_ptr<MemoryUpstream> before = memory["a"].newest;
  lose("a", start("a"));
  start("a");
  memory["a"].held.emplace();
  loop.post([&] { watches->renew("a"); });
  ASSERT_TRUE(comes_true([&] { return before.expired(); }));  // all of them are queued
  loop.post([&] { memory["a"].held->set(); });
  loop.run_until([&] { return told > 0; });
  EXPECT_LT(told, kMany);  // a turn has ended before all of them were subscribed
  EXPECT_TRUE(comes_true([&] { return told == kMany; }));
  EXPECT_EQ(memory["a"].count("subscribe memo://one"), 2);
}

TEST_F(WatchesTest, WhoSubscribesWhileManyAreStillToldOfARefusalAsksAgain) {
  constexpr std::size_t kMany = 5 * Event::kWokenPerTurn;
  start("a");
  memory["a"].held.emplace();
  memory["a"].next_refusals.push_back(Error::rpc(-32602, "no such resource"));
  for (std::size_t i = 0; i < kMany; ++i) {
    watchers.push_back(std::make_shared<Watcher>());
    loop.spawn(run(watches, kOne, watchers.back()));
  }
  settle();
  const auto refused = [&] {
    return std::ranges::count_if(watchers, [](const WatcherPtr& one) { return one->outcome.has_value(); });
  };
  loop.post([&] { memory["a"].held->set(); });
  loop.run_until([&] { return refused() > 0; });
  ASSERT_LT(static_cast<std::size_t>(refused()) + Event::kWokenPerTurn, kMany);
  const auto last = std::make_shared<Watcher>();
  loop.spawn(run(watches, kOne, last));
  EXPECT_TRUE(comes_true([&] { return last->outcome.has_value() && refused() == kMany; }));
  EXPECT_TRUE(last->subscribed()) << last->outcome->error().to_string();
  watchers.push_back(last);
  EXPECT_EQ(asked(), (Asked{"subscribe memo://one", "subscribe memo://one"}));
  tell({kOne});
  EXPECT_EQ(last->told, (Asked{kOne})) << "it is still known when the one that was refused is gone";
}

TEST_F(WatchesTest, ServerIsSentAFewRequestsAtOnceWhenManySubscriptionsAreMadeAgain) {
  constexpr std::size_t kMany = 1000;
  subscribe_many(kMany, true);
  const auto upstream = start("a");
  lose("a", upstream);
  start("a");
  memory["a"].held.emplace();
  memory["a"].asked.clear();
  loop.post([&] { watches->renew("a"); });
  settle();
  EXPECT_EQ(asked().size(), Watches::kMaxAtOnce);
  memory["a"].held->set();
  EXPECT_TRUE(comes_true([&] { return asked().size() == kMany; }));
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(watchers, [](const WatcherPtr& one) { return one->told.size() == 1; });
  }));
}

TEST_F(WatchesTest, ServerIsSentAFewRequestsAtOnceWhenManySubscriptionsEnd) {
  constexpr std::size_t kMany = 1000;
  subscribe_many(kMany, true);
  memory["a"].held_ends.emplace();
  memory["a"].asked.clear();
  loop.post([&] {
    for (const WatcherPtr& one : watchers) one->leave();
  });
  settle();
  EXPECT_EQ(asked().size(), Watches::kMaxAtOnce);
  memory["a"].held_ends->set();
  EXPECT_TRUE(comes_true([&] { return asked().size() == kMany; }));
}

}  // namespace
}  // namespace fairlead::gateway
