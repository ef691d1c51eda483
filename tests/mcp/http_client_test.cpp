// R7.3, R8.3: an MCP client over HTTP. Era detection is tested with scripted servers; that the client works
// as over other transports is tested with Fairlead's own server.
#include "fairlead/mcp/blocking.hpp"

#include <algorithm>

#include "http/raw_client.hpp"
#include "http/script_server.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;
using test::ReceivedRequest;
using test::Reply;
using test::ScriptServer;

const std::string kDiscovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private",)" +
    kServerMeta + "}";
const std::string kHello =
    R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}})";

std::string error_of(const ReceivedRequest& request, int code, const std::string& data = "null") {
  return R"({"jsonrpc":"2.0","id":)" + request.id() + R"(,"error":{"code":)" + std::to_string(code) +
         R"(,"message":"no","data":)" + data + "}}";
}

class HttpEraTest : public ::testing::Test {
 public:
  Loop loop;
  ClientOptions options;
  std::shared_ptr<Client> client;

  Result<void> connect(const std::string& url) {
    Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect(loop, url, options));
    if (!connected) return connected.error();
    client = *connected;
    return {};
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
  }
};

// A legacy server that answers server/discover with `respond_to_probe`.
ScriptServer::Script legacy_server(ScriptServer::Script respond_to_probe) {
  return [respond_to_probe](const ReceivedRequest& request, Reply& reply) {
    if (request.has("server/discover")) return respond_to_probe(request, reply);
    if (request.has("\"initialize\"")) return reply.result(request, kHello);
    if (request.method == "GET") return reply.respond(405, "", "");
    reply.respond(202, "", "");
  };
}

TEST_F(HttpEraTest, ModernServerIsDetected) {
  ScriptServer server(
      [](const ReceivedRequest& request, Reply& reply) { reply.result(request, kDiscovered); });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewestRevision);
  EXPECT_EQ(client->server_info()["name"].as_string(), "test");
}

TEST_F(HttpEraTest, RejectedProbeLeadsToInitialize) {
  const ScriptServer::Script rejections[] = {
      [](const ReceivedRequest&, Reply& reply) { reply.respond(400, "text/plain", "Bad Request"); },
      [](const ReceivedRequest&, Reply& reply) { reply.respond(405, "", ""); },
      [](const ReceivedRequest& request, Reply& reply) { reply.json(400, error_of(request, -32000)); },
      [](const ReceivedRequest& request, Reply& reply) { reply.json(200, error_of(request, -32601)); },
      [](const ReceivedRequest& request, Reply& reply) {
        reply.json(400, error_of(request, -32022, R"({"supported":["2025-11-25"]})"));
      },
      [](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); },
  };
  for (const ScriptServer::Script& respond_to_probe : rejections) {
    ScriptServer server(legacy_server(respond_to_probe));
    const Result<void> connected = connect(server.url());
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(client->revision(), kNewestLegacyRevision);
    loop.block_on(client->close());
  }
}

TEST_F(HttpEraTest, ConnectFailsWhenProbeFailsForOtherReasons) {
  struct Case {
    ScriptServer::Script respond_to_probe;
    ErrorKind kind;
  };
  const Case cases[] = {
      {[](const ReceivedRequest&, Reply& reply) { reply.respond(401, "", ""); }, ErrorKind::authorization},
      {[](const ReceivedRequest&, Reply& reply) { reply.respond(403, "", ""); }, ErrorKind::authorization},
      {[](const ReceivedRequest&, Reply& reply) { reply.respond(502, "text/plain", "later"); },
       ErrorKind::http_status},
      {[](const ReceivedRequest& request, Reply& reply) { reply.json(500, error_of(request, -32603)); },
       ErrorKind::http_status},
      {[](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/html", "<html>"); },
       ErrorKind::invalid_content_type},
      {[](const ReceivedRequest&, Reply& reply) { reply.disconnect(); }, ErrorKind::closed},
      {[](const ReceivedRequest&, Reply& reply) { reply.wait_for_client_close(); }, ErrorKind::timeout},
      {[](const ReceivedRequest& request, Reply& reply) { reply.json(400, error_of(request, -32020)); },
       ErrorKind::remote},
      {[](const ReceivedRequest& request, Reply& reply) { reply.json(400, error_of(request, -32021)); },
       ErrorKind::remote},
      {[](const ReceivedRequest& request, Reply& reply) {
         reply.json(400, error_of(request, -32022, R"({"supported":["2027-01-01"]})"));
       },
       ErrorKind::connection_failed},
  };
  options.handshake_timeout = 100ms;
  for (const Case& test_case : cases) {
    ScriptServer server(legacy_server(test_case.respond_to_probe));
    const Result<void> connected = connect(server.url());
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().kind(), test_case.kind) << connected.error().message();
    EXPECT_TRUE(server.requests("initialize").empty()) << connected.error().message();
  }
}

// Conformance trap 34.
TEST_F(HttpEraTest, ProbeIsRepeatedWhenServerRejectsRevisionItSupports) {
  std::atomic<int> posts = 0;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (++posts == 1)
      return reply.json(
          400, error_of(request, -32022, R"({"supported":["2026-07-28"],"requested":"2026-07-28"})"));
    reply.result(request, kDiscovered);
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewestRevision);
  EXPECT_EQ(server.requests("server/discover").size(), 2U);
  EXPECT_TRUE(server.requests("initialize").empty());
}

TEST_F(HttpEraTest, ModernServerWithoutDiscoverIsDetected) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.method == "GET") return reply.respond(405, "", "");
    if (request.has("server/discover") || request.has("\"initialize\""))
      return reply.json(404, error_of(request, -32601));
    reply.result(request, R"({"tools":[]})");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewestRevision);
  EXPECT_TRUE(loop.block_on(client->tools()));
}

TEST_F(HttpEraTest, InitializeIsSentFirstWhenProbingIsOff) {
  options.probe = false;
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"initialize\""))
      return reply.result(
          request,
          R"({"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}})");
    reply.respond(request.method == "GET" ? 404 : 202, "", "");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), Revision::r2025_03_26);
  EXPECT_TRUE(server.requests("server/discover").empty());
}

TEST_F(HttpEraTest, PinnedLegacyRevisionIsNotProbed) {
  options.pinned_revision = Revision::r2025_06_18;
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"initialize\""))
      return reply.result(
          request,
          R"({"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}})");
    reply.respond(request.method == "GET" ? 404 : 202, "", "");
  });
  ASSERT_TRUE(connect(server.url()));
  EXPECT_TRUE(server.requests("server/discover").empty());
}

TEST_F(HttpEraTest, CachedEraIsUsedUntilServerRejectsIt) {
  options.era_cache = std::make_shared<EraCache>();
  std::atomic<bool> modern = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (modern && request.has("\"initialize\"")) return reply.json(404, error_of(request, -32601));
    if (modern && request.has("server/discover")) return reply.result(request, kDiscovered);
    legacy_server([](const ReceivedRequest&, Reply& r) { r.respond(400, "", ""); })(request, reply);
  });
  ASSERT_TRUE(connect(server.url()));
  loop.block_on(client->close());
  ASSERT_TRUE(connect(server.url("/other")));
  EXPECT_EQ(client->revision(), kNewestLegacyRevision);
  EXPECT_EQ(server.requests("server/discover").size(), 1U);
  loop.block_on(client->close());
  modern = true;
  ASSERT_TRUE(connect(server.url()));
  EXPECT_EQ(client->revision(), kNewestRevision);
}

TEST_F(HttpEraTest, InitializeRejectedAfterProbeIsRetriedOnNewConnection) {
  std::atomic<int> handshakes = 0;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"initialize\"") && ++handshakes == 1) return reply.json(400, error_of(request, -32600));
    legacy_server([](const ReceivedRequest& probe, Reply& r) { r.json(200, error_of(probe, -32000)); })(
        request, reply);
  });
  const Result<void> connected = connect(server.url());
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_EQ(client->revision(), kNewestLegacyRevision);
  EXPECT_EQ(server.requests("server/discover").size(), 1U);
  EXPECT_EQ(server.requests("\"initialize\"").size(), 2U);
}

TEST_F(HttpEraTest, HeaderMismatchListsToolsAgainAndRetriesOnce) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("server/discover")) return reply.result(request, kDiscovered);
    if (request.has("tools/list")) {
      return reply.result(
          request,
          R"({"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]})");
    }
    if (request.headers.get("Mcp-Param-A") != "x" || request.has("never"))
      return reply.json(400, error_of(request, -32020));
    reply.result(request, R"({"content":[]})");
  });
  ASSERT_TRUE(connect(server.url()));
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw(R"({"a":"x"})")));
  EXPECT_TRUE(called);
  EXPECT_EQ(server.requests("tools/call").size(), 2U);
  const Result<ToolResult> never =
      loop.block_on(client->call_tool("t", test::raw(R"({"a":"x","b":"never"})")));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().detail().rpc_code, -32020);
  EXPECT_EQ(server.requests("tools/call").size(), 4U);
  EXPECT_EQ(server.requests("tools/list").size(), 2U);
}

// ---- against Fairlead's server --------------------------------------------------------------------------

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

Task<Result<std::vector<ResourceContents>>> read_text(Context, std::string uri, Server::Variables) {
  co_return std::vector<ResourceContents>(1, ResourceContents{uri, "", "text", {}});
}

class HttpClientServerTest : public HttpEraTest {
 public:
  Server server{"test", "1"};
  test::HttpServer listener;
  std::shared_ptr<transport::Endpoint> endpoint;
  std::atomic<bool> cancelled = false;

  static Task<Result<ToolResult>> count_roots(Context context) {
    const Result<std::vector<Root>> roots = co_await context.roots();
    if (!roots) co_return roots.error();
    co_return ToolResult::text(std::to_string(roots->size()) + " roots");
  }
  static Task<Result<ToolResult>> hang(Context context, HttpClientServerTest* test) {
    Event stopped;
    const std::stop_callback on_stop(context.stop(), [&] {
      test->cancelled = true;
      stopped.set();
    });
    co_await stopped.wait(test->listener.thread().loop());
    co_return ToolResult::text("stopped");
  }

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "progress", "Talks", [](const Context& context, const Nothing&) {
      context.report_progress(1, 2);
      context.report_progress(2, 2);
      return std::string("done");
    });
    ToolSpec spec;
    spec.name = "ask";
    ASSERT_TRUE(
        server.add_tool(spec, Server::CoroutineTool([](Context c, json::Raw) { return count_roots(c); })));
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
  std::size_t session_count() {
    return listener.thread().run([&] { return endpoint->session_count(); });
  }
  Result<std::string> call(const std::string& name, const std::string& arguments = "{}",
                           ClientCallOptions call_options = ClientCallOptions()) {
    const Result<ToolResult> result =
        loop.block_on(client->call_tool(name, test::raw(arguments), std::move(call_options)));
    if (!result) return result.error();
    return result->content.empty() ? std::string()
                                   : result->content[0].view()["text"].as_string().value_or("");
  }
  // Calls all functions of a client. They must work the same over every transport and in every revision.
  void exercise_client() {
    const Result<std::vector<json::Raw>> tools = loop.block_on(client->tools());
    ASSERT_TRUE(tools) << tools.error().message();
    EXPECT_EQ(tools->size(), 4U);
    EXPECT_EQ(call("echo", R"({"message":"h\u00e4llo"})").value(), "h\u00e4llo");
    int steps = 0;
    ClientCallOptions watched;
    watched.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
    EXPECT_EQ(call("progress", "{}", watched).value(), "done");
    EXPECT_EQ(steps, 2);
    EXPECT_EQ(call("ask").value(), "2 roots");
    ClientCallOptions impatient;
    impatient.timeout = 50ms;
    EXPECT_EQ(call("hang", "{}", impatient).error().kind(), ErrorKind::timeout);
    EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return cancelled.load(); })));
  }
};

TEST_F(HttpClientServerTest, ClientWorksInModernEra) {
  ASSERT_TRUE(connect("http://" + listener.address() + "/mcp"));
  EXPECT_EQ(client->revision(), kNewestRevision);
  exercise_client();
  EXPECT_EQ(session_count(), 0U);
}

TEST_F(HttpClientServerTest, ClientWorksInEveryLegacyRevision) {
  for (const Revision revision : kRevisions) {
    if (is_modern(revision)) continue;
    options.pinned_revision = revision;
    cancelled = false;
    const Result<void> connected = connect("http://" + listener.address() + "/mcp");
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(session_count(), 1U);
    exercise_client();
    loop.block_on(client->close());
    EXPECT_EQ(session_count(), 0U) << "the session was not ended";
  }
}

TEST_F(HttpClientServerTest, ClientWorksOverHttpSse) {
  options.pinned_revision = Revision::r2024_11_05;
  const Result<void> connected = connect("http://" + listener.address() + "/sse");
  ASSERT_TRUE(connected) << connected.error().message();
  exercise_client();
}

TEST_F(HttpClientServerTest, ClientWorksOverWebSocketInBothEras) {
  for (const Revision revision : {kNewestRevision, kNewestLegacyRevision}) {
    options.pinned_revision = revision;
    cancelled = false;
    const Result<void> connected = connect("ws://" + listener.address() + "/mcp");
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ(client->revision(), revision);
    exercise_client();
    loop.block_on(client->close());
  }
}

Task<bool> connect_and_list(Loop* loop, std::string url, ClientOptions options) {
  const Result<std::shared_ptr<Client>> client = co_await Client::connect(*loop, url, options);
  if (!client) co_return false;
  const Result<std::vector<json::Raw>> tools = co_await (*client)->tools();
  co_await (*client)->close();
  co_return tools.has_value();
}

// The test connects and calls without returning to the loop in between.
TEST_F(HttpClientServerTest, CallRightAfterHandshakeIsSentOverWebSocket) {
  options.pinned_revision = kNewestLegacyRevision;
  options.connect.limits.call_timeout = 5s;
  EXPECT_TRUE(loop.block_on(connect_and_list(&loop, "ws://" + listener.address() + "/mcp", options)));
}

TEST_F(HttpClientServerTest, SubscriberIsNotifiedInModernEra) {
  ResourceSpec spec;
  spec.uri = "test://a";
  spec.name = "a";
  ASSERT_TRUE(server.add_resource(spec, read_text));
  std::vector<std::string> notifications;
  options.handlers.on_notification = [&](std::string_view method, const json::Raw&) {
    notifications.push_back(std::string(method));
  };
  ASSERT_TRUE(connect("http://" + listener.address() + "/mcp"));
  const Result<std::uint64_t> subscription = loop.block_on(client->subscribe("test://a"));
  ASSERT_TRUE(subscription) << subscription.error().message();
  listener.thread().run([&] { server.notify_resource_updated("test://a"); });
  EXPECT_TRUE(loop.block_on(test::eventually(
      loop, [&] { return std::ranges::count(notifications, "notifications/resources/updated") == 1; })));
  EXPECT_TRUE(loop.block_on(client->unsubscribe(*subscription)));
}

TEST_F(HttpClientServerTest, BlockingClientListsTools) {
  Result<blocking::Client> blocking_client =
      blocking::Client::connect("http://" + listener.address() + "/mcp");
  ASSERT_TRUE(blocking_client) << blocking_client.error().message();
  EXPECT_EQ(blocking_client->tools()->size(), 4U);
}

}  // namespace
}  // namespace fairlead::mcp
