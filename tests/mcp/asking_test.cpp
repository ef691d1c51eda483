// A handler that asks back runs the same against both eras; and our client against our server, through every
// revision.
#include "fairlead/loop/all.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kPersonForm =
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}}})";

Task<Result<std::string>> interview(Context context, EchoArgs in) {
  Task<Result<ElicitResult>> asking = context.elicit("Who?", test::raw(kPersonForm));
  const Result<ElicitResult> who = co_await asking;
  if (!who) co_return who.error();
  if (who->action != ElicitResult::Action::accept) co_return std::string("declined");
  Task<Result<std::vector<Root>>> rooting = context.roots();
  const Result<std::vector<Root>> roots = co_await rooting;
  if (!roots) co_return roots.error();
  co_return in.message + " " + std::string(who->content.text()) + " " +
      (roots->empty() ? "" : roots->front().uri);
}

class AskingTest : public ServerTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    tool(server, "interview", "", &interview);
  }
  std::string modern_call(const std::string& extra,
                          const std::string& capabilities = R"({"elicitation":{"form":{}},"roots":{}})") {
    return ask(
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"hi"},)" +
        extra +
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
        capabilities + "}}}");
  }
  static std::string state_of(const std::string& answer) {
    const std::size_t at = answer.find(R"("requestState":")") + 16;
    return answer.substr(at, answer.find('"', at) - at);
  }
};

TEST_F(AskingTest, LegacyClientIsSentRequests) {
  start();
  initialize("2025-11-25", R"({"elicitation":{"form":{}},"roots":{}})");
  say(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"hi"}}})");
  EXPECT_EQ(
      hear(),
      R"({"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":)" +
          std::string(kPersonForm) + "}}");
  say(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}})");
  say(R"({"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///x"}]}})");
  EXPECT_EQ(hear(), result(R"({"content":[{"type":"text","text":"hi {\"name\":\"Ada\"} file:///x"}]})"));
}

TEST_F(AskingTest, ModernClientCarriesTheAnswersRoundByRound) {
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

TEST_F(AskingTest, TamperedForeignAndMissingAnswersAreHandled) {
  start();
  const std::string state = state_of(modern_call(""));
  std::string tampered = state;
  tampered[10] = tampered[10] == 'A' ? 'B' : 'A';
  const std::string refused =
      error(-32602, R"("message":"requestState is not valid","data":{"reason":"invalid_request_state"})");
  EXPECT_EQ(modern_call(R"("requestState":")" + tampered + "\","), refused);
  EXPECT_EQ(modern_call(R"("requestState":7,)"),
            error(-32602, R"("message":"requestState is not a string")"));
  // The same state with other arguments is another question.
  EXPECT_EQ(
      ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":"other"},"requestState":")" +
          state + "\"," + kEnvelope + "}}"),
      refused);
  // No answer: the question is asked again.
  EXPECT_NE(modern_call(R"("requestState":")" + state + "\",").find(R"("inputRequests":{"q1")"),
            std::string::npos);
}

TEST_F(AskingTest, ClientWithoutTheCapabilityIsToldWhichOneItNeeds) {
  start();
  const std::string needed =
      R"("message":"Client capability required","data":{"requiredCapabilities":{"elicitation":{"form":{}}}})";
  EXPECT_EQ(modern_call("", "{}"), error(-32021, needed));
  EXPECT_EQ(modern_call("", R"({"elicitation":{"url":{}}})"), error(-32021, needed));
  EXPECT_NE(modern_call("", R"({"elicitation":{}})").find("input_required"),
            std::string::npos);  // {} means forms
}

Task<Result<std::string>> ask_together(Context context, EchoArgs) {
  auto asking = all(context.elicit("Who?", test::raw(kPersonForm), "who"), context.roots("where"));
  const auto [who, roots] = co_await asking;
  if (!who) co_return who.error();
  if (!roots) co_return roots.error();
  co_return std::string(who->content.text()) + " " + (roots->empty() ? "" : roots->front().uri);
}

class AskingTogetherTest : public AskingTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    tool(server, "interview", "", &ask_together);
  }
};

TEST_F(AskingTogetherTest, ModernClientGetsAllQuestionsInOneRound) {
  start();
  const std::string first = modern_call("");
  EXPECT_NE(first.find(R"("inputRequests":{"who":{"method":"elicitation/create")"), std::string::npos)
      << first;
  EXPECT_NE(first.find(R"(},"where":{"method":"roots/list","params":{}}},)"), std::string::npos) << first;
  // Half of the answers: only the other half is asked again.
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

TEST_F(AskingTogetherTest, LegacyClientIsSentAllRequestsBeforeItAnswersOne) {
  start();
  initialize("2025-11-25", R"({"elicitation":{"form":{}},"roots":{}})");
  say(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interview","arguments":{"message":""}}})");
  EXPECT_NE(hear().find(R"("id":1,"method":"elicitation/create")"), std::string::npos);
  EXPECT_NE(hear().find(R"("id":2,"method":"roots/list")"), std::string::npos);
  say(R"({"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///x"}]}})");
  say(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_EQ(hear(), result(R"({"content":[{"type":"text","text":"{\"name\":\"Ada\"} file:///x"}]})"));
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

class ClientTest : public AskingTest, public ::testing::WithParamInterface<std::string> {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> notified;

  void connect() {
    start();
    ClientOptions options;
    if (GetParam() != "probed") options.pinned = revision_named(GetParam());
    options.handlers.elicit = accept_name;
    options.handlers.roots = some_roots;
    options.handlers.notified = [this](std::string_view method, const json::Raw&) {
      notified.emplace_back(method);
    };
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::on(far, options));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  bool knows_elicitation() const { return client->revision() >= Revision::r2025_06_18; }
};

TEST_P(ClientTest, SpeaksTheRevisionItWasPinnedTo) {
  connect();
  EXPECT_EQ(to_string(client->revision()), GetParam() == "probed" ? "2026-07-28" : GetParam());
  EXPECT_EQ(client->server_info()["name"].as_string(), "test");
  EXPECT_FALSE(client->capabilities()["tools"].absent());
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

TEST_P(ClientTest, AnswersWhatTheServerAsksAndFillsInDefaults) {
  connect();
  const auto got = loop.block_on(client->call_tool("interview", test::raw(R"({"message":"hi"})")));
  if (!knows_elicitation()) {
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_TRUE(got->is_error);
    return;
  }
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->content.front().text(), R"(hi {"name":"Bob","age":7} file:///home)");
}

TEST_P(ClientTest, SeesProgress) {
  tool(server, "steps", "", [](const Context& context, const EchoArgs&) {
    context.progress(1, 2);
    context.progress(2, 2);
    return std::string("done");
  });
  connect();
  std::vector<double> seen;
  ToolCallOptions options;
  options.on_progress = [&](double progress, std::optional<double> total, const std::string&) {
    EXPECT_EQ(total, 2);
    seen.push_back(progress);
  };
  const auto got = loop.block_on(client->call_tool("steps", test::raw(R"({"message":""})"), options));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(seen, (std::vector<double>{1, 2}));
}

TEST_P(ClientTest, RefusesStructuredContentThatBreaksItsSchema) {
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
  const auto broken = loop.block_on(client->call_tool("liar"));  // our own server notices already
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

TEST_F(ServerTest, ProbeFallsBackToALegacyServerWhateverItAnswers) {
  for (const std::string answer :
       {R"("error":{"code":-32601,"message":"Method not found"})", R"("error":{"code":0,"message":"?"})"}) {
    auto [near_end, far_end] = make_channel(loop, loop);
    far = far_end;
    std::shared_ptr<Client> client;
    std::string problem;
    auto body = [](std::shared_ptr<Connection> c, std::shared_ptr<Client>& out,
                   std::string& why) -> Task<void> {
      ClientOptions options;
      Task<Result<std::shared_ptr<Client>>> connecting = Client::on(c, options);
      const Result<std::shared_ptr<Client>> made = co_await connecting;
      if (made) out = *made;
      if (!made) why = made.error().to_string();
    };
    loop.spawn(body(near_end, client, problem));
    EXPECT_NE(hear().find("server/discover"), std::string::npos);
    say(R"({"jsonrpc":"2.0","id":1,)" + answer + "}");
    EXPECT_NE(hear().find(R"("method":"initialize","params":{"protocolVersion":"2025-11-25")"),
              std::string::npos);
    say(R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"0"}}})");
    EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    loop.run_until([&] { return client || !problem.empty(); });
    ASSERT_TRUE(client) << problem;
    EXPECT_EQ(client->revision(), Revision::r2024_11_05);
    loop.block_on(client->close());
  }
}

TEST(Probe, APinnedRevisionThatALegacyServerDoesNotKnowIsAnError) {
  Loop loop;
  const std::string script =
      R"(read l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'; cat >/dev/null)";
  ClientOptions options;
  options.pinned = kNewest;
  const auto client =
      loop.block_on(Client::connect(loop, "stdio:sh -c " + percent_encode_word(script), options));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(client.error().message().find("does not speak revision 2026-07-28"), std::string::npos);
}

// Silent at first, as one is that takes long to start; and it knows the modern era only.
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

TEST(Probe, AModernServerThatIsSlowToStartIsAskedOnceMore) {
  Loop loop;
  auto [near_end, far_end] = make_channel(loop, loop);
  loop.spawn(slow_modern_server(far_end));
  ClientOptions options;
  options.probe_timeout = 20ms;
  const Result<std::shared_ptr<Client>> client = loop.block_on(Client::on(near_end, options));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ((*client)->revision(), kNewest);
  loop.block_on((*client)->close());
}

TEST(Probe, ServerThatDiesOfItIsStartedAgainAndSpokenToInTheLegacyWay) {
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
