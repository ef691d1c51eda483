// An MCP server over real HTTP: what a client sees of sessions, events, polling, subscriptions and
// WebSockets.
#include "fairlead/http/authenticator.hpp"
#include "http/raw_client.hpp"
#include "http/websocket.hpp"
#include "mcp/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
namespace websocket = http::websocket;

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

class AlwaysAlice final : public http::Authenticator {
 public:
  Task<http::Authentication> authenticate(const http::Request&) override {
    auto alice = std::make_shared<Principal>();
    alice->user = "alice";
    co_return http::Authentication(PrincipalPtr(std::move(alice)));
  }
};

http::ServerOptions everybody_is_alice() {
  http::ServerOptions options;
  options.authenticator = std::make_shared<AlwaysAlice>();
  return options;
}

class HttpTest : public ::testing::Test {
 public:
  Server server{"test", "1"};
  test::HttpServer listener{everybody_is_alice()};
  std::shared_ptr<transport::Endpoint> endpoint;
  std::string session;
  Event release;  // of the loop's thread

  static Task<Result<ToolResult>> poll(Context context, HttpTest* test) {
    context.close_stream();
    const bool let_go = co_await test->release.wait(test->listener.thread().loop(), Clock::duration::max());
    static_cast<void>(let_go);
    co_return ToolResult::text("polled");
  }
  static Task<Result<ToolResult>> ask(Context context) {
    Task<Result<std::vector<Root>>> asking = context.roots();
    const Result<std::vector<Root>> roots = co_await asking;
    if (!roots) co_return roots.error();
    co_return ToolResult::text(std::to_string(roots->size()) + " roots for " + std::string(context.user()));
  }

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "progress", "Talks", [](const Context& context, const Nothing&) {
      context.progress(1, 1);
      return std::string("done");
    });
    ToolSpec spec;
    spec.name = "poll";
    ASSERT_TRUE(
        server.add_tool(spec, Server::CoroutineTool([this](Context c, json::Raw) { return poll(c, this); })));
    spec.name = "ask";
    ASSERT_TRUE(server.add_tool(spec, Server::CoroutineTool([](Context c, json::Raw) { return ask(c); })));
    transport::EndpointOptions options;
    options.retry = 10ms;
    listener.thread().run([&] {
      endpoint = transport::Endpoint::create(listener.thread().loop(), http_application(server), options);
    });
    listener.route("/mcp", endpoint->handler());
  }
  void TearDown() override {
    listener.thread().run([&] {
      release.set();
      endpoint->close();
      endpoint.reset();
    });
  }

  std::string head(const std::string& method, const std::string& fields = {}) const {
    return method + " /mcp HTTP/1.1\r\nHost: localhost\r\n" +
           (session.empty() ? "" : "Mcp-Session-Id: " + session + "\r\n") + fields;
  }
  std::string post(const std::string& body, const std::string& fields = {}) const {
    return head("POST",
                fields + "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n" +
                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n") +
           body;
  }
  std::string get(const std::string& fields = {}) const {
    return head("GET", fields + "Accept: text/event-stream\r\n\r\n");
  }
  static std::string request(int id, const std::string& method, const std::string& params = "{}") {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method + R"(","params":)" +
           params + "}";
  }
  static std::string call(int id, const std::string& tool, const std::string& more = {}) {
    return request(id, "tools/call", R"({"name":")" + tool + R"(","arguments":{})" + more + "}");
  }
  static RawClient::Answer ask_head(RawClient& client, const std::string& bytes) {
    return client.send(bytes) ? client.answer(true) : RawClient::Answer();
  }
  void initialize(RawClient& client, const std::string& capabilities = "{}") {
    const auto answer = client.ask(post(
        request(0, "initialize",
                R"({"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":)" +
                    capabilities + "}")));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::size_t at = answer.head.find("Mcp-Session-Id: ");
    ASSERT_NE(at, std::string::npos);
    session = answer.head.substr(at + 16, answer.head.find("\r\n", at) - at - 16);
  }
};

TEST_F(HttpTest, AStreamIsPolledForItsAnswer) {
  RawClient client = listener.client();
  initialize(client);
  const auto paused = client.ask(post(call(1, "poll")));
  EXPECT_EQ(paused.body, "id: 1-1\nretry: 10\ndata: \n\n");
  ASSERT_TRUE(client.send(get("Last-Event-ID: 1-1\r\n")));
  listener.thread().run([&] { release.set(); });
  const auto rest = client.answer();
  EXPECT_EQ(rest.body,
            "id: 1-2\nevent: message\ndata: "
            R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"polled"}]}})"
            "\n\n");
}

TEST_F(HttpTest, AQuestionGoesToThePostThatCausedIt) {
  RawClient client = listener.client();
  initialize(client, R"({"roots":{}})");
  ASSERT_TRUE(client.send(post(call(1, "ask"))));
  EXPECT_EQ(client.answer(true).status, 200);
  std::string events = client.chunk();
  while (events.find("roots/list") == std::string::npos) events += client.chunk();
  const std::size_t at = events.find(R"("id":)") + 5;
  const std::string id = events.substr(at, events.find(',', at) - at);
  RawClient other = listener.client();
  EXPECT_EQ(
      other.ask(post(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"roots":[{"uri":"file:///a"}]}})"))
          .status,
      202);
  EXPECT_NE(client.chunk().find("1 roots for alice"), std::string::npos);
}

TEST_F(HttpTest, ListChangesGoToTheStandaloneStream) {
  RawClient client = listener.client();
  initialize(client);
  ASSERT_TRUE(client.send(get()));
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.chunk(), "id: 0-0\nretry: 10\ndata: \n\n");
  server.remove_tool("echo");
  EXPECT_EQ(client.chunk(),
            "id: 0-1\nevent: message\ndata: "
            R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})"
            "\n\n");
}

TEST_F(HttpTest, ModernSubscriptionsEndWhenTheServerWindsDown) {
  RawClient client = listener.client();
  const std::string listen =
      request(7, "subscriptions/listen", R"({"notifications":{"toolsListChanged":true},)" + kEnvelope + "}");
  ASSERT_TRUE(
      client.send(post(listen, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n")));
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_NE(client.chunk().find("acknowledged"), std::string::npos);
  server.remove_tool("echo");
  EXPECT_NE(
      client.chunk().find(R"(list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}})"),
      std::string::npos);
  listener.thread().run([&] { listener.thread().loop().spawn(endpoint->wind_down()); });
  EXPECT_NE(client.chunk().find(R"("id":7,"result":{"resultType":"complete")"), std::string::npos);
  EXPECT_EQ(client.chunk(), "");
}

TEST_F(HttpTest, ManySessionsEndInSlices) {
  constexpr std::size_t kSessions = 2'000;
  RawClient client = listener.client();
  for (std::size_t i = 0; i < kSessions; ++i) {
    session.clear();
    ASSERT_NO_FATAL_FAILURE(initialize(client));
  }
  test::FallWatch watch([&] { return endpoint->sessions(); });
  listener.thread().run([&] {
    watch.begin(listener.thread().loop());
    listener.thread().loop().spawn(endpoint->finish(0ms));
  });
  ASSERT_TRUE(test::holds_soon([&] { return watch.over(); }));
  EXPECT_GT(watch.largest_step(), 0u);
  EXPECT_LE(watch.largest_step(), test::FallWatch::kTwoSlices);
}

TEST_F(HttpTest, LeavingASubscriptionFreesIt) {
  const std::string listen =
      request(7, "subscriptions/listen", R"({"notifications":{"toolsListChanged":true},)" + kEnvelope + "}");
  for (int i = 0; i < 3; ++i) {
    RawClient client = listener.client();
    ASSERT_TRUE(client.send(
        post(listen, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n")));
    EXPECT_NE((client.answer(true), client.chunk()).find("acknowledged"), std::string::npos);
  }
  EXPECT_TRUE(test::holds_soon([&] { return listener.connections() == 0; }));
}

TEST_F(HttpTest, AWebSocketCarriesBothEras) {
  RawClient client = listener.client();
  const auto switched = ask_head(
      client,
      head("GET",
           "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: other, mcp\r\n\r\n"));
  ASSERT_EQ(switched.status, 101);
  EXPECT_TRUE(switched.has("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_TRUE(switched.has("Sec-WebSocket-Protocol: mcp\r\n"));
  websocket::Decoder decoder(websocket::Role::client, 1u << 20);
  const auto ask = [&](const std::string& text) {
    const rpc::Rope frame = websocket::text_frame(websocket::Role::client, test::rope(text));
    EXPECT_TRUE(client.send(frame.joined().view()));
    while (true) {
      const websocket::Decoder::Step step = decoder.next();
      if (step.what == websocket::Decoder::What::message) return step.payload;
      if (step.what != websocket::Decoder::What::more || (client.buffered().empty() && !client.more()))
        return std::string("ended");
      decoder.feed(client.take(client.buffered().size()));
    }
  };
  EXPECT_NE(ask(request(1, "tools/list", "{" + kEnvelope + "}")).find(R"("resultType":"complete")"),
            std::string::npos);
  EXPECT_NE(ask(request(2, "initialize", R"({"protocolVersion":"2025-06-18","capabilities":{}})"))
                .find(R"("protocolVersion":"2025-06-18")"),
            std::string::npos);
  EXPECT_NE(ask(call(3, "progress", R"(,"_meta":{"progressToken":"p"})")).find("notifications/progress"),
            std::string::npos);
}

TEST_F(HttpTest, WebSocketsCountAsSessions) {
  {
    RawClient client = listener.client();
    ASSERT_EQ(
        ask_head(client, head("GET",
                              "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
            .status,
        101);
    EXPECT_EQ(listener.thread().run([&] { return endpoint->sessions(); }), 1u);
  }
  EXPECT_TRUE(
      test::holds_soon([&] { return listener.thread().run([&] { return endpoint->sessions(); }) == 0; }));
}

TEST_F(HttpTest, AHandshakeThatIsNoneIsRefused) {
  RawClient client = listener.client();
  const std::string upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  EXPECT_EQ(
      client.ask(head("GET", upgrade + "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: x\r\n\r\n")).status,
      426);
  EXPECT_EQ(client.ask(head("GET", upgrade + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n"))
                .status,
            400);
}

}  // namespace
}  // namespace fairlead::mcp
