// Input requests: a handler that requests input from the client works the same in both eras. Also tests
// Fairlead's client with Fairlead's server in every revision, and the probe.
#include "fairlead/loop/all.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kPersonForm =
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}}})";

Task<Result<std::string>> interview(Context context, EchoArgs in) {
  Task<Result<ElicitResult>> elicitation = context.elicit("Who?", test::raw(kPersonForm));
  const Result<ElicitResult> who = co_await elicitation;
  if (!who) co_return who.error();
  if (who->action != ElicitResult::Action::accept) co_return std::string("declined");
  const Result<std::vector<Root>> roots = co_await context.roots();
  if (!roots) co_return roots.error();
  co_return in.message + " " + std::string(who->content.text()) + " " +
      (roots->empty() ? "" : roots->front().uri);
}

class InputRequestTest : public ServerTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    tool(server, "interview", "", &interview);
  }
  std::string modern_call(const std::string& extra,
                          const std::string& capabilities = R"({"elicitation":{"form":{}},"roots":{}})") {
    return round_trip(
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"hi"},)" +
        extra +
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
        capabilities + "}}}");
  }
  static std::string state_of(const std::string& response) {
    const std::size_t at = response.find(R"("requestState":")") + 16;
    return response.substr(at, response.find('"', at) - at);
  }
};

TEST_F(InputRequestTest, LegacyClientReceivesRequests) {
  start();
  initialize("2025-11-25", R"({"elicitation":{"form":{}},"roots":{}})");
  send(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"hi"}}})");
  EXPECT_EQ(
      receive(),
      R"({"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":)" +
          std::string(kPersonForm) + "}}");
  send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}})");
  send(R"({"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///x"}]}})");
  EXPECT_EQ(receive(), result(R"({"content":[{"type":"text","text":"hi {\"name\":\"Ada\"} file:///x"}]})"));
}

TEST_F(InputRequestTest, ModernClientReturnsInputResponsesRoundByRound) {
  start();
  const std::string first = modern_call("");
  EXPECT_NE(
      first.find(R"("resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create")"),
      std::string::npos)
      << first;
  const std::string second = modern_call(
      R"("inputResponses":{"q1":{"action":"accept","content":{"name":"Ada"}},"extra":1},"requestState":")" +
      state_of(first) + "\",");
  EXPECT_NE(second.find(R"("inputRequests":{"q2":{"method":"roots/list","params":{}}})"), std::string::npos)
      << second;
  const std::string third =
      modern_call(R"("inputResponses":{"q2":{"roots":[{"uri":"file:///x"}]}},"requestState":")" +
                  state_of(second) + "\",");
  EXPECT_NE(third.find(R"("text":"hi {\"name\":\"Ada\"} file:///x")"), std::string::npos) << third;
}

TEST_F(InputRequestTest, TamperedAndForeignRequestStatesAreRejected) {
  start();
  const std::string state = state_of(modern_call(""));
  std::string tampered = state;
  tampered[10] = tampered[10] == 'A' ? 'B' : 'A';
  const std::string refused =
      error(-32602, R"("message":"requestState is not valid","data":{"reason":"invalid_request_state"})");
  EXPECT_EQ(modern_call(R"("requestState":")" + tampered + "\","), refused);
  EXPECT_EQ(modern_call(R"("requestState":7,)"),
            error(-32602, R"("message":"requestState is not a string")"));
  // The state is bound to the arguments of the request.
  EXPECT_EQ(
      round_trip(
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"other"},"requestState":")" +
          state + "\"," + kEnvelope + "}}"),
      refused);
  // Without an input response the input request is repeated.
  EXPECT_NE(modern_call(R"("requestState":")" + state + "\",").find(R"("inputRequests":{"q1")"),
            std::string::npos);
}

TEST_F(InputRequestTest, MissingClientCapabilityIsNamedInError) {
  start();
  const std::string needed =
      R"("message":"Client capability required","data":{"requiredCapabilities":{"elicitation":{"form":{}}}})";
  EXPECT_EQ(modern_call("", "{}"), error(-32021, needed));
  EXPECT_EQ(modern_call("", R"({"elicitation":{"url":{}}})"), error(-32021, needed));
  EXPECT_NE(modern_call("", R"({"elicitation":{}})").find("input_required"),
            std::string::npos);  // {} means form mode
}

Task<Result<std::string>> elicit_concurrently(Context context, EchoArgs) {
  auto elicitation = all(context.elicit("Who?", test::raw(kPersonForm), "who"), context.roots("where"));
  const auto [who, roots] = co_await elicitation;
  if (!who) co_return who.error();
  if (!roots) co_return roots.error();
  co_return std::string(who->content.text()) + " " + (roots->empty() ? "" : roots->front().uri);
}

class ConcurrentInputRequestTest : public InputRequestTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    tool(server, "interview", "", &elicit_concurrently);
  }
};

TEST_F(ConcurrentInputRequestTest, ModernClientReceivesAllInputRequestsInOneRound) {
  start();
  const std::string first = modern_call("");
  EXPECT_NE(first.find(R"("inputRequests":{"who":{"method":"elicitation/create")"), std::string::npos)
      << first;
  EXPECT_NE(first.find(R"(},"where":{"method":"roots/list","params":{}}},)"), std::string::npos) << first;
  // With half of the input responses, only the other half is requested again.
  const std::string second =
      modern_call(R"("inputResponses":{"where":{"roots":[{"uri":"file:///x"}]}},"requestState":")" +
                  state_of(first) + "\",");
  EXPECT_NE(second.find(R"("inputRequests":{"who":{)"), std::string::npos) << second;
  EXPECT_EQ(second.find("roots/list"), std::string::npos) << second;
  const std::string third = modern_call(
      R"("inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}},"requestState":")" +
      state_of(second) + "\",");
  EXPECT_NE(third.find(R"("text":"{\"name\":\"Ada\"} file:///x")"), std::string::npos) << third;
}

TEST_F(ConcurrentInputRequestTest, LegacyClientReceivesAllRequestsBeforeItAnswersOne) {
  start();
  initialize("2025-11-25", R"({"elicitation":{"form":{}},"roots":{}})");
  send(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":""}}})");
  EXPECT_NE(receive().find(R"("id":1,"method":"elicitation/create")"), std::string::npos);
  EXPECT_NE(receive().find(R"("id":2,"method":"roots/list")"), std::string::npos);
  send(R"({"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///x"}]}})");
  send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_EQ(receive(), result(R"({"content":[{"type":"text","text":"{\"name\":\"Ada\"} file:///x"}]})"));
}

// ---- our client against our server ----------------------------------------------------------------------

Task<Result<ElicitResult>> accept_name(std::string, json::Raw) {
  ElicitResult made;
  made.action = ElicitResult::Action::accept;
  made.content = test::raw(R"({"name":"Bob"})");
  co_return made;
}
std::vector<Root> some_roots() {
  return {{"file:///home", "home"}};
}

class ClientTest : public InputRequestTest, public ::testing::WithParamInterface<std::string> {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> notifications;

  void connect() {
    start();
    ClientOptions options;
    if (GetParam() != "probed") options.pinned_revision = revision_named(GetParam());
    options.handlers.elicit = accept_name;
    options.handlers.roots = some_roots;
    options.handlers.on_notification = [this](std::string_view method, const json::Raw&) {
      notifications.emplace_back(method);
    };
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect_over(test_end, options));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  bool supports_elicitation() const { return client->revision() >= Revision::r2025_06_18; }
};

TEST_P(ClientTest, UsesPinnedRevision) {
  connect();
  EXPECT_EQ(to_string(client->revision()), GetParam() == "probed" ? "2026-07-28" : GetParam());
  EXPECT_EQ(client->server_info()["name"].as_string(), "test");
  EXPECT_FALSE(client->server_capabilities()["tools"].absent());
}

TEST_P(ClientTest, ListsAllPagesAndCallsTools) {
  server.page_size(1);
  connect();
  const auto tools = loop.block_on(client->tools());
  ASSERT_TRUE(tools) << tools.error().to_string();
  EXPECT_EQ(tools->size(), 4u);
  const auto sum = loop.block_on(client->call_tool("add", test::raw(R"({"a":2,"b":3})")));
  ASSERT_TRUE(sum) << sum.error().to_string();
  EXPECT_EQ(sum->content.front().text(), R"({"sum":5})");
  EXPECT_EQ(sum->structured.text(), client->revision() >= Revision::r2025_06_18 ? R"({"sum":5})" : "");
  const auto unknown = loop.block_on(client->call_tool("nope"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().detail().rpc_code, -32602);
}

TEST_P(ClientTest, AnswersInputRequestsAndAddsDefaults) {
  connect();
  const auto got = loop.block_on(client->call_tool("interview", test::raw(R"({"message":"hi"})")));
  if (!supports_elicitation()) {
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_TRUE(got->is_error);
    return;
  }
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->content.front().text(), R"(hi {"name":"Bob","age":7} file:///home)");
}

TEST_P(ClientTest, ReceivesProgress) {
  tool(server, "steps", "", [](const Context& context, const EchoArgs&) {
    context.report_progress(1, 2);
    context.report_progress(2, 2);
    return std::string("done");
  });
  connect();
  std::vector<double> seen;
  ClientCallOptions options;
  options.on_progress = [&](double progress, std::optional<double> total, const std::string&) {
    EXPECT_EQ(total, 2);
    seen.push_back(progress);
  };
  const auto got = loop.block_on(client->call_tool("steps", test::raw(R"({"message":""})"), options));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(seen, (std::vector<double>{1, 2}));
}

TEST_P(ClientTest, RejectsStructuredContentThatViolatesSchema) {
  ToolSpec liar;
  liar.name = "liar";
  liar.output_schema = test::raw(R"({"type":"object","required":["x"]})");
  int calls = 0;
  ASSERT_TRUE(server.add_tool(liar, Server::PlainTool([&](const Context&, json::View) -> Result<ToolResult> {
                                ToolResult made;
                                made.structured = test::raw(++calls == 1 ? R"({"x":1})" : R"({"y":1})");
                                return made;
                              })));
  connect();
  EXPECT_TRUE(loop.block_on(client->call_tool("liar")));
  const auto broken = loop.block_on(client->call_tool("liar"));  // the server itself rejects the result
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().detail().rpc_code, -32603);
}

INSTANTIATE_TEST_SUITE_P(Revisions, ClientTest,
                         ::testing::Values("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                           "2026-07-28", "probed"),
                         [](const auto& revision) {
                           std::string name = revision.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// ---- probing --------------------------------------------------------------------------------------------

TEST_F(ServerTest, AnyResponseOfLegacyServerToProbeLeadsToInitialize) {
  for (const std::string answer :
       {R"("error":{"code":-32601,"message":"Method not found"})", R"("error":{"code":0,"message":"?"})"}) {
    auto [near_end, far_end] = make_channel(loop, loop);
    test_end = far_end;
    std::shared_ptr<Client> client;
    std::string problem;
    auto body = [](std::shared_ptr<Connection> c, std::shared_ptr<Client>& out,
                   std::string& why) -> Task<void> {
      ClientOptions options;
      const Result<std::shared_ptr<Client>> made = co_await Client::connect_over(c, options);
      if (made) out = *made;
      if (!made) why = made.error().to_string();
    };
    loop.spawn(body(near_end, client, problem));
    EXPECT_NE(receive().find("server/discover"), std::string::npos);
    send(R"({"jsonrpc":"2.0","id":1,)" + answer + "}");
    EXPECT_NE(receive().find(R"("method":"initialize","params":{"protocolVersion":"2025-11-25")"),
              std::string::npos);
    send(
        R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"0"}}})");
    EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    loop.run_until([&] { return client || !problem.empty(); });
    ASSERT_TRUE(client) << problem;
    EXPECT_EQ(client->revision(), Revision::r2024_11_05);
    loop.block_on(client->close());
  }
}

TEST(ProbeTest, ConnectFailsWhenLegacyServerLacksPinnedRevision) {
  Loop loop;
  const std::string script =
      R"(read l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'; cat >/dev/null)";
  ClientOptions options;
  options.pinned_revision = kNewestRevision;
  const auto client =
      loop.block_on(Client::connect(loop, "stdio:sh -c " + percent_encode_word(script), options));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(client.error().message().find("does not support revision 2026-07-28"), std::string::npos);
}

// A modern server that ignores the first request, like a server that starts slowly.
Task<void> slow_modern_server(std::shared_ptr<Connection> connection) {
  bool awake = false;
  while (true) {
    const Result<rpc::Message> message = co_await connection->receive();
    if (!message) co_return;
    if (message->is(rpc::Kind::notification)) continue;
    const bool discover = message->method() == "server/discover";
    if (!std::exchange(awake, true)) continue;
    const rpc::Rope answer =
        discover
            ? rpc::make_response(
                  message->id(),
                  test::raw(
                      R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"})"))
            : rpc::make_error(message->id(), -32601, "Method not found");
    const Result<void> sent = co_await connection->send(answer);
    if (!sent) co_return;
  }
}

TEST(ProbeTest, SlowModernServerIsProbedAgain) {
  Loop loop;
  auto [near_end, far_end] = make_channel(loop, loop);
  loop.spawn(slow_modern_server(far_end));
  ClientOptions options;
  options.probe_timeout = 20ms;
  const Result<std::shared_ptr<Client>> client = loop.block_on(Client::connect_over(near_end, options));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ((*client)->revision(), kNewestRevision);
  loop.block_on((*client)->close());
}

TEST(ProbeTest, ServerThatExitsWhenProbedIsRestartedAndInitialized) {
  Loop loop;
  const std::string script =
      R"(read l; case "$l" in *discover*) exit 1;; esac; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"fragile","version":"1"}}}'; cat >/dev/null)";
  const auto client = loop.block_on(Client::connect(loop, "stdio:sh -c " + percent_encode_word(script)));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ((*client)->server_info()["name"].as_string(), "fragile");
  EXPECT_EQ((*client)->revision(), Revision::r2025_03_26);
  loop.block_on((*client)->close());
}

}  // namespace
}  // namespace fairlead::mcp
