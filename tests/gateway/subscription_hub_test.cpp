#include "gateway/subscription_hub.hpp"

#include "gateway/memory_servers.hpp"

namespace fairlead::gateway {
namespace {

constexpr const char* kOne = "memo://one";

class SubscriptionHubTest : public MemoryServersTest {
 protected:
  using Strings = std::vector<std::string>;

  // One client's subscription.
  struct TestSubscriber {
    std::optional<Result<std::shared_ptr<void>>> outcome;
    std::vector<std::string> updates;
    std::stop_source stop;
    PrincipalPtr client = Principal::anonymous("192.0.2.1:1");
    std::function<void()> on_update_received = [] {};

    bool subscribed() const { return outcome && *outcome; }
    void leave() { outcome.reset(); }
  };
  using SubscriberPtr = std::shared_ptr<TestSubscriber>;

  void SetUp() override {
    open_pool();
    pool::ServerSpec server = spec("a");
    server.max_calls = max_calls;
    ASSERT_TRUE(pool->add(server));
    hub = std::make_shared<SubscriptionHub>(loop, pool, log);
  }
  void TearDown() override {
    hub->stop();
    for (const SubscriberPtr& one : subscribers) one->leave();
    MemoryServersTest::TearDown();
  }

  static Task<void> run(std::shared_ptr<SubscriptionHub> in, std::string uri, SubscriberPtr subscriber) {
    const std::weak_ptr<TestSubscriber> weak = subscriber;
    SubscriptionHub::UpdateCallback on_update = [weak](const std::string& changed) {
      const SubscriberPtr self = weak.lock();
      if (!self) return;
      self->updates.push_back(changed);
      self->on_update_received();
    };
    Result<std::shared_ptr<void>> outcome =
        co_await in->subscribe(pool::Target("a"), std::move(uri), subscriber->stop.get_token(),
                               std::move(on_update), subscriber->client);
    subscriber->outcome = std::move(outcome);
  }
  // Starts to subscribe as the client at this address.
  SubscriberPtr begin(const std::string& uri = kOne, const std::string& address = "192.0.2.1:1") {
    subscribers.push_back(std::make_shared<TestSubscriber>());
    subscribers.back()->client = Principal::anonymous(address);
    loop.spawn(run(hub, uri, subscribers.back()));
    run_until_idle();
    return subscribers.back();
  }
  SubscriberPtr subscribe(const std::string& uri = kOne) {
    const SubscriberPtr subscriber = begin(uri);
    EXPECT_TRUE(wait_until([&] { return subscriber->outcome.has_value(); }));
    EXPECT_TRUE(subscriber->subscribed()) << subscriber->outcome->error().to_string();
    return subscriber;
  }
  // Adds `count` subscribers, each of another resource if `distinct_uris`, or else all of kOne.
  void subscribe_many(std::size_t count, bool distinct_uris = false) {
    for (std::size_t i = 0; i < count; ++i) {
      subscribers.push_back(std::make_shared<TestSubscriber>());
      loop.spawn(run(hub, distinct_uris ? "memo://" + std::to_string(i) : kOne, subscribers.back()));
    }
    EXPECT_TRUE(wait_until([&] {
      return std::ranges::all_of(subscribers, [](const SubscriberPtr& one) { return one->subscribed(); });
    }));
  }
  // Server `a` sends an update of each URI. Waits until all are dispatched.
  void update(const std::vector<std::string>& uris) {
    const auto upstream = start("a");
    loop.post([this, upstream, uris] {
      for (const std::string& uri : uris) hub->handle_resource_updated(*upstream, uri);
    });
    run_until_idle();
  }
  const Strings& requests() { return memory_servers["a"].requests; }

  std::size_t max_calls = pool::ServerSpec().max_calls;  // of the server added by SetUp()
  std::shared_ptr<SubscriptionHub> hub;
  std::vector<SubscriberPtr> subscribers;
};

TEST_F(SubscriptionHubTest, SubscribersOfResourceShareOneSubscriptionUntilLastUnsubscribes) {
  const auto first = subscribe();
  const auto second = subscribe();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one"}));
  first->leave();
  run_until_idle();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one"}));
  second->leave();
  run_until_idle();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one", "unsubscribe 1"}));
  subscribe();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one", "unsubscribe 1", "subscribe memo://one"}));
}

TEST_F(SubscriptionHubTest, SubscriberIsNotifiedOfItsResourceAndOfNestedResources) {
  const auto one = subscribe();
  const auto two = subscribe("memo://two");
  update({"memo://one", "memo://one/part", "memo://one?q", "memo://one#f", "memo://oneself", "memo://on",
          "memo://two/"});
  EXPECT_EQ(one->updates, (Strings{"memo://one", "memo://one/part", "memo://one?q", "memo://one#f"}));
  EXPECT_EQ(two->updates, (Strings{"memo://two/"}));
}

TEST_F(SubscriptionHubTest, UpdateOfOtherServerIsIgnored) {
  ASSERT_TRUE(pool->add(spec("b")));
  const auto one = subscribe();
  hub->handle_resource_updated(*start("b"), kOne);
  run_until_idle();
  EXPECT_EQ(one->updates, Strings());
}

TEST_F(SubscriptionHubTest, SubscriberThatUnsubscribesDuringDispatchIsNotNotified) {
  const auto first = subscribe();
  const auto second = subscribe();
  first->on_update_received = [&] { second->leave(); };
  second->on_update_received = [&] { first->leave(); };
  update({kOne});
  EXPECT_EQ(first->updates.size() + second->updates.size(), 1u);
}

TEST_F(SubscriptionHubTest, ErrorIsReturnedToAllWaitersAndNextSubscriberSendsNewRequest) {
  start("a");
  memory_servers["a"].unblock.emplace();
  memory_servers["a"].refusal_error = Error::rpc(-32602, "no such resource");
  const auto first = begin();
  const auto second = begin();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one"}));
  EXPECT_FALSE(first->outcome || second->outcome);
  memory_servers["a"].unblock->set();
  ASSERT_TRUE(wait_until([&] { return first->outcome && second->outcome; }));
  for (const auto& one : {first, second}) {
    ASSERT_FALSE(one->subscribed());
    EXPECT_NE(one->outcome->error().message().find("no such resource"), std::string::npos);
  }
  memory_servers["a"].refusal_error.reset();
  subscribe();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one", "subscribe memo://one"}));
}

TEST_F(SubscriptionHubTest, SubscribeFailsWithoutRequestWhenServerHasNoResources) {
  memory_servers["a"].capabilities = test::raw(R"({"tools":{}})");
  const auto one = begin();
  ASSERT_TRUE(wait_until([&] { return one->outcome.has_value(); }));
  ASSERT_FALSE(one->subscribed());
  EXPECT_EQ(one->outcome->error().message(), "Server `a` does not support resource subscriptions");
  EXPECT_EQ(requests(), Strings());
}

TEST_F(SubscriptionHubTest, SubscribeIsCancelledWhileServerStarts) {
  memory_servers["a"].unblock.emplace();
  const auto one = begin();
  one->stop.request_stop();
  ASSERT_TRUE(wait_until([&] { return one->outcome.has_value(); }));
  ASSERT_FALSE(one->subscribed());
  EXPECT_EQ(one->outcome->error().kind(), ErrorKind::cancelled);
  memory_servers["a"].unblock->set();
  start("a");
  run_until_idle();
  EXPECT_EQ(requests(), Strings());
}

TEST_F(SubscriptionHubTest, SubscriptionIsRenewedAndSubscriberNotifiedWhenServerIsLost) {
  const auto one = subscribe();
  const auto upstream = start("a");
  hub->renew("a");
  hub->renew("b");
  run_until_idle();
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one"})) << "its upstream is unchanged";
  end_connection("a", upstream);
  hub->renew("a");
  EXPECT_TRUE(wait_until([&] { return !one->updates.empty(); }));
  EXPECT_EQ(one->updates, (Strings{kOne})) << "an update may have been missed";
  EXPECT_EQ(memory_servers["a"].count("subscribe memo://one"), 2);
  update({kOne});
  EXPECT_EQ(one->updates.size(), 2u);
}

TEST_F(SubscriptionHubTest, FailedRenewalIsRetriedWhenUpstreamsChange) {
  const auto one = subscribe();
  const auto upstream = start("a");
  memory_servers["a"].connect_error = Error(ErrorKind::connection_failed, "not now");
  end_connection("a", upstream);
  hub->renew("a");
  EXPECT_TRUE(wait_until([&] { return !logged.empty(); }));
  EXPECT_NE(logged.at(0).find("cannot subscribe again"), std::string::npos) << logged.at(0);
  memory_servers["a"].connect_error.reset();
  start("a");
  hub->renew("a");
  EXPECT_TRUE(wait_until([&] { return !one->updates.empty(); }));
  EXPECT_EQ(memory_servers["a"].count("subscribe memo://one"), 2);
}

TEST_F(SubscriptionHubTest, RenewalIsNotRetriedAfterErrorOfServer) {
  const auto one = subscribe();
  const auto upstream = start("a");
  memory_servers["a"].refusal_error =
      Error::rpc(-32602, "no such resource any more").with([](ErrorDetail& detail) {
        detail.retry_after = 0ms;
      });
  end_connection("a", upstream);
  hub->renew("a");
  EXPECT_TRUE(wait_until([&] { return !logged.empty(); }));
  EXPECT_NE(logged.at(0).find("no such resource any more"), std::string::npos) << logged.at(0);
  run_until_idle();
  EXPECT_EQ(memory_servers["a"].count("subscribe memo://one"), 2);
  EXPECT_EQ(one->updates, Strings());
}

TEST_F(SubscriptionHubTest, FailedRenewalsAreRetriedAtEarliestRetryAfter) {
  for (const char* uri : {"memo://one", "memo://two", "memo://three"}) subscribe(uri);
  end_connection("a", start("a"));
  start("a");
  for (const auto retry_after : {3'600'000ms, 0ms, 3'600'000ms}) {
    memory_servers["a"].next_refusal_errors.push_back(
        Error(ErrorKind::timeout, "not now").with([retry_after](ErrorDetail& detail) {
          detail.retry_after = retry_after;
        }));
  }
  memory_servers["a"].unblock.emplace();
  loop.post([&] { hub->renew("a"); });
  ASSERT_TRUE(wait_until([&] { return requests().size() == 6; }));
  memory_servers["a"].unblock->set();
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::all_of(subscribers,
                               [](const SubscriberPtr& one) { return one->updates.size() == 1; });
  }));
}

TEST_F(SubscriptionHubTest, NothingIsNotifiedOrRequestedAfterStop) {
  const auto one = subscribe();
  const auto upstream = start("a");
  hub->stop();
  hub->handle_resource_updated(*upstream, kOne);
  hub->renew("a", true);
  run_until_idle();
  one->leave();
  run_until_idle();
  EXPECT_EQ(one->updates, Strings());
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one"}));
}

// ---- waiting ---------------------------------------------------------------------------------------------

class WaitingSubscriptionHubTest : public SubscriptionHubTest {
 protected:
  void SetUp() override {}
  // Creates the hub and a server with `calls_of_server` permits. Each client may have one waiting call.
  void open(std::size_t calls_of_server) {
    limits.max_client_waiting_calls = 1;
    max_calls = calls_of_server;
    SubscriptionHubTest::SetUp();
  }
  // REQUIRES: the client at 192.0.2.1 has one waiting subscription.
  void expect_next_is_rejected_and_other_client_waits() {
    const auto refused = begin("memo://refused");
    ASSERT_TRUE(refused->outcome && !*refused->outcome);
    EXPECT_NE(refused->outcome->error().message().find("max_client_waiting_calls (1) calls of this client"),
              std::string::npos)
        << refused->outcome->error().message();
    const auto other = begin("memo://other", "192.0.2.2:1");
    EXPECT_FALSE(other->outcome);
    memory_servers["a"].unblock->set();
    EXPECT_TRUE(wait_until([&] { return other->outcome.has_value(); }));
    EXPECT_TRUE(other->subscribed()) << other->outcome->error().to_string();
  }
};

TEST_F(WaitingSubscriptionHubTest, SubscriptionWaitingForServerStartCountsAsWaitingCallOfClient) {
  open(10);
  memory_servers["a"].unblock.emplace();
  EXPECT_FALSE(begin()->outcome);
  expect_next_is_rejected_and_other_client_waits();
}

TEST_F(WaitingSubscriptionHubTest, SubscriptionWaitingForPermitCountsAsWaitingCallOfClient) {
  open(1);
  start("a");
  memory_servers["a"].unblock.emplace();
  EXPECT_FALSE(begin()->outcome);  // its request is in progress
  EXPECT_FALSE(begin("memo://two")->outcome);
  expect_next_is_rejected_and_other_client_waits();
}

// ---- many ------------------------------------------------------------------------------------------------

TEST_F(SubscriptionHubTest, ManySubscribersAreNotifiedInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t updates = 0;
  for (const SubscriberPtr& one : subscribers) one->on_update_received = [&] { ++updates; };
  const auto upstream = start("a");
  loop.post([&] { hub->handle_resource_updated(*upstream, kOne); });
  loop.run_until([&] { return updates > 0; });
  EXPECT_LT(updates, kMany);  // a turn has ended before all were notified
  loop.run_until([&] { return updates == kMany; });
}

TEST_F(SubscriptionHubTest, RepeatedPendingUpdatesAreDispatchedOnce) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t updates = 0;
  for (const SubscriberPtr& one : subscribers) one->on_update_received = [&] { ++updates; };
  const auto upstream = start("a");
  loop.post([&] {
    for (int i = 0; i < 1000; ++i) hub->handle_resource_updated(*upstream, kOne);
  });
  loop.run_until([&] { return updates >= 2 * kMany; });
  run_until_idle();
  EXPECT_EQ(updates, 2 * kMany);  // once for the first update, once for all others
}

TEST_F(SubscriptionHubTest, SubscribersAreNotifiedOfOwnResourceWhenTooManyUpdatesArePending) {
  const auto one = subscribe();
  const auto other = subscribe("memo://two");
  subscribe_many(1000);
  const auto upstream = start("a");
  loop.post([&] {
    hub->handle_resource_updated(*upstream, kOne);  // is dispatched in several turns
    for (int i = 0; i < 50'000; ++i)
      hub->handle_resource_updated(*upstream, "memo://one/" + std::to_string(i));
  });
  EXPECT_TRUE(wait_until([&] { return other->updates == Strings{"memo://two"}; }));
  run_until_idle();
  EXPECT_EQ(one->updates, (Strings{kOne, kOne}));
}

TEST_F(SubscriptionHubTest, ManySubscribersOfLostServerAreCheckedInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  const std::weak_ptr<MemoryUpstream> before = memory_servers["a"].newest_connection;
  end_connection("a", start("a"));
  start("a");
  memory_servers["a"].unblock.emplace();  // renewals wait meanwhile
  bool renewed = false;
  loop.post([&] {
    hub->renew("a");
    renewed = true;
  });
  loop.run_until([&] { return renewed; });
  EXPECT_FALSE(before.expired());  // a turn has ended before all have released it
  EXPECT_TRUE(wait_until([&] { return before.expired(); }));
}

TEST_F(SubscriptionHubTest, ManySubscribersOfResourceAreRenewedInSeveralTurns) {
  constexpr std::size_t kMany = 2000;
  subscribe_many(kMany);
  std::size_t updates = 0;
  for (const SubscriberPtr& one : subscribers) one->on_update_received = [&] { ++updates; };
  const std::weak_ptr<MemoryUpstream> before = memory_servers["a"].newest_connection;
  end_connection("a", start("a"));
  start("a");
  memory_servers["a"].unblock.emplace();
  loop.post([&] { hub->renew("a"); });
  ASSERT_TRUE(wait_until([&] { return before.expired(); }));  // all are queued
  loop.post([&] { memory_servers["a"].unblock->set(); });
  loop.run_until([&] { return updates > 0; });
  EXPECT_LT(updates, kMany);  // a turn has ended before all were renewed
  EXPECT_TRUE(wait_until([&] { return updates == kMany; }));
  EXPECT_EQ(memory_servers["a"].count("subscribe memo://one"), 2);
}

TEST_F(SubscriptionHubTest, SubscriberAddedWhileManyWaitersReceiveErrorSendsNewRequest) {
  constexpr std::size_t kMany = 5 * Event::kMaxWakesPerTurn;
  start("a");
  memory_servers["a"].unblock.emplace();
  memory_servers["a"].next_refusal_errors.push_back(Error::rpc(-32602, "no such resource"));
  for (std::size_t i = 0; i < kMany; ++i) {
    subscribers.push_back(std::make_shared<TestSubscriber>());
    loop.spawn(run(hub, kOne, subscribers.back()));
  }
  run_until_idle();
  const auto refused = [&] {
    return std::ranges::count_if(subscribers,
                                 [](const SubscriberPtr& one) { return one->outcome.has_value(); });
  };
  loop.post([&] { memory_servers["a"].unblock->set(); });
  loop.run_until([&] { return refused() > 0; });
  ASSERT_LT(static_cast<std::size_t>(refused()) + Event::kMaxWakesPerTurn, kMany);
  const auto last = std::make_shared<TestSubscriber>();
  loop.spawn(run(hub, kOne, last));
  EXPECT_TRUE(wait_until([&] { return last->outcome.has_value() && refused() == kMany; }));
  EXPECT_TRUE(last->subscribed()) << last->outcome->error().to_string();
  subscribers.push_back(last);
  EXPECT_EQ(requests(), (Strings{"subscribe memo://one", "subscribe memo://one"}));
  update({kOne});
  EXPECT_EQ(last->updates, (Strings{kOne}))
      << "destroying the failed subscription does not erase the new one";
}

TEST_F(SubscriptionHubTest, ConcurrentRequestsAreLimitedWhenManySubscriptionsAreRenewed) {
  constexpr std::size_t kMany = 1000;
  subscribe_many(kMany, true);
  const auto upstream = start("a");
  end_connection("a", upstream);
  start("a");
  memory_servers["a"].unblock.emplace();
  memory_servers["a"].requests.clear();
  loop.post([&] { hub->renew("a"); });
  run_until_idle();
  EXPECT_EQ(requests().size(), SubscriptionHub::kMaxConcurrentRequests);
  memory_servers["a"].unblock->set();
  EXPECT_TRUE(wait_until([&] { return requests().size() == kMany; }));
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::all_of(subscribers,
                               [](const SubscriberPtr& one) { return one->updates.size() == 1; });
  }));
}

TEST_F(SubscriptionHubTest, ConcurrentRequestsAreLimitedWhenManySubscriptionsEnd) {
  constexpr std::size_t kMany = 1000;
  subscribe_many(kMany, true);
  memory_servers["a"].unblock_unsubscribe.emplace();
  memory_servers["a"].requests.clear();
  loop.post([&] {
    for (const SubscriberPtr& one : subscribers) one->leave();
  });
  run_until_idle();
  EXPECT_EQ(requests().size(), SubscriptionHub::kMaxConcurrentRequests);
  memory_servers["a"].unblock_unsubscribe->set();
  EXPECT_TRUE(wait_until([&] { return requests().size() == kMany; }));
}

}  // namespace
}  // namespace fairlead::gateway
