// Subscriptions of one client, on however many connections, and of all clients have a limit.
#include "mcp/subscription_shares.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

class SharesTest : public ServerTest {
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
    for (const auto& one : peers) one->close();
    ServerTest::TearDown();
  }

  static Task<Answer> request(std::shared_ptr<Peer> at, std::string method, json::Raw params) {
    Answer answer = co_await at->call(method, std::move(params));
    co_return answer;
  }
  std::string ask_at(const std::shared_ptr<Peer>& at, const std::string& method, const std::string& params) {
    const Answer answer = loop.block_on(request(at, method, test::raw(params)));
    return answer ? std::string(answer->text()) : answer.error().message();
  }
  static PrincipalPtr user(const std::string& name) {
    auto made = std::make_shared<Principal>();
    made->issuer = "test";
    made->subject = made->user = name;
    return made;
  }
  std::shared_ptr<Peer> connect(PrincipalPtr principal) {
    auto [near_end, far_end] = make_channel(loop, loop);
    application->serve(near_end, std::move(principal));
    peers.push_back(Peer::start(far_end));
    ask_at(peers.back(), "initialize", R"({"protocolVersion":"2025-11-25","capabilities":{}})");
    return peers.back();
  }
  std::string subscribe(const std::shared_ptr<Peer>& at, const std::string& uri) {
    return ask_at(at, "resources/subscribe", R"({"uri":"test://)" + uri + R"("})");
  }
};

const std::string kClientLimit =
    "Subscription limit reached: this client is over max_client_subscriptions (2)";
const std::string kTotalLimit =
    "Subscription limit reached: all clients together are over max_subscriptions (3)";

TEST_F(SharesTest, PrincipalOverItsShareIsRefusedOnEveryConnection) {
  const auto first = connect(user("ann"));
  const auto second = connect(user("ann"));
  EXPECT_EQ(subscribe(first, "a"), "{}");
  EXPECT_EQ(subscribe(second, "b"), "{}");
  EXPECT_EQ(subscribe(first, "c"), kClientLimit);
  EXPECT_EQ(subscribe(second, "c"), kClientLimit);
  EXPECT_EQ(subscribe(first, "a"), "{}") << "it is there already";
  EXPECT_EQ(ask_at(first, "resources/unsubscribe", R"({"uri":"test://a"})"), "{}");
  EXPECT_EQ(subscribe(second, "c"), "{}");
}

TEST_F(SharesTest, OtherClientsKeepTheirSharesUntilAllAreTaken) {
  const auto ann = connect(user("ann"));
  const auto bob = connect(user("bob"));
  EXPECT_EQ(subscribe(ann, "a"), "{}");
  EXPECT_EQ(subscribe(ann, "b"), "{}");
  EXPECT_EQ(subscribe(bob, "a"), "{}");
  EXPECT_EQ(subscribe(bob, "b"), kTotalLimit);
}

TEST_F(SharesTest, AnonymousClientsShareByAddress) {
  const auto first = connect(Principal::anonymous("10.0.0.1:1001"));
  const auto second = connect(Principal::anonymous("10.0.0.1:1002"));
  const auto other = connect(Principal::anonymous("10.0.0.2:1001"));
  EXPECT_EQ(subscribe(first, "a"), "{}");
  EXPECT_EQ(subscribe(second, "a"), "{}");
  EXPECT_EQ(subscribe(second, "b"), kClientLimit);
  EXPECT_EQ(subscribe(other, "a"), "{}");
}

TEST_F(SharesTest, ModernListensCountWithTheirResources) {
  const auto ann = connect(user("ann"));
  const auto listen = [&](const std::string& filter) {
    return ask_at(ann, "subscriptions/listen", R"({"notifications":)" + filter + "," + kEnvelope + "}");
  };
  EXPECT_EQ(listen(R"({"resourceSubscriptions":["test://a","test://b","test://c"]})"), kClientLimit);
  EXPECT_EQ(subscribe(ann, "a"), "{}");
  EXPECT_EQ(listen(R"({"resourceSubscriptions":["test://a","test://b"]})"), kClientLimit);
  EXPECT_EQ(subscribe(ann, "b"), "{}");
  EXPECT_EQ(listen(R"({"toolsListChanged":true})"), kClientLimit);
}

TEST_F(SharesTest, ConnectionThatEndsGivesItsShareBack) {
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
