// SubscriptionQuota: limits the subscriptions of one client over all its connections, and the subscriptions
// of all clients together.
#include "mcp/subscription_quota.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

class SubscriptionQuotaTest : public ServerTest {
 public:
  std::shared_ptr<transport::Application> application;
  std::vector<std::shared_ptr<Peer>> peers;

  void SetUp() override {
    ServerTest::SetUp();
    ResourceSpec fixed;
    fixed.uri = "test://a";
    fixed.name = "a";
    ASSERT_TRUE(server.add_resource(fixed, read_city));
    HttpApplicationOptions options;
    options.max_subscriptions = 3;
    options.max_client_subscriptions = 2;
    application = http_application(server, options);
  }
  void TearDown() override {
    for (const auto& connected : peers) connected->close();
    ServerTest::TearDown();
  }

  static Task<Answer> request(std::shared_ptr<Peer> client, std::string method, json::Raw params) {
    Answer answer = co_await client->call(method, std::move(params));
    co_return answer;
  }
  std::string call(const std::shared_ptr<Peer>& client, const std::string& method,
                   const std::string& params) {
    const Answer answer = loop.block_on(request(client, method, test::raw(params)));
    return answer ? std::string(answer->text()) : answer.error().message();
  }
  static PrincipalPtr user(const std::string& name) {
    auto principal = std::make_shared<Principal>();
    principal->issuer = "test";
    principal->subject = principal->user = name;
    return principal;
  }
  std::shared_ptr<Peer> connect(PrincipalPtr principal) {
    auto [near_end, far_end] = make_channel(loop, loop);
    application->serve(near_end, std::move(principal));
    peers.push_back(Peer::start(far_end));
    call(peers.back(), "initialize", R"({"protocolVersion":"2025-11-25","capabilities":{}})");
    return peers.back();
  }
  std::string subscribe(const std::shared_ptr<Peer>& client, const std::string& uri) {
    return call(client, "resources/subscribe", R"({"uri":"test://)" + uri + R"("})");
  }
};

const std::string kClientLimit =
    "Subscription limit reached: this client is over max_client_subscriptions (2)";
const std::string kTotalLimit =
    "Subscription limit reached: all clients together are over max_subscriptions (3)";

TEST_F(SubscriptionQuotaTest, PrincipalOverClientLimitIsRejectedOnEveryConnection) {
  const auto first = connect(user("ann"));
  const auto second = connect(user("ann"));
  EXPECT_EQ(subscribe(first, "a"), "{}");
  EXPECT_EQ(subscribe(second, "b"), "{}");
  EXPECT_EQ(subscribe(first, "c"), kClientLimit);
  EXPECT_EQ(subscribe(second, "c"), kClientLimit);
  EXPECT_EQ(subscribe(first, "a"), "{}") << "already subscribed";
  EXPECT_EQ(call(first, "resources/unsubscribe", R"({"uri":"test://a"})"), "{}");
  EXPECT_EQ(subscribe(second, "c"), "{}");
}

TEST_F(SubscriptionQuotaTest, OtherClientsMaySubscribeUntilTotalLimitIsReached) {
  const auto ann = connect(user("ann"));
  const auto bob = connect(user("bob"));
  EXPECT_EQ(subscribe(ann, "a"), "{}");
  EXPECT_EQ(subscribe(ann, "b"), "{}");
  EXPECT_EQ(subscribe(bob, "a"), "{}");
  EXPECT_EQ(subscribe(bob, "b"), kTotalLimit);
}

TEST_F(SubscriptionQuotaTest, AnonymousClientsAreCountedByAddress) {
  const auto first = connect(Principal::anonymous("10.0.0.1:1001"));
  const auto second = connect(Principal::anonymous("10.0.0.1:1002"));
  const auto other = connect(Principal::anonymous("10.0.0.2:1001"));
  EXPECT_EQ(subscribe(first, "a"), "{}");
  EXPECT_EQ(subscribe(second, "a"), "{}");
  EXPECT_EQ(subscribe(second, "b"), kClientLimit);
  EXPECT_EQ(subscribe(other, "a"), "{}");
}

TEST_F(SubscriptionQuotaTest, ListenCountsEachOfItsResources) {
  const auto ann = connect(user("ann"));
  const auto listen = [&](const std::string& filter) {
    return call(ann, "subscriptions/listen", R"({"notifications":)" + filter + "," + kEnvelope + "}");
  };
  EXPECT_EQ(listen(R"({"resourceSubscriptions":["test://a","test://b","test://c"]})"), kClientLimit);
  EXPECT_EQ(subscribe(ann, "a"), "{}");
  EXPECT_EQ(listen(R"({"resourceSubscriptions":["test://a","test://b"]})"), kClientLimit);
  EXPECT_EQ(subscribe(ann, "b"), "{}");
  EXPECT_EQ(listen(R"({"toolsListChanged":true})"), kClientLimit);
}

TEST_F(SubscriptionQuotaTest, EndedConnectionReleasesItsSubscriptions) {
  const auto first = connect(user("ann"));
  EXPECT_EQ(subscribe(first, "a"), "{}");
  EXPECT_EQ(subscribe(first, "b"), "{}");
  const auto second = connect(user("ann"));
  EXPECT_EQ(subscribe(second, "a"), kClientLimit);
  first->close();
  std::string answer = kClientLimit;
  for (int i = 0; i < 1'000 && answer == kClientLimit; ++i) answer = subscribe(second, "a");
  EXPECT_EQ(answer, "{}");
}

}  // namespace
}  // namespace fairlead::mcp
