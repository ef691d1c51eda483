#include "gateway/upstream_events.hpp"

#include "fairlead/rpc/codes.hpp"
#include "gateway/forwarding.hpp"
#include "gateway/memory_servers.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using pool::Sharing;

class UpstreamEventsTest : public MemoryServersTest {
 protected:
  using Heard = std::vector<std::string>;
  using ClientPtr = std::shared_ptr<mcp::RecordingLink>;

  void SetUp() override {
    events = std::make_shared<UpstreamEvents>(loop, sessions, log);
    handlers = events->handlers();
    open_pool(handlers);
    servers = std::make_shared<ServerTable>(pool, true);
    catalogue = std::make_shared<CatalogueStore>(loop, servers, front, log);
    listing = std::make_shared<Listing>(loop, pool, servers, catalogue, log);
    watches = std::make_shared<Watches>(loop, pool, log);
    events->attach(servers, listing, std::make_shared<LogLevels>(loop, pool, sessions, log), watches);
  }
  void TearDown() override {
    watches->stop();
    listing->stop();
    MemoryServersTest::TearDown();
  }

  // A client with a session, which the gateway can reach.
  ClientPtr enter(const std::string& session, const std::string& capabilities = "{}",
                  const std::string& user = "") {
    auto principal = std::make_shared<Principal>();
    principal->user = user;
    auto client = std::make_shared<mcp::RecordingLink>(loop, session, std::move(principal));
    client->answer = test::raw(R"({"from":")" + session + "\"}");
    sessions->add(session, [client, capabilities] { return context(client, capabilities); });
    return client;
  }
  static mcp::Context context(const ClientPtr& client, const std::string& capabilities = "{}",
                              mcp::Revision revision = mcp::kNewestLegacy) {
    auto request = std::make_shared<mcp::RequestState>();
    request->link = client;
    request->revision = revision;
    request->client_capabilities = test::raw(capabilities);
    request->log_level = mcp::LoggingLevel::warning;
    return mcp::Context(std::move(request));
  }
  static Task<void> forward(std::shared_ptr<pool::Pool> to, pool::Target target, pool::ForwardOptions how) {
    auto request = std::make_shared<const mcp::VerbatimRequest>(message("tools/call", R"({"name":"t"})"));
    Task<Result<pool::ForwardedAnswer>> forwarding = to->forward(std::move(target), request, std::move(how));
    const Result<pool::ForwardedAnswer> answer = co_await forwarding;
    static_cast<void>(answer);
  }
  // A call of `asking` that server `a` works on until the test ends.
  void call(const mcp::Context& asking) {
    MemoryServer& server = memory["a"];
    if (!server.held) {
      start("a", std::string(asking.session()));
      server.held.emplace();
    }
    const long before = server.count("call t");
    pool::ForwardOptions how;
    how.caller = std::make_shared<ForwardedCall>(asking);
    loop.spawn(forward(pool, pool::Target("a", std::string(asking.session())), how));
    EXPECT_TRUE(comes_true([&] { return server.count("call t") > before; }));
  }
  // So many calls of `asking`, which server `a` works on until the test ends.
  void call_often(const mcp::Context& asking, long count) {
    for (long i = 0; i < count; ++i) {
      pool::ForwardOptions how;
      how.caller = std::make_shared<ForwardedCall>(asking);
      loop.spawn(forward(pool, pool::Target("a", std::string(asking.session())), how));
    }
    EXPECT_TRUE(comes_true([&] { return memory["a"].count("call t") >= count; }));
  }
  // `updated` gets the URI of each update, for as long as what this returns is kept.
  Result<std::shared_ptr<void>> subscribe(const std::string& server, const std::string& uri, Heard& updated) {
    return loop.block_on(watches->subscribe(pool::Target(server), uri, std::stop_token(),
                                            [&](const std::string& changed) { updated.push_back(changed); }));
  }
  static Task<void> warm(std::shared_ptr<pool::Pool> in) {
    Task<Result<std::shared_ptr<pool::Upstream>>> starting = in->warm(pool::Target("a"));
    const Result<std::shared_ptr<pool::Upstream>> started = co_await starting;
    EXPECT_TRUE(started);
  }
  static rpc::Message message(const std::string& method, const std::string& params) {
    return rpc::Message::parse(
        Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}"));
  }
  // Server `a` speaks by its newest connection.
  void say(const std::string& method, const std::string& params) {
    memory["a"].newest->handlers.notified(method, test::raw(params));
    settle();
  }
  Answer ask(const std::string& method, const std::string& params = "{}") {
    return loop.block_on(memory["a"].newest->handlers.request(Request(nullptr, message(method, params))));
  }
  std::string ask_text(const std::string& method) {
    const Answer answer = ask(method);
    return answer ? std::string(answer->text()) : answer.error().message();
  }

  mcp::Server front{"front", "1"};
  std::shared_ptr<UpstreamEvents> events;
  pool::UpstreamHandlers handlers;
  std::shared_ptr<ServerTable> servers;
  std::shared_ptr<CatalogueStore> catalogue;
  std::shared_ptr<Listing> listing;
  std::shared_ptr<Watches> watches;
};

constexpr const char* kMessage = "notifications/message";
constexpr const char* kError = R"({"level":"error","data":"x"})";

// ---- which client is meant -------------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, LogMessageGoesToTheOneClientWhoseCallsTheServerWorksOn) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  const auto two = enter("two");
  call(context(one));
  call(context(one));
  say(kMessage, kError);
  EXPECT_EQ(one->heard, (Heard{std::string(kMessage) + " " + kError}));
  call(context(two));
  say(kMessage, kError);
  EXPECT_EQ(one->heard.size(), 1u) << "the call it belongs to is unknown";
  EXPECT_EQ(two->heard, Heard());
}

TEST_F(UpstreamEventsTest, LogMessageOfASharedServerIsDroppedWhileNoCallIsUnderWay) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  start("a");
  say(kMessage, kError);
  EXPECT_EQ(one->heard, Heard());
}

TEST_F(UpstreamEventsTest, LogMessageOfAServerOfOneSessionGoesToThatSession) {
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  const auto one = enter("one");
  const auto two = enter("two");
  start("a", "two");
  say(kMessage, kError);
  EXPECT_EQ(one->heard, Heard());
  EXPECT_EQ(two->heard.size(), 1u);
}

TEST_F(UpstreamEventsTest, LogMessageBelowTheClientsLevelOrOfNoLevelIsDropped) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one));
  say(kMessage, R"({"level":"info","data":1})");
  say(kMessage, R"({"level":"loud","data":1})");
  say(kMessage, R"({"data":1})");
  say(kMessage, "[]");
  EXPECT_EQ(one->heard, Heard());
  say(kMessage, R"({"level":"warning","data":1})");
  EXPECT_EQ(one->heard.size(), 1u);
}

TEST_F(UpstreamEventsTest, CostOfALogMessageDoesNotGrowWithTheCallsUnderWay) {
  constexpr long kCalls = 1'000;
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one));
  const auto log_often = [&] {
    const json::Raw params = test::raw(R"({"level":"info","data":1})");  // not forwarded at this level
    for (int i = 0; i < 200; ++i) memory["a"].newest->handlers.notified(kMessage, params);
  };
  const auto with_one_call = test::cpu_time(log_often);
  call_often(context(one), kCalls);
  EXPECT_LT(test::cpu_time(log_often), 10 * with_one_call);
  say(kMessage, kError);
  EXPECT_EQ(one->heard.size(), 1u) << "all calls are of one session";
}

// ---- requests --------------------------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, RequestIsPutToTheClientWhoseCallTheServerWorksOn) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one, R"({"roots":{}})"));
  EXPECT_EQ(ask_text("roots/list"), R"({"from":"one"})");
  EXPECT_EQ(one->heard, (Heard{"roots/list {}"}));
}

TEST_F(UpstreamEventsTest, RequestIsRefusedThatNoClientIsAskedOrThatThisOneHasNotDeclared) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one, R"({"roots":{}})"));
  for (const char* const method : {"tools/list", "sampling/createMessage"}) {
    const Answer answer = ask(method);
    ASSERT_FALSE(answer) << method;
    EXPECT_EQ(answer.error().detail().rpc_code, rpc::kMethodNotFound) << method;
  }
  EXPECT_EQ(one->heard, Heard());
}

TEST_F(UpstreamEventsTest, RequestWithoutACallIsRefusedWithTheRemedyAndLogged) {
  ASSERT_TRUE(servers->add(spec("a")));
  enter("one", R"({"roots":{}})");
  start("a");
  const std::string refusal = ask_text("roots/list");
  EXPECT_NE(refusal.find("per_session"), std::string::npos) << refusal;
  const auto told = [](const std::string& line) {
    return line.find("a server's request cannot be attributed") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(logged, told), 1);
}

TEST_F(UpstreamEventsTest, RequestForAModernClientIsRefused) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one, R"({"roots":{}})", mcp::Revision::r2026_07_28));
  EXPECT_EQ(ask_text("roots/list"),
            "The client speaks revision 2026-07-28, which has no requests from servers");
}

// ---- completed elicitations ------------------------------------------------------------------------------

constexpr const char* kComplete = "notifications/elicitation/complete";

TEST_F(UpstreamEventsTest, CompletedElicitationIsToldOnceToTheSessionsThatWereSentToItsUrl) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  const auto two = enter("two");
  const auto three = enter("three");
  start("a");
  sessions->note_url("a", "7", "one");
  sessions->note_url("a", "7", "two");
  sessions->note_url("a", "7", "gone");
  sessions->note_url("b", "7", "three");
  say(kComplete, R"({"elicitationId":"7"})");
  say(kComplete, R"({"elicitationId":"7"})");
  say(kComplete, "{}");
  EXPECT_EQ(one->heard.size(), 1u);
  EXPECT_EQ(two->heard.size(), 1u);
  EXPECT_EQ(three->heard, Heard());
  EXPECT_TRUE(sessions->sessions_at_url("a", "7").empty());
}

TEST_F(UpstreamEventsTest, CompletedElicitationOfAProcessOfOneSessionIsNotToldToAnother) {
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  const auto one = enter("one");
  const auto two = enter("two");
  start("a", "two");
  sessions->note_url("a", "7", "one");
  sessions->note_url("a", "7", "two");
  say(kComplete, R"({"elicitationId":"7"})");
  EXPECT_EQ(one->heard, Heard());
  EXPECT_EQ(two->heard.size(), 1u);
  EXPECT_EQ(sessions->sessions_at_url("a", "7"), (std::vector<std::string>{"one"}));
}

TEST_F(UpstreamEventsTest, UrlOfARequestIsRememberedForItsClient) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = enter("one");
  call(context(one, R"({"elicitation":{}})"));
  EXPECT_TRUE(ask("elicitation/create", R"({"elicitationId":"9"})"));
  EXPECT_EQ(sessions->sessions_at_url("a", "9"), (std::vector<std::string>{"one"}));
}

// ---- capabilities and levels -----------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, CapabilitiesAreThoseOfTheClientsThatTheUpstreamIsFor) {
  enter("one", R"({"roots":{}})", "ann");
  enter("two", R"({"sampling":{}})", "bob");
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  ASSERT_TRUE(servers->add(spec("b", Sharing::per_user)));
  EXPECT_EQ(handlers.capabilities(*start("a", "one")).text(), R"({"roots":{}})");
  EXPECT_EQ(handlers.capabilities(*start("b", "two", "bob")).text(), R"({"sampling":{}})");
}

TEST_F(UpstreamEventsTest, CapabilitiesOfASharedUpstreamAreThoseOfAllClients) {
  enter("one", R"({"roots":{}})");
  enter("two", R"({"sampling":{}})");
  ASSERT_TRUE(servers->add(spec("a")));
  EXPECT_EQ(handlers.capabilities(*start("a")).text(), R"({"roots":{},"sampling":{}})");
}

// ---- what follows from events ----------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, ServerThatAnnouncesAChangeIsAskedForItsLists) {
  ASSERT_TRUE(servers->add(spec("a")));
  start("a");
  settle();
  EXPECT_EQ(memory["a"].count("tools/list"), 0);
  say("notifications/prompts/list_changed", "{}");
  EXPECT_TRUE(comes_true([&] { return memory["a"].count("tools/list") == 1; }));
}

TEST_F(UpstreamEventsTest, NotificationsOfARemovedServerAreDropped) {
  ASSERT_TRUE(servers->add(spec("a")));
  start("a");
  ASSERT_TRUE(servers->remove("a"));
  say("notifications/tools/list_changed", "{}");
  say("notifications/unheard_of", "{}");
  EXPECT_EQ(memory["a"].count("tools/list"), 0);
}

TEST_F(UpstreamEventsTest, UpdateOfAResourceIsToldToItsSubscribers) {
  ASSERT_TRUE(servers->add(spec("a")));
  Heard updated;
  const auto subscribed = subscribe("a", "memo://one", updated);
  ASSERT_TRUE(subscribed);
  say("notifications/resources/updated", R"({"uri":"memo://one"})");
  say("notifications/resources/updated", R"({"uri":1})");
  say("notifications/resources/updated", R"({"uri":")" + std::string(10'000, 'x') + "\"}");
  EXPECT_EQ(updated, (Heard{"memo://one"}));
}

TEST_F(UpstreamEventsTest, ServerThatWasStartedAnewIsListedAndSubscribedToAgain) {
  ASSERT_TRUE(servers->add(spec("a")));
  Heard updated;
  const auto subscribed = subscribe("a", "memo://one", updated);
  ASSERT_TRUE(subscribed);
  lose("a", start("a"));
  EXPECT_TRUE(comes_true([&] { return updated.size() == 1; }));
  EXPECT_EQ(memory["a"].count("subscribe memo://one"), 2);
  EXPECT_TRUE(comes_true([&] { return memory["a"].count("tools/list") == 1; }));
}

TEST_F(UpstreamEventsTest, LevelThatAClientSetWhileTheServerStartedIsAskedForWhenItIsReady) {
  ASSERT_TRUE(servers->add(spec("a")));
  memory["a"].held.emplace();
  loop.spawn(warm(pool));
  settle();
  sessions->set_level("one", mcp::LoggingLevel::debug);
  memory["a"].held->set();
  EXPECT_TRUE(comes_true([&] { return memory["a"].count("level debug") == 1; }));
}

TEST_F(UpstreamEventsTest, HandlersDoNothingWhenTheirObjectIsGone) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto upstream = start("a");
  events.reset();
  EXPECT_TRUE(handlers.capabilities(*upstream).text().empty());
  EXPECT_EQ(handlers.log_level(*upstream), SessionTable::kDefaultLevel);
  say("notifications/tools/list_changed", "{}");
  handlers.kept_apart("a");
  EXPECT_EQ(memory["a"].count("tools/list"), 0);
  const Answer answer = ask("roots/list");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().detail().rpc_code, rpc::kMethodNotFound);
}

}  // namespace
}  // namespace fairlead::gateway
