// R7.3, R8.3: an MCP client over HTTP: which era it finds and that it then works as
// everywhere else. Against servers that answer by script, and against ours.
#include "fairlead/mcp/blocking.hpp"

#include <algorithm>

#include "http/raw_client.hpp"
#include "http/script_server.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::Reply;
using test::ScriptServer;

const std::string kDiscovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private",)" +
    kServerMeta + "}";
const std::string kHello =
    R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}})";

std::string error_of(const Asked& asked, int code, const std::string& data = "null") {
  return R"({"jsonrpc":"2.0","id":)" + asked.id() + R"(,"error":{"code":)" + std::to_string(code) +
         R"(,"message":"no","data":)" + data + "}}";
}

class HttpEraTest : public ::testing::Test {
 public:
  Loop loop;
  ClientOptions options;
  std::shared_ptr<Client> client;

  Result<void> connect(const std::string& url) {
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect(loop, url, options));
    if (!made) return made.error();
    client = *made;
    return {};
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
  }
};

// A legacy server that answers the modern question with `refuse`.
ScriptServer::Script legacy_after(ScriptServer::Script refuse) {
  return [refuse](const Asked& asked, Reply& reply) {
    if (asked.has("server/discover")) return refuse(asked, reply);
    if (asked.has("\"initialize\"")) return reply.result(asked, kHello);
    if (asked.method == "GET") return reply.answer(405, "", "");
    reply.answer(202, "", "");
  };
}

TEST_F(HttpEraTest, AModernServerIsRecognised) {
  ScriptServer server([](const Asked& asked, Reply& reply) { reply.result(asked, kDiscovered); });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewest);
  EXPECT_EQ(client->server_info()["name"].as_string(), "test");
}

TEST_F(HttpEraTest, RefusalsThatLegacyServersKnowLeadToTheHandshake) {
  const ScriptServer::Script refusals[] = {
      [](const Asked&, Reply& reply) { reply.answer(400, "text/plain", "Bad Request"); },
      [](const Asked&, Reply& reply) { reply.answer(405, "", ""); },
      [](const Asked& asked, Reply& reply) { reply.json(400, error_of(asked, -32000)); },
      [](const Asked& asked, Reply& reply) { reply.json(200, error_of(asked, -32601)); },
      [](const Asked& asked, Reply& reply) {
        reply.json(400, error_of(asked, -32022, R"({"supported":["2025-11-25"]})"));
      },
      [](const Asked& asked, Reply& reply) { reply.result(asked, "{}"); },
  };
  for (const ScriptServer::Script& refuse : refusals) {
    ScriptServer server(legacy_after(refuse));
    const Result<void> connected = connect(server.url());
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(client->revision(), kNewestLegacy);
    loop.block_on(client->close());
  }
}

TEST_F(HttpEraTest, FailuresAreNoEvidence) {
  struct Case {
    ScriptServer::Script refuse;
    ErrorKind kind;
  };
  const Case cases[] = {
      {[](const Asked&, Reply& reply) { reply.answer(401, "", ""); }, ErrorKind::authorization},
      {[](const Asked&, Reply& reply) { reply.answer(403, "", ""); }, ErrorKind::authorization},
      {[](const Asked&, Reply& reply) { reply.answer(502, "text/plain", "later"); }, ErrorKind::http_status},
      {[](const Asked& asked, Reply& reply) { reply.json(500, error_of(asked, -32603)); },
       ErrorKind::http_status},
      {[](const Asked&, Reply& reply) { reply.answer(200, "text/html", "<html>"); },
       ErrorKind::invalid_content_type},
      {[](const Asked&, Reply& reply) { reply.hang_up(); }, ErrorKind::closed},
      {[](const Asked&, Reply& reply) { reply.client_closes(); }, ErrorKind::timeout},
      {[](const Asked& asked, Reply& reply) { reply.json(400, error_of(asked, -32020)); }, ErrorKind::remote},
      {[](const Asked& asked, Reply& reply) { reply.json(400, error_of(asked, -32021)); }, ErrorKind::remote},
      {[](const Asked& asked, Reply& reply) {
         reply.json(400, error_of(asked, -32022, R"({"supported":["2027-01-01"]})"));
       },
       ErrorKind::connection_failed},
  };
  options.handshake_timeout = 100ms;
  for (const Case& one : cases) {
    ScriptServer server(legacy_after(one.refuse));
    const Result<void> connected = connect(server.url());
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().kind(), one.kind) << connected.error().message();
    EXPECT_TRUE(server.asked("initialize").empty()) << connected.error().message();
  }
}

// Conformance trap 34.
TEST_F(HttpEraTest, ARefusalOfTheVeryRevisionThatIsOfferedIsAskedAbout) {
  std::atomic<int> posts = 0;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (++posts == 1)
      return reply.json(400,
                        error_of(asked, -32022, R"({"supported":["2026-07-28"],"requested":"2026-07-28"})"));
    reply.result(asked, kDiscovered);
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewest);
  EXPECT_EQ(server.asked("server/discover").size(), 2U);
  EXPECT_TRUE(server.asked("initialize").empty());
}

TEST_F(HttpEraTest, AModernServerNeedNotHaveDiscover) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.method == "GET") return reply.answer(405, "", "");
    if (asked.has("server/discover") || asked.has("\"initialize\""))
      return reply.json(404, error_of(asked, -32601));
    reply.result(asked, R"({"tools":[]})");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewest);
  EXPECT_TRUE(loop.block_on(client->tools()));
}

TEST_F(HttpEraTest, WithoutProbingTheHandshakeComesFirstAndTheServerMayAskForLess) {
  options.probe = false;
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\""))
      return reply.result(
          asked,
          R"({"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}})");
    reply.answer(asked.method == "GET" ? 404 : 202, "", "");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), Revision::r2025_03_26);
  EXPECT_TRUE(server.asked("server/discover").empty());
}

TEST_F(HttpEraTest, APinnedRevisionIsNotAskedAbout) {
  options.pinned = Revision::r2025_06_18;
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\""))
      return reply.result(
          asked,
          R"({"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}})");
    reply.answer(asked.method == "GET" ? 404 : 202, "", "");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_TRUE(server.asked("server/discover").empty());
}

TEST_F(HttpEraTest, AnEraIsRememberedUntilItProvesWrong) {
  options.eras = std::make_shared<EraCache>();
  std::atomic<bool> modern = false;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (modern && asked.has("\"initialize\"")) return reply.json(404, error_of(asked, -32601));
    if (modern && asked.has("server/discover")) return reply.result(asked, kDiscovered);
    legacy_after([](const Asked&, Reply& r) { r.answer(400, "", ""); })(asked, reply);
  });
  ASSERT_TRUE(connect(server.url()));
  loop.block_on(client->close());
  ASSERT_TRUE(connect(server.url("/other")));
  EXPECT_EQ(client->revision(), kNewestLegacy);
  EXPECT_EQ(server.asked("server/discover").size(), 1U);
  loop.block_on(client->close());
  modern = true;
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewest);
}

TEST_F(HttpEraTest, AServerThatRefusesInitializeAfterTheProbeGetsItOnAFreshConnection) {
  std::atomic<int> handshakes = 0;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\"") && ++handshakes == 1) return reply.json(400, error_of(asked, -32600));
    legacy_after([](const Asked& probe, Reply& r) { r.json(200, error_of(probe, -32000)); })(asked, reply);
  });
  const Result<void> connected = connect(server.url());
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_EQ(client->revision(), kNewestLegacy);
  EXPECT_EQ(server.asked("server/discover").size(), 1U);
  EXPECT_EQ(server.asked("\"initialize\"").size(), 2U);
}

// On -32020 the list is read again, once.
TEST_F(HttpEraTest, HeadersThatDoNotFitAreLookedUpAgainOnce) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("server/discover")) return reply.result(asked, kDiscovered);
    if (asked.has("tools/list")) {
      return reply.result(
          asked,
          R"({"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]})");
    }
    if (asked.headers.get("Mcp-Param-A") != "x" || asked.has("never"))
      return reply.json(400, error_of(asked, -32020));
    reply.result(asked, R"({"content":[]})");
  });
  ASSERT_TRUE(connect(server.url()));
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw(R"({"a":"x"})")));
  EXPECT_TRUE(called);
  EXPECT_EQ(server.asked("tools/call").size(), 2U);
  const Result<ToolResult> never =
      loop.block_on(client->call_tool("t", test::raw(R"({"a":"x","b":"never"})")));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().detail().rpc_code, -32020);
  EXPECT_EQ(server.asked("tools/call").size(), 4U);
  EXPECT_EQ(server.asked("tools/list").size(), 2U);
}

// ---- against our own server ----

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

Task<Result<std::vector<ResourceContents>>> read_one(Context, std::string uri, Server::Variables) {
  co_return std::vector<ResourceContents>(1, ResourceContents{uri, "", "text", {}});
}

class HttpPairTest : public HttpEraTest {
 public:
  Server server{"test", "1"};
  test::HttpServer listener;
  std::shared_ptr<transport::Endpoint> endpoint;
  std::atomic<bool> cancelled = false;

  static Task<Result<ToolResult>> ask(Context context) {
    Task<Result<std::vector<Root>>> asking = context.roots();
    const Result<std::vector<Root>> roots = co_await asking;
    if (!roots) co_return roots.error();
    co_return ToolResult::text(std::to_string(roots->size()) + " roots");
  }
  static Task<Result<ToolResult>> hang(Context context, HttpPairTest* test) {
    Event stopped;
    const std::stop_callback on_stop(context.stop(), [&] {
      test->cancelled = true;
      stopped.set();
    });
    const bool let_go = co_await stopped.wait(test->listener.thread().loop(), Clock::duration::max());
    static_cast<void>(let_go);
    co_return ToolResult::text("stopped");
  }

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "progress", "Talks", [](const Context& context, const Nothing&) {
      context.progress(1, 2);
      context.progress(2, 2);
      return std::string("done");
    });
    ToolSpec spec;
    spec.name = "ask";
    ASSERT_TRUE(server.add_tool(spec, Server::CoroutineTool([](Context c, json::Raw) { return ask(c); })));
    spec.name = "hang";
    ASSERT_TRUE(
        server.add_tool(spec, Server::CoroutineTool([this](Context c, json::Raw) { return hang(c, this); })));
    listener.thread().run(
        [&] { endpoint = transport::Endpoint::create(listener.thread().loop(), http_application(server)); });
    listener.route("/mcp", endpoint->handler());
    listener.route("/sse", endpoint->sse_handler("/messages"));
    listener.route("/messages", endpoint->messages_handler());
    options.handlers.roots = [] { return std::vector<Root>(2, Root{"file:///a", ""}); };
  }
  void TearDown() override {
    HttpEraTest::TearDown();
    listener.thread().run([&] {
      endpoint->close();
      endpoint.reset();
    });
  }
  std::size_t sessions() {
    return listener.thread().run([&] { return endpoint->sessions(); });
  }
  Result<std::string> call(const std::string& name, const std::string& arguments = "{}",
                           ToolCallOptions call_options = ToolCallOptions()) {
    const Result<ToolResult> result =
        loop.block_on(client->call_tool(name, test::raw(arguments), std::move(call_options)));
    if (!result) return result.error();
    return result->content.empty() ? std::string()
                                   : result->content[0].view()["text"].as_string().value_or("");
  }
  // Everything a client does, the same in every way of speaking.
  void use() {
    const Result<std::vector<json::Raw>> tools = loop.block_on(client->tools());
    ASSERT_TRUE(tools) << tools.error().message();
    EXPECT_EQ(tools->size(), 4U);
    EXPECT_EQ(call("echo", R"({"message":"h\u00e4llo"})").value(), "h\u00e4llo");
    int steps = 0;
    ToolCallOptions watched;
    watched.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
    EXPECT_EQ(call("progress", "{}", watched).value(), "done");
    EXPECT_EQ(steps, 2);
    EXPECT_EQ(call("ask").value(), "2 roots");
    ToolCallOptions impatient;
    impatient.timeout = 50ms;
    EXPECT_EQ(call("hang", "{}", impatient).error().kind(), ErrorKind::timeout);
    EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return cancelled.load(); })));
  }
};

TEST_F(HttpPairTest, TheModernEra) {
  ASSERT_TRUE(connect("http://" + listener.address() + "/mcp"));
  EXPECT_EQ(client->revision(), kNewest);
  use();
  EXPECT_EQ(sessions(), 0U);
}

TEST_F(HttpPairTest, EveryLegacyRevision) {
  for (const Revision revision : kRevisions) {
    if (is_modern(revision)) continue;
    options.pinned = revision;
    cancelled = false;
    const Result<void> connected = connect("http://" + listener.address() + "/mcp");
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(sessions(), 1U);
    use();
    loop.block_on(client->close());
    EXPECT_EQ(sessions(), 0U) << "the session was not ended";
  }
}

TEST_F(HttpPairTest, TheHttpSsePair) {
  options.pinned = Revision::r2024_11_05;
  const Result<void> connected = connect("http://" + listener.address() + "/sse");
  ASSERT_TRUE(connected) << connected.error().message();
  use();
}

TEST_F(HttpPairTest, WebSocketsInBothEras) {
  for (const Revision revision : {kNewest, kNewestLegacy}) {
    options.pinned = revision;
    cancelled = false;
    const Result<void> connected = connect("ws://" + listener.address() + "/mcp");
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(client->revision(), revision);
    use();
    loop.block_on(client->close());
  }
}

Task<bool> connect_and_list(Loop* on, std::string url, ClientOptions given) {
  Task<Result<std::shared_ptr<Client>>> connecting = Client::connect(*on, url, given);
  const Result<std::shared_ptr<Client>> made = co_await connecting;
  if (!made) co_return false;
  Task<Result<std::vector<json::Raw>>> listing = (*made)->tools();
  const Result<std::vector<json::Raw>> tools = co_await listing;
  Task<void> closing = (*made)->close();
  co_await closing;
  co_return tools.has_value();
}

// A program that connects and calls without going back to the loop in between.
TEST_F(HttpPairTest, FirstCallRightAfterTheHandshakeLeavesOverWebSocket) {
  options.pinned = kNewestLegacy;
  options.connect.limits.call_timeout = 5s;
  EXPECT_TRUE(loop.block_on(connect_and_list(&loop, "ws://" + listener.address() + "/mcp", options)));
}

TEST_F(HttpPairTest, ListeningInTheModernEra) {
  ResourceSpec spec;
  spec.uri = "test://a";
  spec.name = "a";
  ASSERT_TRUE(server.add_resource(spec, read_one));
  std::vector<std::string> heard;
  options.handlers.notified = [&](std::string_view method, const json::Raw&) {
    heard.push_back(std::string(method));
  };
  ASSERT_TRUE(connect("http://" + listener.address() + "/mcp"));
  const Result<std::uint64_t> subscription = loop.block_on(client->subscribe("test://a"));
  ASSERT_TRUE(subscription) << subscription.error().message();
  listener.thread().run([&] { server.resource_updated("test://a"); });
  EXPECT_TRUE(loop.block_on(test::eventually(
      loop, [&] { return std::ranges::count(heard, "notifications/resources/updated") == 1; })));
  EXPECT_TRUE(loop.block_on(client->unlisten(*subscription)));
}

TEST_F(HttpPairTest, ABlockingClient) {
  Result<blocking::Client> made = blocking::Client::connect("http://" + listener.address() + "/mcp");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->tools()->size(), 4U);
}

}  // namespace
}  // namespace fairlead::mcp
