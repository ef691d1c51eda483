// Modern requests without a connection: each with a link of its own, as HTTP serves them.
#include "mcp/server_modern.hpp"

#include <thread>
#include <vector>

#include "mcp/harness.hpp"
#include "mcp/recording_link.hpp"

namespace fairlead::mcp {
namespace {

class ModernTest : public ServerTest {
 public:
  std::shared_ptr<Subscriptions> subscriptions =
      std::make_shared<Subscriptions>(2, std::make_shared<SubscriptionShares>(SubscriptionLimits()));
  std::vector<std::string> answers;

  static Task<void> run(ModernTest& test, Request request, std::shared_ptr<ClientLink> link) {
    auto modern = std::make_shared<const ModernServer>(test.server.state(), test.subscriptions, Log());
    Task<Answer> serving = serve_modern(modern, request, CallFacts::of(request.message()), link);
    const Answer answer = co_await serving;
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
  EXPECT_EQ(subscriptions->size(), 2u);
  gone.request_stop();
  turn();
  EXPECT_EQ(subscriptions->size(), 1u);
  server.remove_tool("half");
  turn();
  EXPECT_EQ(first->heard.size(), 1u);  // its acknowledgement
  ASSERT_EQ(second->heard.size(), 2u);
  EXPECT_EQ(second->heard.back(),
            "notifications/tools/list_changed "
            R"({"_meta":{"io.modelcontextprotocol/subscriptionId":7}})");
  stays.request_stop();
  turn();
  EXPECT_EQ(answers.size(), 2u);
}

TEST_F(ModernTest, OneSubscriptionTooManyIsRefused) {
  const auto link = std::make_shared<RecordingLink>(loop);
  std::stop_source stop;
  for (const char* id : {"1", "2", "3"}) serve_listen(id, link, stop.get_token());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.front(), "Subscription limit reached: this connection is over max_listens (2)");
  subscriptions->end_all();
  turn();
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(subscriptions->size(), 0u);
}

// Nobody runs the loop when the thread releases the subscription.
TEST_F(ModernTest, LinkIsReleasedOnItsLoopWhenAnotherThreadReleasesTheSubscription) {
  auto link = std::make_shared<RecordingLink>(loop);
  const std::weak_ptr<RecordingLink> released = link;
  auto subscribed = std::make_shared<Subscription>(std::move(link), "7", Subscription::Wanted(), Log());
  std::thread([last = std::move(subscribed)]() mutable { last.reset(); }).join();
  EXPECT_FALSE(released.expired());
  turn();
  EXPECT_TRUE(released.expired());
}

// The loop runs between two turns only, as one does that is busy.
class BusyLoopTest : public ModernTest {
 public:
  std::shared_ptr<RecordingLink> link = std::make_shared<RecordingLink>(loop);
  std::shared_ptr<Subscription> subscribed;
  std::vector<std::string> logged;

  static Task<void> acknowledge(std::shared_ptr<Subscription> subscription) {
    Task<void> acknowledging = subscription->acknowledge(std::stop_token());
    co_await acknowledging;
  }
  void SetUp() override {
    Subscription::Wanted wanted;
    wanted.tools = true;
    wanted.uris = {"x:1"};
    wanted.tasks = {"t"};
    Log log(LogLevel::debug, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); });
    subscribed = std::make_shared<Subscription>(link, "7", std::move(wanted), std::move(log));
    loop.spawn(acknowledge(subscribed));
    turn();
    ASSERT_EQ(link->heard.size(), 1u);
  }
};

TEST_F(BusyLoopTest, ChangesThatWaitForItAreToldOnce) {
  for (int i = 0; i < 1'000; ++i) {
    subscribed->list_changed(ListKind::tools);
    subscribed->resource_updated("x:1");
  }
  turn();
  ASSERT_EQ(link->heard.size(), 3u);
  EXPECT_TRUE(link->heard[1].starts_with("notifications/tools/list_changed"));
  EXPECT_TRUE(link->heard[2].starts_with("notifications/resources/updated"));
  // Further changes are told again.
  subscribed->list_changed(ListKind::tools);
  subscribed->resource_updated("x:1");
  turn();
  EXPECT_EQ(link->heard.size(), 5u);
}

TEST_F(BusyLoopTest, UpdatesThatWaitForItAreBounded) {
  for (int i = 0; i < 10'000; ++i)
    subscribed->part_updated("x:1/" + std::to_string(i) + std::string(1'000, 'y'));
  EXPECT_GT(link->posted().used(), 900u << 10);
  EXPECT_LE(link->posted().used(), 1u << 20);
  turn();
  EXPECT_EQ(link->posted().used(), 0u);
  EXPECT_GT(link->heard.size(), 100u);
  EXPECT_LT(link->heard.size(), 1'000u);
}

TEST_F(BusyLoopTest, ChangesOverMaxBacklogBytesAreDroppedWithALineInTheLog) {
  const std::string large(1u << 20, 'y');
  subscribed->part_updated("x:1/" + large);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("notification not sent"), std::string::npos) << logged[0].substr(0, 500);
  EXPECT_NE(logged[0].find("max_backlog_bytes"), std::string::npos);
  subscribed->task_changed("t", *json::Raw::parse(R"({"taskId":"t","statusMessage":")" + large + R"("})"));
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged[1].find("notifications/tasks"), std::string::npos) << logged[1];
  EXPECT_NE(logged[1].find("max_backlog_bytes"), std::string::npos) << logged[1];
  turn();
  EXPECT_EQ(link->heard.size(), 1u);  // the acknowledgement
}

// Subscribes to resources of 4 MB of URIs, which are acknowledged in several parts.
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
    Subscription::Wanted wanted;
    wanted.uris = many_uris();
    return std::make_shared<Subscription>(link, "7", std::move(wanted), Log());
  }
  static Task<void> acknowledge(LongAcknowledgementTest& test, std::shared_ptr<Subscription> subscription) {
    Task<void> acknowledging = subscription->acknowledge(test.stop.get_token());
    co_await acknowledging;
    test.ended = true;
  }
};

TEST_F(LongAcknowledgementTest, LoopServesOthersBeforeItIsSentAndNothingIsToldBefore) {
  const std::shared_ptr<Subscription> subscribed = subscription();
  loop.spawn(acknowledge(*this, subscribed));
  subscribed->part_updated("x:1");
  turn();
  EXPECT_FALSE(ended);
  EXPECT_TRUE(link->heard.empty());
  loop.run_until([&] { return ended; });
  subscribed->part_updated("x:2");
  turn();
  ASSERT_EQ(link->heard.size(), 2u);
  std::string expected =
      R"(notifications/subscriptions/acknowledged {"notifications":{"resourceSubscriptions":[)";
  for (const std::string& uri : many_uris()) expected += '"' + uri + "\",";
  expected.back() = ']';
  EXPECT_EQ(link->heard.front(), expected + R"(},"_meta":{"io.modelcontextprotocol/subscriptionId":7}})");
  EXPECT_NE(link->heard.back().find(R"("uri":"x:2")"), std::string::npos);
}

TEST_F(LongAcknowledgementTest, NothingIsSentWhenTheListenIsCancelledMeanwhile) {
  loop.spawn(acknowledge(*this, subscription()));
  turn();
  ASSERT_FALSE(ended);
  stop.request_stop();
  loop.run_until([&] { return ended; });
  EXPECT_TRUE(link->heard.empty());
}

// It was accepted before the server wound down, and is counted later: its filter was long.
TEST(SubscriptionsTest, SubscriptionThatComesAfterTheEndOfAllEnds) {
  Loop loop;
  auto all = std::make_shared<Subscriptions>(std::make_shared<SubscriptionShares>(SubscriptionLimits()));
  all->end_all();
  auto late = std::make_shared<Subscription>(std::make_shared<RecordingLink>(loop), "1",
                                             Subscription::Wanted(), Log());
  const Subscriptions::Place place(all, late);
  loop.run_until([&] { return late->ended().is_set(); });
}

}  // namespace
}  // namespace fairlead::mcp
