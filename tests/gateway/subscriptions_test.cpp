// Resource updates reach the subscribed clients, from the upstream that serves them, and no other client.
// R12.4.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

struct Eras {
  mcp::Revision client;
  mcp::Revision server;
};
class SubscriptionsTest : public GatewayTest, public ::testing::WithParamInterface<Eras> {};

std::string name_of(const ::testing::TestParamInfo<Eras>& info) {
  const auto era = [](mcp::Revision revision) { return mcp::is_modern(revision) ? "modern" : "legacy"; };
  return std::string(era(info.param.client)) + "_client_" + era(info.param.server) + "_server";
}
INSTANTIATE_TEST_SUITE_P(eras, SubscriptionsTest,
                         ::testing::Values(Eras{mcp::kNewestLegacyRevision, mcp::kNewestLegacyRevision},
                                           Eras{mcp::kNewestLegacyRevision, mcp::kNewestRevision},
                                           Eras{mcp::kNewestRevision, mcp::kNewestLegacyRevision},
                                           Eras{mcp::kNewestRevision, mcp::kNewestRevision}),
                         name_of);

TEST_P(SubscriptionsTest, UpdateIsSentToSubscribersOnly) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = connect_client(GetParam().client);
  const auto other = connect_client(GetParam().client);
  const auto third = connect_client(GetParam().client);
  subscribe(one);
  subscribe(other);
  instance("a", 0).server.notify_resource_updated(kMemo);
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 1 && other->count(kUpdated) == 1; }));
  flush_messages("a");
  EXPECT_EQ(one->count(kUpdated), 1) << "one notification, though there are two subscribers";
  EXPECT_EQ(third->count(kUpdated), 0);
}

TEST_P(SubscriptionsTest, UnsubscribingOneClientDoesNotAffectTheOther) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = connect_client(GetParam().client);
  const auto other = connect_client(GetParam().client);
  const std::uint64_t number = subscribe(one);
  subscribe(other);
  ASSERT_TRUE(loop.block_on(one->client->unsubscribe(number)));
  flush_messages("a");
  call(other, "a__touch");
  EXPECT_TRUE(wait_until([&] { return other->count(kUpdated) == 1; }));
  flush_messages("a");
  EXPECT_EQ(one->count(kUpdated), 0);
}

TEST_P(SubscriptionsTest, UpdateOfPerSessionServerIsSentToItsSessionOnly) {
  add("a", Sharing::per_session, GetParam().server);
  const auto one = connect_client(GetParam().client);
  const auto other = connect_client(GetParam().client);
  subscribe(one);
  subscribe(other);
  call(one, "a__touch");
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 1; }));
  flush_messages("a");
  EXPECT_EQ(other->count(kUpdated), 0);
}

TEST_P(SubscriptionsTest, LostServerIsSubscribedToAgainAndSubscriberIsNotified) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = connect_client(GetParam().client);
  subscribe(one);
  instance("a", 0).connection->close();
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 1; }))
      << "the server is restarted without a call";
  ASSERT_EQ(servers["a"]->size(), 2u);
  instance("a", 1).server.notify_resource_updated(kMemo);
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 2; }));
}

TEST_F(GatewayTest, SubscribersMoveToUnsharedUpstreamsWhenServerIsUnshared) {
  add("a", Sharing::automatic);
  const auto one = connect_client(mcp::kNewestLegacyRevision, "", "someone");
  const auto other = connect_client(mcp::kNewestLegacyRevision, "", "another");
  subscribe(one);
  subscribe(other);
  EXPECT_EQ(call(one, "a__ask"), "someone");
  EXPECT_NE(call(one, "a__which"), call(other, "a__which")) << "each session has its own upstream now";
  EXPECT_TRUE(wait_until([&] { return other->count(kUpdated) == 1; })) << "an update may have been missed";
  flush_messages("a");
  const auto before = one->count(kUpdated);
  call(one, "a__touch");
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == before + 1; }));
  flush_messages("a");
  EXPECT_EQ(other->count(kUpdated), 1);
  call(other, "a__touch");
  EXPECT_TRUE(wait_until([&] { return other->count(kUpdated) == 2; }));
}

TEST_F(GatewayTest, ServerIsKeptRunningUntilLastSubscriberUnsubscribes) {
  for (const char* const name : {"a", "b"}) {
    add(name, Sharing::shared);
    config.servers.back().clocks.idle_stop = 1ms;
    config.servers.back().max_calls = 1;
  }
  const auto one = connect_client();
  const std::uint64_t number = subscribe(one);
  const auto state = [&](std::size_t server) { return gateway->pool().status().at(server).state; };
  call(one, "b__which");
  EXPECT_TRUE(wait_until([&] { return state(1) == pool::UpstreamState::idle; }));
  EXPECT_EQ(state(0), pool::UpstreamState::ready);
  EXPECT_EQ(call(one, "a__touch"), "touched") << "the subscription does not count as a call";
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 1; }));
  ASSERT_TRUE(loop.block_on(one->client->unsubscribe(number)));
  EXPECT_TRUE(wait_until([&] { return state(0) == pool::UpstreamState::idle; }));
}

TEST_F(GatewayTest, SubscriptionsEndWithTheirSession) {
  add("a", Sharing::per_session);
  const auto one = connect_client();
  subscribe(one);
  disconnect(one);
  clients.clear();
  EXPECT_TRUE(wait_until([&] {
    const auto status = gateway->pool().status();
    return status.size() == 1 && status.front().key.empty();
  })) << "its upstream ends too";
}

// A legacy server that has a resource and does not declare subscriptions, but supports them if `subscribes`.
class UndeclaredSubscriptionsServer : public std::enable_shared_from_this<UndeclaredSubscriptionsServer> {
 public:
  explicit UndeclaredSubscriptionsServer(bool subscribes) : subscribes_(subscribes) {}
  bool subscribed = false;

  Connector connector() {
    return [self = shared_from_this()](Loop& on, StreamConnectOptions) { return open(self, &on); };
  }
  static Task<void> update(std::shared_ptr<UndeclaredSubscriptionsServer> self) {
    const Result<void> sent =
        co_await self->peer_->notify("notifications/resources/updated", raw(R"({"uri":"memo://one"})"));
    EXPECT_TRUE(sent);
  }

 private:
  static Task<ConnectResult> open(std::shared_ptr<UndeclaredSubscriptionsServer> self, Loop* on) {
    auto [near_end, far_end] = make_channel(*on, *on);
    auto methods = std::make_shared<Methods>();
    methods->fallback(
        [weak = self->weak_from_this()](Request request) { return serve(weak.lock(), std::move(request)); });
    self->peer_ = Peer::start(far_end, methods, PeerOptions());
    co_return near_end;
  }
  static Task<Answer> serve(std::shared_ptr<UndeclaredSubscriptionsServer> self, Request request) {
    const std::string method(request.method());
    if (method == "initialize") {
      co_return raw(R"({"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":false}},)"
                    R"("serverInfo":{"name":"u","version":"1"}})");
    }
    if (method == "resources/list") co_return raw(R"({"resources":[{"name":"one","uri":"memo://one"}]})");
    self->subscribed = self->subscribes_ && method == "resources/subscribe";
    if (self->subscribed) co_return raw("{}");
    co_return Error::rpc(rpc::kMethodNotFound, "Method not found");
  }

  bool subscribes_;
  std::shared_ptr<Peer> peer_;
};

TEST_F(GatewayTest, SubscriptionIsForwardedToServerThatDoesNotDeclareIt) {
  const auto server = std::make_shared<UndeclaredSubscriptionsServer>(true);
  add("a", Sharing::shared);
  config.connectors["a"] = server->connector();
  const auto one = connect_client();
  subscribe(one);
  EXPECT_TRUE(server->subscribed);
  loop.block_on(UndeclaredSubscriptionsServer::update(server));
  EXPECT_TRUE(wait_until([&] { return one->count(kUpdated) == 1; }));
}

TEST_F(GatewayTest, SubscriptionFailsWithServersErrorWhenServerHasNoSubscriptions) {
  const auto server = std::make_shared<UndeclaredSubscriptionsServer>(false);
  add("a", Sharing::shared);
  config.connectors["a"] = server->connector();
  const auto one = connect_client();
  const Result<std::uint64_t> number = loop.block_on(one->client->subscribe(kMemo));
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().detail().rpc_code, rpc::kMethodNotFound);
}

TEST_F(GatewayTest, SubscriptionToUnknownResourceFails) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  const auto one = connect_client();
  const Result<std::uint64_t> number = loop.block_on(one->client->subscribe("no:such"));
  ASSERT_FALSE(number);
  EXPECT_NE(number.error().message().find("no server has `no:such`"), std::string::npos)
      << number.error().message();
}

}  // namespace
}  // namespace fairlead::gateway
