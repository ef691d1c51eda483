// Resource updates reach those who subscribed, from the upstream that serves them, and nobody else. R12.4.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

struct Eras {
  mcp::Revision client;
  mcp::Revision server;
};
class Subscribing : public GatewayTest, public ::testing::WithParamInterface<Eras> {};

std::string name_of(const ::testing::TestParamInfo<Eras>& info) {
  const auto era = [](mcp::Revision revision) { return mcp::is_modern(revision) ? "modern" : "legacy"; };
  return std::string(era(info.param.client)) + "_client_" + era(info.param.server) + "_server";
}
INSTANTIATE_TEST_SUITE_P(eras, Subscribing,
                         ::testing::Values(Eras{mcp::kNewestLegacy, mcp::kNewestLegacy},
                                           Eras{mcp::kNewestLegacy, mcp::kNewest},
                                           Eras{mcp::kNewest, mcp::kNewestLegacy},
                                           Eras{mcp::kNewest, mcp::kNewest}),
                         name_of);

TEST_P(Subscribing, an_update_reaches_the_subscribers_and_nobody_else) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = enter(GetParam().client);
  const auto other = enter(GetParam().client);
  const auto third = enter(GetParam().client);
  subscribe(one);
  subscribe(other);
  instance("a", 0).server.resource_updated(kMemo);
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 1 && other->count(kUpdated) == 1; }));
  settle("a");
  EXPECT_EQ(one->count(kUpdated), 1) << "once, though there are two subscribers";
  EXPECT_EQ(third->count(kUpdated), 0);
}

TEST_P(Subscribing, it_ends_for_one_and_goes_on_for_the_other) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = enter(GetParam().client);
  const auto other = enter(GetParam().client);
  const std::uint64_t number = subscribe(one);
  subscribe(other);
  ASSERT_TRUE(loop.block_on(one->client->unlisten(number)));
  settle("a");
  call(other, "a__touch");
  EXPECT_TRUE(comes_true([&] { return other->count(kUpdated) == 1; }));
  settle("a");
  EXPECT_EQ(one->count(kUpdated), 0);
}

TEST_P(Subscribing, where_every_session_has_its_own_upstream_it_hears_of_that_one) {
  add("a", Sharing::per_session, GetParam().server);
  const auto one = enter(GetParam().client);
  const auto other = enter(GetParam().client);
  subscribe(one);
  subscribe(other);
  call(one, "a__touch");
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 1; }));
  settle("a");
  EXPECT_EQ(other->count(kUpdated), 0);
}

TEST_P(Subscribing, a_lost_server_is_subscribed_to_again_and_what_was_missed_is_told) {
  add("a", Sharing::shared, GetParam().server);
  const auto one = enter(GetParam().client);
  subscribe(one);
  instance("a", 0).connection->close();
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 1; })) << "nobody calls, and yet it comes back";
  ASSERT_EQ(servers["a"]->size(), 2u);
  instance("a", 1).server.resource_updated(kMemo);
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 2; }));
}

TEST_F(GatewayTest, subscribers_follow_when_a_server_is_no_longer_shared) {
  add("a", Sharing::automatic);
  const auto one = enter(mcp::kNewestLegacy, "", "someone");
  const auto other = enter(mcp::kNewestLegacy, "", "another");
  subscribe(one);
  subscribe(other);
  EXPECT_EQ(call(one, "a__ask"), "someone");
  EXPECT_NE(call(one, "a__which"), call(other, "a__which")) << "each has its own from here on";
  EXPECT_TRUE(comes_true([&] { return other->count(kUpdated) == 1; })) << "it may have missed something";
  settle("a");
  const auto before = one->count(kUpdated);
  call(one, "a__touch");
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == before + 1; }));
  settle("a");
  EXPECT_EQ(other->count(kUpdated), 1);
  call(other, "a__touch");
  EXPECT_TRUE(comes_true([&] { return other->count(kUpdated) == 2; }));
}

TEST_F(GatewayTest, a_server_is_kept_running_for_its_subscribers_and_no_longer) {
  for (const char* const name : {"a", "b"}) {
    add(name, Sharing::shared);
    config.servers.back().clocks.idle_stop = 1ms;
    config.servers.back().max_calls = 1;
  }
  const auto one = enter();
  const std::uint64_t number = subscribe(one);
  const auto state = [&](std::size_t server) { return gateway->pool().status().at(server).state; };
  call(one, "b__which");
  EXPECT_TRUE(comes_true([&] { return state(1) == pool::State::idle; }));
  EXPECT_EQ(state(0), pool::State::ready);
  EXPECT_EQ(call(one, "a__touch"), "touched") << "and it takes no call's place";
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 1; }));
  ASSERT_TRUE(loop.block_on(one->client->unlisten(number)));
  EXPECT_TRUE(comes_true([&] { return state(0) == pool::State::idle; }));
}

TEST_F(GatewayTest, a_session_that_ends_takes_its_subscriptions_along) {
  add("a", Sharing::per_session);
  const auto one = enter();
  subscribe(one);
  leave(one);
  clients.clear();
  EXPECT_TRUE(comes_true([&] {
    const auto status = gateway->pool().status();
    return status.size() == 1 && status.front().key.empty();
  })) << "its upstream too";
}

// A legacy server with a resource that declares no subscriptions, and has them, or not.
class Undeclared : public std::enable_shared_from_this<Undeclared> {
 public:
  explicit Undeclared(bool subscribes) : subscribes_(subscribes) {}
  bool subscribed = false;

  Connector connector() {
    return [self = shared_from_this()](Loop& on, ConnectOptions) { return open(self, &on); };
  }
  static Task<void> update(std::shared_ptr<Undeclared> self) {
    const Result<void> sent =
        co_await self->peer_->notify("notifications/resources/updated", raw(R"({"uri":"memo://one"})"));
    EXPECT_TRUE(sent);
  }

 private:
  static Task<ConnectResult> open(std::shared_ptr<Undeclared> self, Loop* on) {
    auto [near_end, far_end] = make_channel(*on, *on);
    auto methods = std::make_shared<Methods>();
    methods->otherwise(
        [weak = self->weak_from_this()](Request request) { return serve(weak.lock(), std::move(request)); });
    self->peer_ = Peer::start(far_end, methods, PeerOptions());
    co_return near_end;
  }
  static Task<Answer> serve(std::shared_ptr<Undeclared> self, Request request) {
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

TEST_F(GatewayTest, SubscriptionReachesServerThatDoesNotDeclareIt) {
  const auto server = std::make_shared<Undeclared>(true);
  add("a", Sharing::shared);
  config.connectors["a"] = server->connector();
  const auto one = enter();
  subscribe(one);
  EXPECT_TRUE(server->subscribed);
  loop.block_on(Undeclared::update(server));
  EXPECT_TRUE(comes_true([&] { return one->count(kUpdated) == 1; }));
}

TEST_F(GatewayTest, SubscriptionFailsWithTheServersErrorWhenItHasNoSubscriptions) {
  const auto server = std::make_shared<Undeclared>(false);
  add("a", Sharing::shared);
  config.connectors["a"] = server->connector();
  const auto one = enter();
  const Result<std::uint64_t> number = loop.block_on(one->client->subscribe(kMemo));
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().detail().rpc_code, rpc::kMethodNotFound);
}

TEST_F(GatewayTest, what_nobody_has_cannot_be_subscribed_to) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  const auto one = enter();
  const Result<std::uint64_t> number = loop.block_on(one->client->subscribe("no:such"));
  ASSERT_FALSE(number);
  EXPECT_NE(number.error().message().find("no server here has `no:such`"), std::string::npos)
      << number.error().message();
}

}  // namespace
}  // namespace fairlead::gateway
