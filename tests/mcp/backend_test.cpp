// An mcp::Server with a Backend, which serves the requests instead of registered handlers, as in the gateway.
#include "fairlead/mcp/backend.hpp"

#include <algorithm>
#include <latch>
#include <thread>

#include "fairlead/loop/event.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

class RecordingBackend final : public Backend {
 public:
  std::vector<std::string> events;
  std::string session;
  std::function<void(const std::string&)> updated;
  ContextSource context_source;
  Loop* loop = nullptr;
  std::optional<Event> subscribe_allowed;  // if present, subscribe() waits for it

  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "resources" || capability == "logging";
  }
  Task<Answer> serve(BackendRequest request) override {
    events.push_back("serve " + std::string(request.message.method()));
    session = request.context.session();
    request.context.notify("notifications/progress",
                           *json::Raw::parse(R"({"progressToken":7,"progress":1})"));
    co_return request.message.params();
  }
  HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  Task<Result<std::shared_ptr<void>>> subscribe(BackendSubscription subscription) override {
    if (subscription.uri == "no:such") co_return rpc::invalid_params("there is no such thing");
    if (subscribe_allowed) {
      static_cast<void>(co_await subscribe_allowed->wait(*loop, Clock::duration::max()));
    }
    events.push_back("subscribed " + subscription.uri);
    updated = subscription.on_updated;
    const std::string uri = subscription.uri;
    co_return std::shared_ptr<void>(nullptr, [this, uri](void*) { events.push_back("unsubscribed " + uri); });
  }
  void on_session_began(std::string_view began, ContextSource source) override {
    session = began;
    context_source = std::move(source);
  }
  void on_log_level_set(std::string_view, LoggingLevel level) override {
    events.push_back("level " + std::string(to_string(level)));
  }
  void on_session_ended(std::string_view ended) override { events.push_back("ended " + std::string(ended)); }
};

class BackendTest : public ServerTest {
 public:
  std::shared_ptr<RecordingBackend> backend = std::make_shared<RecordingBackend>();

  void SetUp() override {
    ServerTest::SetUp();
    server.backend(backend);
    start();
    greeting = round_trip(
        R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
  void subscribe_to(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      round_trip(R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:)" +
                 std::to_string(i) + "\"}}");
  }
  std::string greeting;
};

TEST_F(BackendTest, OnlyCapabilitiesOfBackendAreAdvertised) {
  EXPECT_NE(greeting.find(R"("tools":{)"), std::string::npos) << greeting;
  EXPECT_EQ(greeting.find("prompts"), std::string::npos) << greeting;
  EXPECT_NE(round_trip(R"({"jsonrpc":"2.0","id":2,"method":"prompts/list"})").find("-32601"),
            std::string::npos);
}

TEST_F(BackendTest, RequestReachesBackendUnchangedAndItsAnswerReachesClientUnchanged) {
  send(
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"remote", "arguments":{"n":1.50e1}}})");
  EXPECT_EQ(
      receive(),
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}})");
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","id":2,"result":{"name":"remote", "arguments":{"n":1.50e1}}})");
  EXPECT_FALSE(backend->session.empty());
}

const std::string kSubscribe =
    R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}})";
const std::string kUnsubscribe =
    R"({"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:b"}})";

TEST_F(BackendTest, SubscriptionLastsFromResponseUntilUnsubscribe) {
  round_trip(kSubscribe);
  round_trip(kSubscribe);
  EXPECT_EQ(backend->events, std::vector<std::string>({"subscribed a:b"}));
  backend->updated("a:b/inside");
  EXPECT_EQ(receive(),
            R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b/inside"}})");
  round_trip(kUnsubscribe);
  EXPECT_EQ(backend->events.back(), "unsubscribed a:b");
}

TEST_F(BackendTest, SubscribeIsAnsweredWhenBackendHasSubscribed) {
  backend->loop = &loop;
  backend->subscribe_allowed.emplace();
  send(kSubscribe);
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"),
            R"({"jsonrpc":"2.0","id":9,"result":{}})");
  backend->subscribe_allowed->set();
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","id":2,"result":{}})");
}

TEST_F(BackendTest, SubscriptionIsReleasedWhenClientUnsubscribesBeforeBackendHasSubscribed) {
  backend->loop = &loop;
  backend->subscribe_allowed.emplace();
  send(kSubscribe);
  round_trip(kUnsubscribe);
  backend->subscribe_allowed->set();
  receive();
  loop.run_until([&] { return backend->events.size() == 2; });
  EXPECT_EQ(backend->events, std::vector<std::string>({"subscribed a:b", "unsubscribed a:b"}));
}

const std::string kCancel =
    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})";
const std::string kSubscribeAgain =
    R"({"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:b"}})";

TEST_F(BackendTest, SubscriptionIsReleasedWhenClientCancelsBeforeBackendHasSubscribed) {
  backend->loop = &loop;
  backend->subscribe_allowed.emplace();
  send(kSubscribe);
  send(kCancel);
  round_trip(R"({"jsonrpc":"2.0","id":9,"method":"ping"})");
  backend->subscribe_allowed->set();
  loop.run_until([&] { return backend->events.size() == 2; });
  EXPECT_EQ(backend->events, std::vector<std::string>({"subscribed a:b", "unsubscribed a:b"}));
  round_trip(kSubscribeAgain);
  EXPECT_EQ(backend->events.back(), "subscribed a:b");
}

TEST_F(BackendTest, SecondSubscribeSurvivesCancellationOfTheFirst) {
  backend->loop = &loop;
  backend->subscribe_allowed.emplace();
  send(kSubscribe);
  send(kCancel);
  send(kSubscribeAgain);
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"),
            R"({"jsonrpc":"2.0","id":9,"result":{}})");
  backend->subscribe_allowed->set();
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","id":4,"result":{}})");
  loop.run_until([&] { return backend->events.size() == 3; });
  EXPECT_EQ(std::ranges::count(backend->events, "unsubscribed a:b"), 1);
}

TEST_F(BackendTest, SubscribeFailsWhenBackendRejectsTheUri) {
  const std::string no_such =
      R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"no:such"}})";
  EXPECT_NE(round_trip(no_such).find("there is no such thing"), std::string::npos);
  EXPECT_NE(round_trip(no_such).find("there is no such thing"), std::string::npos);
}

TEST_F(BackendTest, ListenAcknowledgesOnlyUrisThatBackendAccepts) {
  send(
      R"({"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b","no:such"]},)" +
      kEnvelope + "}}");
  const std::string acknowledged = receive();
  EXPECT_NE(acknowledged.find(R"("resourceSubscriptions":["a:b"])"), std::string::npos) << acknowledged;
  backend->updated("a:b");
  EXPECT_NE(receive().find(R"("uri":"a:b")"), std::string::npos);
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  loop.run_until([&] { return backend->events.size() == 2; });
  EXPECT_EQ(backend->events.back(), "unsubscribed a:b");
}

// Returns a listen request, with id "l", for `count` resources, whose URIs end with `suffix`.
std::string listen_to(std::size_t count, const std::string& suffix = "") {
  std::string uris;
  for (std::size_t i = 0; i < count; ++i) uris += ",\"a:" + std::to_string(i) + suffix + '"';
  return R"({"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{)"
         R"("resourceSubscriptions":[)" +
         uris.substr(1) + "]}," + kEnvelope + "}}";
}

TEST_F(BackendTest, ListenCancelledBeforeItsAcknowledgementReleasesAllSubscriptions) {
  constexpr std::size_t kMany = 3000;
  send(listen_to(kMany, std::string(1000, 'x')));
  loop.run_until([&] { return backend->events.size() == kMany; });
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"),
            R"({"jsonrpc":"2.0","id":9,"result":{}})");
  loop.run_until([&] { return backend->events.size() == 2 * kMany; });
  EXPECT_EQ(
      std::ranges::count_if(backend->events, [](const auto& line) { return line.starts_with("unsub"); }),
      kMany);
}

TEST_F(BackendTest, LoopServesOthersWhileManySubscriptionsEnd) {
  constexpr std::size_t kMany = 5000;
  send(listen_to(kMany));
  receive();
  ASSERT_EQ(backend->events.size(), kMany);
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  loop.run_until([&] { return backend->events.size() > kMany; });
  EXPECT_LT(backend->events.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->events.size() == 2 * kMany; });
}

TEST_F(BackendTest, LoopServesOthersWhileManySubscriptionsOfSessionEnd) {
  constexpr std::size_t kMany = 3000;
  subscribe_to(kMany);
  ASSERT_EQ(backend->events.size(), kMany);
  peer.reset();
  test_end->close();
  loop.run_until([&] { return backend->events.size() > kMany; });
  EXPECT_LT(backend->events.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->events.size() > 2 * kMany; });
  EXPECT_EQ(backend->events.back(), "ended " + backend->session) << "after all of its subscriptions";
}

TEST_F(BackendTest, LoopServesOthersWhileSubscriptionsEndAtSecondInitialize) {
  constexpr std::size_t kMany = 3000;
  subscribe_to(kMany);
  ASSERT_EQ(backend->events.size(), kMany);
  initialize("2025-11-25");
  EXPECT_LT(backend->events.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->events.size() == 2 * kMany; });
  round_trip(kSubscribe);
  EXPECT_EQ(backend->events.back(), "subscribed a:b");
}

// A thread that calls notify_tools_changed() owns the last reference to the session. The loop does not run
// when that thread releases the reference.
TEST_F(BackendTest, SessionEndsOnItsLoopWhenAnotherThreadReleasesItLast) {
  round_trip(kSubscribe);
  std::latch referenced(1);
  std::latch ended(1);
  std::thread notifier([&] {
    server.notify_tools_changed([&](std::string_view, const Principal&) {
      referenced.count_down();
      ended.wait();
      return false;
    });
  });
  referenced.wait();
  const std::weak_ptr<Peer> weak_peer = peer;
  peer.reset();
  test_end->close();
  loop.run_until([&] { return weak_peer.expired(); });
  EXPECT_EQ(backend->events.size(), 1u);
  ended.count_down();
  notifier.join();
  EXPECT_EQ(backend->events.size(), 1u) << "of another thread: " << backend->events.back();
  loop.run_until([&] { return backend->events.size() == 3; });
  EXPECT_EQ(backend->events[1], "unsubscribed a:b");
  EXPECT_EQ(backend->events[2], "ended " + backend->session);
}

TEST_F(BackendTest, BackendIsNotifiedOfTheLogLevelOfClient) {
  round_trip(R"({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}})");
  EXPECT_EQ(backend->events, std::vector<std::string>({"level debug"}));
  EXPECT_EQ(backend->context_source()->log_level(), LoggingLevel::debug);
}

TEST_F(BackendTest, LegacyClientReceivesNotificationUnrelatedToRequests) {
  const std::optional<Context> context = backend->context_source();
  ASSERT_TRUE(context);
  EXPECT_EQ(context->session(), backend->session);
  context->notify("notifications/message", *json::Raw::parse(R"({"level":"info","data":1})"));
  EXPECT_EQ(receive(),
            R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}})");
}

TEST_F(BackendTest, ListChangeIsSentOnlyToClientsThatThePredicateSelects) {
  server.notify_tools_changed([](std::string_view, const Principal&) { return false; });
  server.notify_tools_changed(
      [this](std::string_view session, const Principal&) { return session == backend->session; });
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"),
            R"({"jsonrpc":"2.0","id":9,"result":{}})");
}

TEST_F(BackendTest, BackendIsNotifiedWhenSessionEnds) {
  round_trip(R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}})");
  TearDown();
  peer.reset();
  test_end.reset();
  loop.run_until([&] { return backend->events.size() == 3; });
  EXPECT_EQ(backend->events[1], "unsubscribed a:b");
  EXPECT_EQ(backend->events[2].substr(0, 6), "ended ");
  EXPECT_FALSE(backend->context_source());
}

}  // namespace
}  // namespace fairlead::mcp
