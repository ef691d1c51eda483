// A backend answers in the place of what is registered: a gateway stands on this.
#include "fairlead/mcp/backend.hpp"

#include <algorithm>
#include <latch>
#include <thread>

#include "fairlead/loop/event.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

class Recording final : public Backend {
 public:
  std::vector<std::string> seen;
  std::string session;
  std::function<void(const std::string&)> updated;
  Reach reach;
  Loop* loop = nullptr;
  std::optional<Event> held_back;  // subscriptions wait for it

  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "resources" || capability == "logging";
  }
  Task<Answer> serve(BackendRequest request) override {
    seen.push_back("serve " + std::string(request.message.method()));
    session = request.context.session();
    request.context.notify("notifications/progress",
                           *json::Raw::parse(R"({"progressToken":7,"progress":1})"));
    co_return request.message.params();
  }
  HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  Task<Result<std::shared_ptr<void>>> subscribe(BackendSubscription subscription) override {
    if (subscription.uri == "no:such") co_return rpc::invalid_params("there is no such thing");
    if (held_back) {
      const bool let_go = co_await held_back->wait(*loop, Clock::duration::max());
      static_cast<void>(let_go);
    }
    seen.push_back("subscribed " + subscription.uri);
    updated = subscription.updated;
    const std::string uri = subscription.uri;
    co_return std::shared_ptr<void>(nullptr, [this, uri](void*) { seen.push_back("unsubscribed " + uri); });
  }
  void session_began(std::string_view began, Reach way) override {
    session = began;
    reach = std::move(way);
  }
  void log_level_set(std::string_view, LoggingLevel level) override {
    seen.push_back("level " + std::string(to_string(level)));
  }
  void session_ended(std::string_view ended) override { seen.push_back("ended " + std::string(ended)); }
};

class BackendTest : public ServerTest {
 public:
  std::shared_ptr<Recording> backend = std::make_shared<Recording>();

  void SetUp() override {
    ServerTest::SetUp();
    server.backend(backend);
    start();
    greeting = ask(
        R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
  void subscribe_to(std::size_t many) {
    for (std::size_t i = 0; i < many; ++i)
      ask(R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:)" +
          std::to_string(i) + "\"}}");
  }
  std::string greeting;
};

TEST_F(BackendTest, ItsCapabilitiesAreAdvertisedAndNoOthers) {
  EXPECT_NE(greeting.find(R"("tools":{)"), std::string::npos) << greeting;
  EXPECT_EQ(greeting.find("prompts"), std::string::npos) << greeting;
  EXPECT_NE(ask(R"({"jsonrpc":"2.0","id":2,"method":"prompts/list"})").find("-32601"), std::string::npos);
}

TEST_F(BackendTest, ARequestReachesItWholeAndItsAnswerIsTheResultByteForByte) {
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"remote", "arguments":{"n":1.50e1}}})");
  EXPECT_EQ(
      hear(),
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}})");
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","id":2,"result":{"name":"remote", "arguments":{"n":1.50e1}}})");
  EXPECT_FALSE(backend->session.empty());
}

const std::string kSubscribe =
    R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}})";
const std::string kUnsubscribe =
    R"({"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:b"}})";

TEST_F(BackendTest, ASubscriptionLastsFromTheAnswerToTheUnsubscription) {
  ask(kSubscribe);
  ask(kSubscribe);
  EXPECT_EQ(backend->seen, std::vector<std::string>({"subscribed a:b"}));
  backend->updated("a:b/inside");
  EXPECT_EQ(hear(),
            R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b/inside"}})");
  ask(kUnsubscribe);
  EXPECT_EQ(backend->seen.back(), "unsubscribed a:b");
}

TEST_F(BackendTest, ASubscriptionIsAnsweredWhenTheBackendHasIt) {
  backend->loop = &loop;
  backend->held_back.emplace();
  say(kSubscribe);
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"), R"({"jsonrpc":"2.0","id":9,"result":{}})");
  backend->held_back->set();
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","id":2,"result":{}})");
}

TEST_F(BackendTest, UnsubscribingWhileItIsBeingMadeLeavesNothing) {
  backend->loop = &loop;
  backend->held_back.emplace();
  say(kSubscribe);
  ask(kUnsubscribe);
  backend->held_back->set();
  hear();
  loop.run_until([&] { return backend->seen.size() == 2; });
  EXPECT_EQ(backend->seen, std::vector<std::string>({"subscribed a:b", "unsubscribed a:b"}));
}

const std::string kCancel =
    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})";
const std::string kSubscribeAgain =
    R"({"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:b"}})";

TEST_F(BackendTest, ASubscriptionThatIsCancelledWhileItIsBeingMadeLeavesNothing) {
  backend->loop = &loop;
  backend->held_back.emplace();
  say(kSubscribe);
  say(kCancel);
  ask(R"({"jsonrpc":"2.0","id":9,"method":"ping"})");
  backend->held_back->set();
  loop.run_until([&] { return backend->seen.size() == 2; });
  EXPECT_EQ(backend->seen, std::vector<std::string>({"subscribed a:b", "unsubscribed a:b"}));
  ask(kSubscribeAgain);
  EXPECT_EQ(backend->seen.back(), "subscribed a:b");
}

TEST_F(BackendTest, ASubscriptionAskedForOnceMoreOutlivesTheFirstThatIsCancelled) {
  backend->loop = &loop;
  backend->held_back.emplace();
  say(kSubscribe);
  say(kCancel);
  say(kSubscribeAgain);
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"), R"({"jsonrpc":"2.0","id":9,"result":{}})");
  backend->held_back->set();
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","id":4,"result":{}})");
  loop.run_until([&] { return backend->seen.size() == 3; });
  EXPECT_EQ(std::ranges::count(backend->seen, "unsubscribed a:b"), 1);
}

TEST_F(BackendTest, WhatCannotBeSubscribedToIsAnErrorAndNoSubscription) {
  const std::string no_such =
      R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"no:such"}})";
  EXPECT_NE(ask(no_such).find("there is no such thing"), std::string::npos);
  EXPECT_NE(ask(no_such).find("there is no such thing"), std::string::npos);
}

TEST_F(BackendTest, AListenPromisesWhatTheBackendDoes) {
  say(R"({"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b","no:such"]},)" +
      kEnvelope + "}}");
  const std::string acknowledged = hear();
  EXPECT_NE(acknowledged.find(R"("resourceSubscriptions":["a:b"])"), std::string::npos) << acknowledged;
  backend->updated("a:b");
  EXPECT_NE(hear().find(R"("uri":"a:b")"), std::string::npos);
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  loop.run_until([&] { return backend->seen.size() == 2; });
  EXPECT_EQ(backend->seen.back(), "unsubscribed a:b");
}

// A listen, with id "l", to so many resources, whose URIs end with `suffix`.
std::string listen_to(std::size_t many, const std::string& suffix = "") {
  std::string uris;
  for (std::size_t i = 0; i < many; ++i) uris += ",\"a:" + std::to_string(i) + suffix + '"';
  return R"({"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{)"
         R"("resourceSubscriptions":[)" +
         uris.substr(1) + "]}," + kEnvelope + "}}";
}

TEST_F(BackendTest, ListenCancelledBeforeItsAcknowledgementLeavesNothingBehind) {
  constexpr std::size_t kMany = 3000;
  say(listen_to(kMany, std::string(1000, 'x')));
  loop.run_until([&] { return backend->seen.size() == kMany; });
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"), R"({"jsonrpc":"2.0","id":9,"result":{}})");
  loop.run_until([&] { return backend->seen.size() == 2 * kMany; });
  EXPECT_EQ(std::ranges::count_if(backend->seen, [](const auto& line) { return line.starts_with("unsub"); }),
            kMany);
}

TEST_F(BackendTest, LoopServesOthersWhileManySubscriptionsEnd) {
  constexpr std::size_t kMany = 5000;
  say(listen_to(kMany));
  hear();
  ASSERT_EQ(backend->seen.size(), kMany);
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  loop.run_until([&] { return backend->seen.size() > kMany; });
  EXPECT_LT(backend->seen.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->seen.size() == 2 * kMany; });
}

TEST_F(BackendTest, LoopServesOthersWhileTheManySubscriptionsOfASessionEnd) {
  constexpr std::size_t kMany = 3000;
  subscribe_to(kMany);
  ASSERT_EQ(backend->seen.size(), kMany);
  peer.reset();
  far->close();
  loop.run_until([&] { return backend->seen.size() > kMany; });
  EXPECT_LT(backend->seen.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->seen.size() > 2 * kMany; });
  EXPECT_EQ(backend->seen.back(), "ended " + backend->session) << "after all of its subscriptions";
}

TEST_F(BackendTest, LoopServesOthersWhileTheSubscriptionsBeforeASecondInitializeEnd) {
  constexpr std::size_t kMany = 3000;
  subscribe_to(kMany);
  ASSERT_EQ(backend->seen.size(), kMany);
  initialize("2025-11-25");
  EXPECT_LT(backend->seen.size(), 2 * kMany);  // a turn has ended before all of them have
  loop.run_until([&] { return backend->seen.size() == 2 * kMany; });
  ask(kSubscribe);
  EXPECT_EQ(backend->seen.back(), "subscribed a:b");
}

// A thread that tells of a change has the last reference to the session. Nobody runs the loop when that
// thread releases it.
TEST_F(BackendTest, SessionEndsOnItsLoopWhenAnotherThreadReleasesItLast) {
  ask(kSubscribe);
  std::latch referenced(1);
  std::latch ended(1);
  std::thread telling([&] {
    server.tools_changed([&](std::string_view, const Principal&) {
      referenced.count_down();
      ended.wait();
      return false;
    });
  });
  referenced.wait();
  const std::weak_ptr<Peer> gone = peer;
  peer.reset();
  far->close();
  loop.run_until([&] { return gone.expired(); });
  EXPECT_EQ(backend->seen.size(), 1u);
  ended.count_down();
  telling.join();
  EXPECT_EQ(backend->seen.size(), 1u) << "of another thread: " << backend->seen.back();
  loop.run_until([&] { return backend->seen.size() == 3; });
  EXPECT_EQ(backend->seen[1], "unsubscribed a:b");
  EXPECT_EQ(backend->seen[2], "ended " + backend->session);
}

TEST_F(BackendTest, ItHearsOfTheLevelOfLogMessagesAClientWants) {
  ask(R"({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}})");
  EXPECT_EQ(backend->seen, std::vector<std::string>({"level debug"}));
  EXPECT_EQ(backend->reach()->log_level(), LoggingLevel::debug);
}

TEST_F(BackendTest, ALegacyClientCanBeSpokenToUnasked) {
  const std::optional<Context> context = backend->reach();
  ASSERT_TRUE(context);
  EXPECT_EQ(context->session(), backend->session);
  context->notify("notifications/message", *json::Raw::parse(R"({"level":"info","data":1})"));
  EXPECT_EQ(hear(),
            R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}})");
}

TEST_F(BackendTest, AListChangeIsToldToThoseItConcerns) {
  server.tools_changed([](std::string_view, const Principal&) { return false; });
  server.tools_changed(
      [this](std::string_view session, const Principal&) { return session == backend->session; });
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"), R"({"jsonrpc":"2.0","id":9,"result":{}})");
}

TEST_F(BackendTest, ItHearsThatASessionHasEnded) {
  ask(R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}})");
  TearDown();
  peer.reset();
  far.reset();
  loop.run_until([&] { return backend->seen.size() == 3; });
  EXPECT_EQ(backend->seen[1], "unsubscribed a:b");
  EXPECT_EQ(backend->seen[2].substr(0, 6), "ended ");
  EXPECT_FALSE(backend->reach());
}

}  // namespace
}  // namespace fairlead::mcp
