// Lost connections: pending calls fail, the next request reconnects, and the client restores its
// subscriptions and its log level.
#include "fairlead/connection/listen.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

class ReconnectTest : public FullServerTest, public ::testing::WithParamInterface<std::string> {
 public:
  void SetUp() override {
    FullServerTest::SetUp();
    tool(server, "talk", "", [](const Context& context, const EchoArgs&) {
      context.log(LoggingLevel::info, test::raw("\"info\""));
      context.log(LoggingLevel::error, test::raw("\"error\""));
      return std::string("done");
    });
    options.pinned_revision = revision_named(GetParam());
    options.reconnect = Reconnect::always;
    options.handlers.on_notification = [this](std::string_view method, const json::Raw& params) {
      if (method != "notifications/subscriptions/acknowledged")
        notifications.push_back(std::string(method) + std::string(json::View(params)["data"].text()));
    };
    options.handlers.on_reconnected = [this](const Error& lost) { reasons.push_back(lost.kind()); };
    listen("tcp:127.0.0.1:0");
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    listener->close();
    loop.run_until([&] { return clients.empty() || clients.back()->finished().is_set(); });
  }
  void listen(const std::string& uri) {
    const auto accept = [this](std::shared_ptr<Connection> connection) {
      clients.push_back(serve(server, std::move(connection)));
    };
    Result<std::shared_ptr<Listener>> made =
        Listener::listen(loop, *Uri::parse(uri), StreamConnectOptions(), accept);
    ASSERT_TRUE(made) << made.error().to_string();
    listener = *made;
  }
  void connect() {
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect(loop, listener->address(), options));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  // Closes the server's end of the connection and waits until the client's connection has ended.
  void lose_connection() {
    clients.back()->close();
    loop.run_until([&] { return client->connection().closed(); });
  }
  Result<ToolResult> echo() {
    return loop.block_on(client->call_tool("echo", test::raw(R"({"message":"hi"})")));
  }

  ClientOptions options;
  std::shared_ptr<Listener> listener;
  std::vector<std::shared_ptr<Peer>> clients;  // the server's peers
  std::shared_ptr<Client> client;
  std::vector<std::string> notifications;
  std::vector<ErrorKind> reasons;
};

TEST_P(ReconnectTest, NextRequestReconnectsAndRestoresSubscriptions) {
  connect();
  const auto kept = loop.block_on(client->subscribe("test://fixed"));
  const auto ended = loop.block_on(client->subscribe("test://rome/now"));
  ASSERT_TRUE(kept && ended);
  lose_connection();
  EXPECT_TRUE(loop.block_on(client->unsubscribe(*ended)));
  const Result<ToolResult> answer = echo();
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(clients.size(), 2u);
  EXPECT_EQ(reasons, std::vector<ErrorKind>{ErrorKind::closed});
  EXPECT_EQ(to_string(client->revision()), GetParam());
  server.notify_resource_updated("test://rome/now");
  server.notify_resource_updated("test://fixed");
  loop.run_until([&] { return !notifications.empty(); });
  ASSERT_TRUE(loop.block_on(client->unsubscribe(*kept)));
  ASSERT_TRUE(echo());
  server.notify_resource_updated("test://fixed");
  ASSERT_TRUE(echo());
  EXPECT_EQ(notifications, std::vector<std::string>{"notifications/resources/updated"});
}

TEST_P(ReconnectTest, ReconnectRestoresLogLevel) {
  connect();
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::error)));
  lose_connection();
  ASSERT_TRUE(loop.block_on(client->call_tool("talk", test::raw(R"({"message":""})"))));
  EXPECT_EQ(notifications, std::vector<std::string>{"notifications/message\"error\""});
}

TEST_P(ReconnectTest, SubscribeReconnects) {
  connect();
  lose_connection();
  ASSERT_TRUE(loop.block_on(client->subscribe("test://fixed")));
  server.notify_resource_updated("test://fixed");
  loop.run_until([&] { return !notifications.empty(); });
}

Task<void> call_and_count(std::shared_ptr<Client> client, int& answered) {
  Task<Result<ToolResult>> calling = client->call_tool("echo", test::raw(R"({"message":""})"));
  const Result<ToolResult> answer = co_await calling;
  if (answer) ++answered;
}

TEST_P(ReconnectTest, ConcurrentRequestsShareOneReconnect) {
  connect();
  lose_connection();
  int answered = 0;
  for (int i = 0; i < 50; ++i) loop.spawn(call_and_count(client, answered));
  loop.run_until([&] { return answered == 50; });
  EXPECT_EQ(clients.size(), 2u);
  EXPECT_EQ(reasons.size(), 1u);
}

TEST_P(ReconnectTest, RequestFailsWhenReconnectFailsAndNextOneRetries) {
  connect();
  const std::string address = listener->address();
  listener->close();
  lose_connection();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(echo().error().kind(), ErrorKind::connection_failed);
  listen(address);
  EXPECT_TRUE(echo());
  EXPECT_EQ(reasons.size(), 1u);
}

TEST_P(ReconnectTest, RequestFailsWhenReconnectIsOff) {
  for (const Reconnect policy : {Reconnect::never, Reconnect::children}) {
    options.reconnect = policy;
    connect();
    lose_connection();
    EXPECT_EQ(echo().error().kind(), ErrorKind::closed);
    EXPECT_FALSE(loop.block_on(client->subscribe("test://fixed")));
  }
  EXPECT_EQ(clients.size(), 2u);
}

TEST_P(ReconnectTest, ClosedClientDoesNotReconnect) {
  connect();
  loop.block_on(client->close());
  EXPECT_FALSE(echo());
  EXPECT_FALSE(loop.block_on(client->tools()));
  EXPECT_EQ(clients.size(), 1u);
}

TEST_P(ReconnectTest, CloseEndsReconnectInProgress) {
  connect();
  lose_connection();
  int answered = 0;
  loop.spawn(call_and_count(client, answered));
  bool started = false;
  loop.post([&] { started = true; });
  loop.run_until([&] { return started; });
  loop.block_on(client->close());
  EXPECT_EQ(answered, 0);
  EXPECT_TRUE(client->connection().closed());
  EXPECT_FALSE(echo());
}

TEST_P(ReconnectTest, ReconnectClearsCache) {
  server.cache_hint({60'000, false});
  connect();
  const auto size = [&] { return loop.block_on(client->tools())->size(); };
  const std::size_t before = size();
  lose_connection();
  server.remove_tool("half");
  ASSERT_TRUE(echo());
  EXPECT_EQ(size(), before - 1);
}

TEST_P(ReconnectTest, StaleResultIsUsedOnlyWhenEnabledAndServerIsUnreachable) {
  server.cache_hint({1, false});
  for (const bool wanted : {false, true}) {
    options.stale_on_error = wanted;
    connect();
    const std::string address = listener->address();
    ASSERT_TRUE(loop.block_on(client->tools()));
    bool passed = false;
    Timer timer(loop);
    timer.arm(Clock::now() + 2ms, [&] { passed = true; });
    loop.run_until([&] { return passed; });
    listener->close();
    lose_connection();
    const bool modern_era = is_modern(client->revision());
    EXPECT_EQ(static_cast<bool>(loop.block_on(client->tools())), wanted && modern_era);
    EXPECT_FALSE(loop.block_on(client->prompts()));  // never fetched
    EXPECT_FALSE(echo());
    listen(address);
    EXPECT_TRUE(loop.block_on(client->tools()));
    EXPECT_EQ(reasons.size(), wanted ? 2u : 1u);
    loop.block_on(client->close());
  }
}

INSTANTIATE_TEST_SUITE_P(Eras, ReconnectTest, ::testing::Values("2025-11-25", "2026-07-28"),
                         [](const auto& revision) {
                           std::string name = revision.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// ---- child process --------------------------------------------------------------------------------------

// Answers initialize and ping, and exits on every other request.
const char* const kFragile =
    R"(while read l; do id=${l#*'"id":'}; id=${id%%,*}; case "$l" in )"
    R"(*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fragile","version":"1"}}}';; )"
    R"(*initialized*) ;; *ping*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"pid":'$$'}}';; )"
    R"(*discover*) exit 1;; *) echo 'farewell' >&2; exit 7;; esac; done)";

TEST(ReconnectChildTest, CallFailsWhenChildExitsAndNextCallRestartsIt) {
  Loop loop;
  ClientOptions options;
  int reconnects = 0;
  options.handlers.on_reconnected = [&](const Error& lost) {
    ++reconnects;
    EXPECT_EQ(lost.kind(), ErrorKind::process_exited);
  };
  const auto made =
      loop.block_on(Client::connect(loop, "stdio:sh -c " + percent_encode_word(kFragile), options));
  ASSERT_TRUE(made) << made.error().to_string();
  const std::shared_ptr<Client> client = *made;
  const auto pid = [&] {
    const Result<json::Raw> answer = loop.block_on(client->request("ping"));
    return answer ? json::View(*answer)["pid"].as_int().value_or(0) : -1;
  };
  const std::int64_t first = pid();
  ASSERT_GT(first, 0);
  const Result<ToolResult> lost = loop.block_on(client->call_tool("anything"));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind(), ErrorKind::process_exited);
  EXPECT_EQ(lost.error().detail().exit_status, 7);
  ASSERT_FALSE(lost.error().detail().stderr_lines.empty());
  EXPECT_EQ(lost.error().detail().stderr_lines.back(), "farewell");
  EXPECT_EQ(reconnects, 0);
  const std::int64_t second = pid();
  EXPECT_GT(second, 0);
  EXPECT_NE(second, first);
  EXPECT_EQ(reconnects, 1);
  EXPECT_EQ(client->server_info()["name"].as_string(), "fragile");
  loop.block_on(client->close());
}

}  // namespace
}  // namespace fairlead::mcp
