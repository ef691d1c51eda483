// Modern requests that do not share a connection: each has its own ClientLink, as over HTTP.
#include "mcp/server_modern.hpp"

#include <thread>
#include <vector>

#include "mcp/harness.hpp"
#include "mcp/recording_link.hpp"

namespace fairlead::mcp {
namespace {

class ModernTest : public ServerTest {
 public:
  std::shared_ptr<SubscriptionRegistry> subscriptions =
      std::make_shared<SubscriptionRegistry>(2, std::make_shared<SubscriptionQuota>(SubscriptionLimits()));
  std::vector<std::string> answers;

  static Task<void> run(ModernTest& test, Request request, std::shared_ptr<ClientLink> link) {
    auto modern = std::make_shared<const ModernServer>(test.server.state(), test.subscriptions, Log());
    const Answer answer = co_await serve_modern(modern, request, CallFacts::of(request.message()), link);
    test.answers.push_back(answer ? std::string(answer->text()) : answer.error().message());
  }
  void serve_listen(const std::string& id, const std::shared_ptr<ClientLink>& link, std::stop_token stop) {
    const std::string text = R"({"jsonrpc":"2.0","id":)" + id +
                             R"(,"method":"subscriptions/listen","params":{"notifications":)"
                             R"({"toolsListChanged":true},)" +
                             kEnvelope + "}}";
    loop.spawn(
        run(*this, Request(nullptr, rpc::Message::parse(Bytes::copy_of(text)), std::move(stop)), link));
    turn();
  }
  void turn() {
    bool done = false;
    loop.post([&] { done = true; });
    loop.run_until([&] { return done; });
  }
};

TEST_F(ModernTest, TwoClientsMayListenUnderTheSameId) {
  const auto first = std::make_shared<RecordingLink>(loop);
  const auto second = std::make_shared<RecordingLink>(loop);
  std::stop_source gone;
  std::stop_source stays;
  serve_listen("7", first, gone.get_token());
  serve_listen("7", second, stays.get_token());
  EXPECT_EQ(subscriptions->open_count(), 2u);
  gone.request_stop();
  turn();
  EXPECT_EQ(subscriptions->open_count(), 1u);
  server.remove_tool("half");
  turn();
  EXPECT_EQ(first->sent.size(), 1u);  // its acknowledgement
  ASSERT_EQ(second->sent.size(), 2u);
  EXPECT_EQ(second->sent.back(),
            "notifications/tools/list_changed "
            R"({"_meta":{"io.modelcontextprotocol/subscriptionId":7}})");
  stays.request_stop();
  turn();
  EXPECT_EQ(answers.size(), 2u);
}

TEST_F(ModernTest, ListenOverMaxListensIsRejected) {
  const auto link = std::make_shared<RecordingLink>(loop);
  std::stop_source stop;
  for (const char* id : {"1", "2", "3"}) serve_listen(id, link, stop.get_token());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.front(), "Subscription limit reached: this connection is over max_listens (2)");
  subscriptions->end_all();
  turn();
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(subscriptions->open_count(), 0u);
}

// The loop does not run when the other thread releases the subscription.
TEST_F(ModernTest, LinkIsReleasedOnItsLoopWhenAnotherThreadReleasesTheSubscription) {
  auto link = std::make_shared<RecordingLink>(loop);
  const std::weak_ptr<RecordingLink> released = link;
  auto subscribed = std::make_shared<Subscription>(std::move(link), "7", Subscription::Filter(), Log());
  std::thread([last = std::move(subscribed)]() mutable { last.reset(); }).join();
  EXPECT_FALSE(released.expired());
  turn();
  EXPECT_TRUE(released.expired());
}

// The loop runs only when the test calls turn(), as if it were busy otherwise.
class BusyLoopTest : public ModernTest {
 public:
  std::shared_ptr<RecordingLink> link = std::make_shared<RecordingLink>(loop);
  std::shared_ptr<Subscription> subscribed;
  std::vector<std::string> logged;

  static Task<void> acknowledge(std::shared_ptr<Subscription> subscription) {
    co_await subscription->acknowledge(std::stop_token());
  }
  void SetUp() override {
    Subscription::Filter filter;
    filter.tools = true;
    filter.uris = {"x:1"};
    filter.task_ids = {"t"};
    Log log(LogLevel::debug, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); });
    subscribed = std::make_shared<Subscription>(link, "7", std::move(filter), std::move(log));
    loop.spawn(acknowledge(subscribed));
    turn();
    ASSERT_EQ(link->sent.size(), 1u);
  }
};

TEST_F(BusyLoopTest, ClientIsNotifiedOnceOfRepeatedChangesWithinOneTurn) {
  for (int i = 0; i < 1'000; ++i) {
    subscribed->on_list_changed(ListKind::tools);
    subscribed->on_resource_updated("x:1");
  }
  turn();
  ASSERT_EQ(link->sent.size(), 3u);
  EXPECT_TRUE(link->sent[1].starts_with("notifications/tools/list_changed"));
  EXPECT_TRUE(link->sent[2].starts_with("notifications/resources/updated"));
  // The client is notified again of further changes.
  subscribed->on_list_changed(ListKind::tools);
  subscribed->on_resource_updated("x:1");
  turn();
  EXPECT_EQ(link->sent.size(), 5u);
}

TEST_F(BusyLoopTest, PendingUpdatesAreBounded) {
  for (int i = 0; i < 10'000; ++i)
    subscribed->post_resource_updated("x:1/" + std::to_string(i) + std::string(1'000, 'y'));
  EXPECT_GT(link->posted_bytes().used_bytes(), 900u << 10);
  EXPECT_LE(link->posted_bytes().used_bytes(), 1u << 20);
  turn();
  EXPECT_EQ(link->posted_bytes().used_bytes(), 0u);
  EXPECT_GT(link->sent.size(), 100u);
  EXPECT_LT(link->sent.size(), 1'000u);
}

TEST_F(BusyLoopTest, ChangesOverMaxBacklogBytesAreDroppedAndLogged) {
  const std::string large(1u << 20, 'y');
  subscribed->post_resource_updated("x:1/" + large);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("notification not sent"), std::string::npos) << logged[0].substr(0, 500);
  EXPECT_NE(logged[0].find("max_backlog_bytes"), std::string::npos);
  subscribed->on_task_changed("t", *json::Raw::parse(R"({"taskId":"t","statusMessage":")" + large + R"("})"));
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged[1].find("notifications/tasks"), std::string::npos) << logged[1];
  EXPECT_NE(logged[1].find("max_backlog_bytes"), std::string::npos) << logged[1];
  turn();
  EXPECT_EQ(link->sent.size(), 1u);  // the acknowledgement
}

// Subscribes to resources with 4 MB of URIs, whose acknowledgement is written in several slices.
class LongAcknowledgementTest : public ModernTest {
 public:
  std::shared_ptr<RecordingLink> link = std::make_shared<RecordingLink>(loop);
  std::stop_source stop;
  bool ended = false;

  static std::set<std::string> many_uris() {
    std::set<std::string> uris;
    for (int i = 0; i < 4000; ++i) uris.insert("x:" + std::to_string(i) + std::string(1000, 'y'));
    return uris;
  }
  std::shared_ptr<Subscription> subscription() {
    Subscription::Filter filter;
    filter.uris = many_uris();
    return std::make_shared<Subscription>(link, "7", std::move(filter), Log());
  }
  static Task<void> acknowledge(LongAcknowledgementTest& test, std::shared_ptr<Subscription> subscription) {
    co_await subscription->acknowledge(test.stop.get_token());
    test.ended = true;
  }
};

TEST_F(LongAcknowledgementTest, LoopServesOthersMeanwhileAndNoNotificationPrecedesIt) {
  const std::shared_ptr<Subscription> subscribed = subscription();
  loop.spawn(acknowledge(*this, subscribed));
  subscribed->post_resource_updated("x:1");
  turn();
  EXPECT_FALSE(ended);
  EXPECT_TRUE(link->sent.empty());
  loop.run_until([&] { return ended; });
  subscribed->post_resource_updated("x:2");
  turn();
  ASSERT_EQ(link->sent.size(), 2u);
  std::string expected =
      R"(notifications/subscriptions/acknowledged {"notifications":{"resourceSubscriptions":[)";
  for (const std::string& uri : many_uris()) expected += '"' + uri + "\",";
  expected.back() = ']';
  EXPECT_EQ(link->sent.front(), expected + R"(},"_meta":{"io.modelcontextprotocol/subscriptionId":7}})");
  EXPECT_NE(link->sent.back().find(R"("uri":"x:2")"), std::string::npos);
}

TEST_F(LongAcknowledgementTest, NothingIsSentWhenTheListenIsCancelledMeanwhile) {
  loop.spawn(acknowledge(*this, subscription()));
  turn();
  ASSERT_FALSE(ended);
  stop.request_stop();
  loop.run_until([&] { return ended; });
  EXPECT_TRUE(link->sent.empty());
}

// Models a subscriptions/listen request with a long filter: it is accepted before the server drains, but
// registered afterwards, because reading the filter takes several slices.
TEST(SubscriptionRegistryTest, SubscriptionRegisteredAfterEndAllEnds) {
  Loop loop;
  auto all =
      std::make_shared<SubscriptionRegistry>(std::make_shared<SubscriptionQuota>(SubscriptionLimits()));
  all->end_all();
  auto late = std::make_shared<Subscription>(std::make_shared<RecordingLink>(loop), "1",
                                             Subscription::Filter(), Log());
  const SubscriptionRegistry::Registration registration(all, late);
  loop.run_until([&] { return late->ended().is_set(); });
}

}  // namespace
}  // namespace fairlead::mcp
