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
  using Strings = std::vector<std::string>;
  using ClientPtr = std::shared_ptr<mcp::RecordingLink>;

  void SetUp() override {
    events = std::make_shared<UpstreamEvents>(loop, sessions, log);
    handlers = events->handlers();
    open_pool(handlers);
    servers = std::make_shared<ServerTable>(pool, true);
    catalogue = std::make_shared<CatalogueStore>(loop, servers, front, log);
    list_fetcher = std::make_shared<ListFetcher>(loop, pool, servers, catalogue, log);
    subscription_hub = std::make_shared<SubscriptionHub>(loop, pool, log);
    events->set_components(servers, list_fetcher,
                           std::make_shared<UpstreamLogLevels>(loop, pool, sessions, log), subscription_hub);
  }
  void TearDown() override {
    subscription_hub->stop();
    list_fetcher->stop();
    MemoryServersTest::TearDown();
  }

  // Adds a session, whose client records the messages that the gateway sends to it.
  ClientPtr connect_client(const std::string& session, const std::string& capabilities = "{}",
                           const std::string& user = "") {
    auto principal = std::make_shared<Principal>();
    principal->user = user;
    auto client = std::make_shared<mcp::RecordingLink>(loop, session, std::move(principal));
    client->answer = test::raw(R"({"from":")" + session + "\"}");
    sessions->add(session, [client, capabilities] { return context(client, capabilities); });
    return client;
  }
  static mcp::Context context(const ClientPtr& client, const std::string& capabilities = "{}",
                              mcp::Revision revision = mcp::kNewestLegacyRevision) {
    auto request = std::make_shared<mcp::RequestState>();
    request->link = client;
    request->revision = revision;
    request->client_capabilities = test::raw(capabilities);
    request->log_level = mcp::LoggingLevel::warning;
    return mcp::Context(std::move(request));
  }
  static Task<void> forward(std::shared_ptr<pool::Pool> to, pool::Target target,
                            pool::ForwardOptions options) {
    auto request = std::make_shared<const mcp::VerbatimRequest>(message("tools/call", R"({"name":"t"})"));
    static_cast<void>(co_await to->forward(std::move(target), request, std::move(options)));
  }
  // Starts a call of `caller` to server `a` that is in progress until the test ends.
  void call(const mcp::Context& caller) {
    MemoryServer& server = memory_servers["a"];
    if (!server.unblock) {
      start("a", std::string(caller.session()));
      server.unblock.emplace();
    }
    const long before = server.count("call t");
    pool::ForwardOptions options;
    options.call_context = std::make_shared<ForwardedCall>(caller);
    loop.spawn(forward(pool, pool::Target("a", std::string(caller.session())), options));
    EXPECT_TRUE(wait_until([&] { return server.count("call t") > before; }));
  }
  // Starts `count` calls of `caller` to server `a` that are in progress until the test ends.
  void call_often(const mcp::Context& caller, long count) {
    for (long i = 0; i < count; ++i) {
      pool::ForwardOptions options;
      options.call_context = std::make_shared<ForwardedCall>(caller);
      loop.spawn(forward(pool, pool::Target("a", std::string(caller.session())), options));
    }
    EXPECT_TRUE(wait_until([&] { return memory_servers["a"].count("call t") >= count; }));
  }
  // Subscribes until the returned handle is released. Appends the URI of each update to `updated`.
  Result<std::shared_ptr<void>> subscribe(const std::string& server, const std::string& uri,
                                          Strings& updated) {
    return loop.block_on(
        subscription_hub->subscribe(pool::Target(server), uri, std::stop_token(),
                                    [&](const std::string& changed) { updated.push_back(changed); }));
  }
  static Task<void> warm(std::shared_ptr<pool::Pool> in) {
    const Result<std::shared_ptr<pool::Upstream>> started = co_await in->warm(pool::Target("a"));
    EXPECT_TRUE(started);
  }
  static rpc::Message message(const std::string& method, const std::string& params) {
    return rpc::Message::parse(
        Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}"));
  }
  // Server `a` sends a notification on its newest connection.
  void notify(const std::string& method, const std::string& params) {
    memory_servers["a"].newest_connection->handlers.on_notification(method, test::raw(params));
    run_until_idle();
  }
  Answer ask(const std::string& method, const std::string& params = "{}") {
    return loop.block_on(memory_servers["a"].newest_connection->handlers.on_request(
        Request(nullptr, message(method, params))));
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
  std::shared_ptr<ListFetcher> list_fetcher;
  std::shared_ptr<SubscriptionHub> subscription_hub;
};

constexpr const char* kMessage = "notifications/message";
constexpr const char* kError = R"({"level":"error","data":"x"})";

// ---- client of a log message -----------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, LogMessageIsSentToClientWhenAllCallsInProgressAreItsCalls) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  const auto two = connect_client("two");
  call(context(one));
  call(context(one));
  notify(kMessage, kError);
  EXPECT_EQ(one->sent, (Strings{std::string(kMessage) + " " + kError}));
  call(context(two));
  notify(kMessage, kError);
  EXPECT_EQ(one->sent.size(), 1u) << "the call it belongs to is unknown";
  EXPECT_EQ(two->sent, Strings());
}

TEST_F(UpstreamEventsTest, SecretInALongLogMessageIsNotLoggedInPart) {
  const auto redactor = std::make_shared<SharedRedactor>();
  const std::string secret = "secret-of-the-test-12345";
  const auto in_use = redactor->add({secret});
  std::string lines;
  const Log debug_log = Log(LogLevel::debug, LogFormat::text, [&](std::string_view line) {
                          lines += line;
                        }).redacting(redactor);
  const auto logging = std::make_shared<UpstreamEvents>(loop, sessions, debug_log);
  ASSERT_TRUE(servers->add(spec("a")));
  const auto upstream = start("a");
  for (const std::size_t limit : {std::size_t{1'000}, Limits::kMaxLogFieldBytes}) {
    const std::string data = std::string(limit - 11, 'x') + secret + std::string(100, 'y');
    logging->handlers().on_notification(upstream, kMessage,
                                        test::raw(R"({"level":"info","data":")" + data + R"("})"));
  }
  EXPECT_TRUE(lines.contains("***"));
  EXPECT_FALSE(lines.contains("secret-of")) << lines;
}

TEST_F(UpstreamEventsTest, LogMessageOfSharedServerIsDroppedWhenNoCallIsInProgress) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  start("a");
  notify(kMessage, kError);
  EXPECT_EQ(one->sent, Strings());
}

TEST_F(UpstreamEventsTest, LogMessageOfPerSessionServerIsSentToItsSession) {
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  const auto one = connect_client("one");
  const auto two = connect_client("two");
  start("a", "two");
  notify(kMessage, kError);
  EXPECT_EQ(one->sent, Strings());
  EXPECT_EQ(two->sent.size(), 1u);
}

TEST_F(UpstreamEventsTest, LogMessageBelowClientLevelOrWithoutLevelIsDropped) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one));
  notify(kMessage, R"({"level":"info","data":1})");
  notify(kMessage, R"({"level":"loud","data":1})");
  notify(kMessage, R"({"data":1})");
  notify(kMessage, "[]");
  EXPECT_EQ(one->sent, Strings());
  notify(kMessage, R"({"level":"warning","data":1})");
  EXPECT_EQ(one->sent.size(), 1u);
}

TEST_F(UpstreamEventsTest, LogMessageCostIsIndependentOfCallCount) {
  constexpr long kCalls = 1'000;
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one));
  const auto log_often = [&] {
    const json::Raw params = test::raw(R"({"level":"info","data":1})");  // not forwarded at this level
    for (int i = 0; i < 200; ++i)
      memory_servers["a"].newest_connection->handlers.on_notification(kMessage, params);
  };
  const auto with_one_call = test::cpu_time(log_often);
  call_often(context(one), kCalls);
  EXPECT_LT(test::cpu_time(log_often), 10 * with_one_call);
  notify(kMessage, kError);
  EXPECT_EQ(one->sent.size(), 1u) << "all calls are of one session";
}

// ---- requests --------------------------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, RequestIsSentToClientWhoseCallIsInProgress) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one, R"({"roots":{}})"));
  EXPECT_EQ(ask_text("roots/list"), R"({"from":"one"})");
  EXPECT_EQ(one->sent, (Strings{"roots/list {}"}));
}

TEST_F(UpstreamEventsTest, RequestFailsWhenMethodIsUnknownOrCapabilityIsNotDeclared) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one, R"({"roots":{}})"));
  for (const char* const method : {"tools/list", "sampling/createMessage"}) {
    const Answer answer = ask(method);
    ASSERT_FALSE(answer) << method;
    EXPECT_EQ(answer.error().detail().rpc_code, rpc::kMethodNotFound) << method;
  }
  EXPECT_EQ(one->sent, Strings());
}

TEST_F(UpstreamEventsTest, RequestWithoutCallFailsWithRemedyAndIsLogged) {
  ASSERT_TRUE(servers->add(spec("a")));
  connect_client("one", R"({"roots":{}})");
  start("a");
  const std::string refusal = ask_text("roots/list");
  EXPECT_NE(refusal.find("per_session"), std::string::npos) << refusal;
  const auto is_refusal = [](const std::string& line) {
    return line.find("no client for the request of a server") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(logged, is_refusal), 1);
}

TEST_F(UpstreamEventsTest, RequestForModernClientFails) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one, R"({"roots":{}})", mcp::Revision::r2026_07_28));
  EXPECT_EQ(ask_text("roots/list"),
            "The client uses revision 2026-07-28, which has no requests from servers");
}

// ---- completed elicitations ------------------------------------------------------------------------------

constexpr const char* kComplete = "notifications/elicitation/complete";

TEST_F(UpstreamEventsTest, ElicitationCompleteIsSentOnceToSessionsThatReceivedUrl) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  const auto two = connect_client("two");
  const auto three = connect_client("three");
  start("a");
  sessions->add_url_elicitation("a", "7", "one");
  sessions->add_url_elicitation("a", "7", "two");
  sessions->add_url_elicitation("a", "7", "gone");
  sessions->add_url_elicitation("b", "7", "three");
  notify(kComplete, R"({"elicitationId":"7"})");
  notify(kComplete, R"({"elicitationId":"7"})");
  notify(kComplete, "{}");
  EXPECT_EQ(one->sent.size(), 1u);
  EXPECT_EQ(two->sent.size(), 1u);
  EXPECT_EQ(three->sent, Strings());
  EXPECT_TRUE(sessions->sessions_of_url_elicitation("a", "7").empty());
}

TEST_F(UpstreamEventsTest, ElicitationCompleteOfPerSessionServerIsNotSentToOtherSessions) {
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  const auto one = connect_client("one");
  const auto two = connect_client("two");
  start("a", "two");
  sessions->add_url_elicitation("a", "7", "one");
  sessions->add_url_elicitation("a", "7", "two");
  notify(kComplete, R"({"elicitationId":"7"})");
  EXPECT_EQ(one->sent, Strings());
  EXPECT_EQ(two->sent.size(), 1u);
  EXPECT_EQ(sessions->sessions_of_url_elicitation("a", "7"), (std::vector<std::string>{"one"}));
}

TEST_F(UpstreamEventsTest, UrlElicitationOfRequestIsRecordedForItsClient) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto one = connect_client("one");
  call(context(one, R"({"elicitation":{}})"));
  EXPECT_TRUE(ask("elicitation/create", R"({"elicitationId":"9"})"));
  EXPECT_EQ(sessions->sessions_of_url_elicitation("a", "9"), (std::vector<std::string>{"one"}));
}

// ---- capabilities and levels -----------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, CapabilitiesAreThoseOfClientsThatUpstreamServes) {
  connect_client("one", R"({"roots":{}})", "ann");
  connect_client("two", R"({"sampling":{}})", "bob");
  ASSERT_TRUE(servers->add(spec("a", Sharing::per_session)));
  ASSERT_TRUE(servers->add(spec("b", Sharing::per_user)));
  EXPECT_EQ(handlers.capabilities_for(*start("a", "one")).text(), R"({"roots":{}})");
  EXPECT_EQ(handlers.capabilities_for(*start("b", "two", "bob")).text(), R"({"sampling":{}})");
}

TEST_F(UpstreamEventsTest, CapabilitiesOfSharedUpstreamAreThoseOfAllClients) {
  connect_client("one", R"({"roots":{}})");
  connect_client("two", R"({"sampling":{}})");
  ASSERT_TRUE(servers->add(spec("a")));
  EXPECT_EQ(handlers.capabilities_for(*start("a")).text(), R"({"roots":{},"sampling":{}})");
}

// ---- effects of events -----------------------------------------------------------------------------------

TEST_F(UpstreamEventsTest, ListsAreFetchedWhenServerNotifiesOfChange) {
  ASSERT_TRUE(servers->add(spec("a")));
  start("a");
  run_until_idle();
  EXPECT_EQ(memory_servers["a"].count("tools/list"), 0);
  notify("notifications/prompts/list_changed", "{}");
  EXPECT_TRUE(wait_until([&] { return memory_servers["a"].count("tools/list") == 1; }));
}

TEST_F(UpstreamEventsTest, NotificationsOfRemovedServerAreDropped) {
  ASSERT_TRUE(servers->add(spec("a")));
  start("a");
  ASSERT_TRUE(servers->remove("a"));
  notify("notifications/tools/list_changed", "{}");
  notify("notifications/unheard_of", "{}");
  EXPECT_EQ(memory_servers["a"].count("tools/list"), 0);
}

TEST_F(UpstreamEventsTest, ResourceUpdateIsDispatchedToSubscribers) {
  ASSERT_TRUE(servers->add(spec("a")));
  Strings updated;
  const auto subscribed = subscribe("a", "memo://one", updated);
  ASSERT_TRUE(subscribed);
  notify("notifications/resources/updated", R"({"uri":"memo://one"})");
  notify("notifications/resources/updated", R"({"uri":1})");
  notify("notifications/resources/updated", R"({"uri":")" + std::string(10'000, 'x') + "\"}");
  EXPECT_EQ(updated, (Strings{"memo://one"}));
}

TEST_F(UpstreamEventsTest, ListsAreFetchedAndSubscriptionsRenewedWhenServerRestarts) {
  ASSERT_TRUE(servers->add(spec("a")));
  Strings updated;
  const auto subscribed = subscribe("a", "memo://one", updated);
  ASSERT_TRUE(subscribed);
  end_connection("a", start("a"));
  EXPECT_TRUE(wait_until([&] { return updated.size() == 1; }));
  EXPECT_EQ(memory_servers["a"].count("subscribe memo://one"), 2);
  EXPECT_TRUE(wait_until([&] { return memory_servers["a"].count("tools/list") == 1; }));
}

TEST_F(UpstreamEventsTest, LevelSetWhileServerStartsIsRequestedWhenItIsReady) {
  ASSERT_TRUE(servers->add(spec("a")));
  memory_servers["a"].unblock.emplace();
  loop.spawn(warm(pool));
  run_until_idle();
  sessions->set_log_level("one", mcp::LoggingLevel::debug);
  memory_servers["a"].unblock->set();
  EXPECT_TRUE(wait_until([&] { return memory_servers["a"].count("level debug") == 1; }));
}

TEST_F(UpstreamEventsTest, HandlersDoNothingAfterUpstreamEventsIsDestroyed) {
  ASSERT_TRUE(servers->add(spec("a")));
  const auto upstream = start("a");
  events.reset();
  EXPECT_TRUE(handlers.capabilities_for(*upstream).text().empty());
  EXPECT_EQ(handlers.log_level_for(*upstream), SessionTable::kDefaultLogLevel);
  notify("notifications/tools/list_changed", "{}");
  handlers.on_server_unshared("a");
  EXPECT_EQ(memory_servers["a"].count("tools/list"), 0);
  const Answer answer = ask("roots/list");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().detail().rpc_code, rpc::kMethodNotFound);
}

}  // namespace
}  // namespace fairlead::gateway
