// Subscriptions of a client to changes, and its result cache, which notifications of changes invalidate. The
// tests run in every revision.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

Task<Result<std::vector<ResourceContents>>> read_one(Context, std::string uri, Server::Variables) {
  co_return std::vector<ResourceContents>(1, ResourceContents{uri, "", "text", {}});
}

class ClientSubscriptionTest : public ServerTest, public ::testing::WithParamInterface<std::string> {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    for (const char* uri : {"test://a", "test://b"}) {
      ResourceSpec spec;
      spec.uri = uri;
      spec.name = uri;
      ASSERT_TRUE(server.add_resource(spec, read_one));
    }
    server.cache_hint({60'000, false});
    start();
    ClientOptions options;
    options.pinned_revision = revision_named(GetParam());
    options.handlers.on_notification = [this](std::string_view method, const json::Raw& params) {
      if (method != "notifications/subscriptions/acknowledged")
        notifications.push_back(std::string(method) + " " +
                                json::View(params)["uri"].as_string().value_or(""));
    };
    Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect_over(test_end, options));
    ASSERT_TRUE(connected) << connected.error().to_string();
    client = *connected;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    ServerTest::TearDown();
  }
  bool modern_era() const { return is_modern(client->revision()); }
  void wait_for(std::size_t count) {
    loop.run_until([&] { return notifications.size() >= count; });
  }
  std::uint64_t requests() const { return peer->stats().requests; }

  std::shared_ptr<Client> client;
  std::vector<std::string> notifications;
};

TEST_P(ClientSubscriptionTest, ClientIsNotifiedOfResourcesItSubscribedTo) {
  const auto first = loop.block_on(client->subscribe("test://a"));
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = loop.block_on(client->subscribe("test://b"));
  ASSERT_TRUE(second);
  server.notify_resource_updated("test://other");
  server.notify_resource_updated("test://a");
  server.notify_resource_updated("test://b");
  wait_for(2);
  ASSERT_TRUE(loop.block_on(client->unsubscribe(*first)));
  EXPECT_FALSE(loop.block_on(client->unsubscribe(*first)));
  ASSERT_TRUE(loop.block_on(client->tools()));  // the cancellation has arrived before this is answered
  server.notify_resource_updated("test://a");
  server.notify_resource_updated("test://b");
  wait_for(3);
  EXPECT_EQ(notifications, (std::vector<std::string>{"notifications/resources/updated test://a",
                                                     "notifications/resources/updated test://b",
                                                     "notifications/resources/updated test://b"}));
}

TEST_P(ClientSubscriptionTest, EndOfOneSubscriptionLeavesAnotherToTheSameResource) {
  const auto first = loop.block_on(client->subscribe("test://a"));
  const auto second = loop.block_on(client->subscribe("test://a"));
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(loop.block_on(client->unsubscribe(*first)));
  ASSERT_TRUE(loop.block_on(client->tools()));
  server.notify_resource_updated("test://a");
  wait_for(1);
  EXPECT_EQ(notifications.size(), 1u);
}

TEST_P(ClientSubscriptionTest, ClientIsNotifiedOfChangedLists) {
  SubscriptionFilter filter;
  filter.tools = true;
  ASSERT_TRUE(loop.block_on(client->subscribe(filter)));
  server.remove_tool("half");
  wait_for(1);
  EXPECT_EQ(notifications.front(), "notifications/tools/list_changed ");
}

TEST_P(ClientSubscriptionTest, SubscribeFailsWhenServerAcknowledgesNothing) {
  if (!modern_era()) GTEST_SKIP() << "the legacy era has no filter that a server could refuse";
  SubscriptionFilter filter;
  filter.prompts = true;  // the server has no prompts
  const auto refused = loop.block_on(client->subscribe(filter));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
  EXPECT_EQ(peer->requests_in_progress(), 0u);
}

TEST_P(ClientSubscriptionTest, SubscriptionsEndWithTheConnection) {
  ASSERT_TRUE(loop.block_on(client->subscribe("test://a")));
  loop.block_on(client->close());
  loop.run_until([&] { return peer->finished().is_set(); });
  EXPECT_FALSE(loop.block_on(client->subscribe("test://b")));
}

TEST_P(ClientSubscriptionTest, ListsAreRequestedOnceUntilTheyChange) {
  SubscriptionFilter filter;
  filter.tools = true;
  filter.uris = {"test://a"};
  ASSERT_TRUE(loop.block_on(client->subscribe(filter)));
  const std::uint64_t before = requests();
  for (int i = 0; i < 3; ++i) {
    const auto tools = loop.block_on(client->tools());
    ASSERT_TRUE(tools);
    EXPECT_EQ(tools->size(), 3u);
    ASSERT_TRUE(loop.block_on(client->read_resource("test://a")));
  }
  EXPECT_EQ(requests() - before, modern_era() ? 2u : 6u);
  server.remove_tool("half");
  server.notify_resource_updated("test://a");
  wait_for(2);
  const auto tools = loop.block_on(client->tools());
  ASSERT_TRUE(tools);
  EXPECT_EQ(tools->size(), 2u);
  ASSERT_TRUE(loop.block_on(client->read_resource("test://a")));
  EXPECT_EQ(requests() - before, modern_era() ? 4u : 8u);
}

INSTANTIATE_TEST_SUITE_P(Revisions, ClientSubscriptionTest,
                         ::testing::Values("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                           "2026-07-28"),
                         [](const auto& revision) {
                           std::string name = revision.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// ---- subscriptions that the server ends -----------------------------------------------------------------

// A server that ends the first subscriptions/listen request at once.
struct EndingServer {
  int listen_count = 0;
  Event never;
};
Task<Answer> listen_on_ending_server(std::shared_ptr<EndingServer> ending, Loop* loop, Request request) {
  ++ending->listen_count;
  const std::string meta =
      R"("_meta":{"io.modelcontextprotocol/subscriptionId":)" + std::string(request.id()) + "}";
  const json::Raw acknowledged = test::raw(
      R"({"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]},)" + meta + "}");
  EXPECT_TRUE(request.peer().post_notification("notifications/subscriptions/acknowledged", acknowledged));
  if (ending->listen_count > 1) {
    co_await ending->never.wait(*loop);
  }
  co_return test::raw(R"({"resultType":"complete",)" + meta + "}");
}

TEST(SubscriptionRenewalTest, SubscriptionIsRenewedAndReportsAllAsChangedWhenServerEndsIt) {
  Loop loop;
  auto ending = std::make_shared<EndingServer>();
  auto methods = std::make_shared<Methods>();
  methods->on("server/discover", [](const Request&) -> Answer {
    return test::raw(
        R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"ttlMs":0,"cacheScope":"private"})");
  });
  methods->fallback(
      [&](Request request) { return listen_on_ending_server(ending, &loop, std::move(request)); });
  auto [near_end, far_end] = make_channel(loop, loop);
  const std::shared_ptr<Peer> server = Peer::start(far_end, methods);
  std::vector<std::string> notifications;
  ClientOptions options;
  options.handlers.on_notification = [&](std::string_view method, const json::Raw& params) {
    if (method != "notifications/subscriptions/acknowledged")
      notifications.push_back(std::string(method) + " " + json::View(params)["uri"].as_string().value_or(""));
  };
  const Result<std::shared_ptr<Client>> client = loop.block_on(Client::connect_over(near_end, options));
  ASSERT_TRUE(client) << client.error().to_string();
  SubscriptionFilter filter;
  filter.tools = true;
  filter.uris = {"test://a"};
  const Result<std::uint64_t> id = loop.block_on((*client)->subscribe(filter));
  ASSERT_TRUE(id) << id.error().to_string();
  loop.run_until([&] { return notifications.size() == 2; });
  EXPECT_EQ(ending->listen_count, 2);
  EXPECT_EQ(notifications, (std::vector<std::string>{"notifications/tools/list_changed ",
                                                     "notifications/resources/updated test://a"}));
  EXPECT_TRUE(loop.block_on((*client)->unsubscribe(*id))) << "under the id that it had";
  ending->never.set();
  loop.block_on((*client)->close());
  loop.run_until([&] { return server->finished().is_set(); });
}

}  // namespace
}  // namespace fairlead::mcp
