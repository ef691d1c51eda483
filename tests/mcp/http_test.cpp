// An MCP server over real HTTP: sessions, events, polling, subscriptions and WebSockets as a client sees
// them.
#include <atomic>

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
  Event release;  // used on the loop thread

  static Task<Result<ToolResult>> poll(Context context, HttpTest* test) {
    context.close_stream();
    co_await test->release.wait(test->listener.thread().loop());
    co_return ToolResult::text("polled");
  }
  static Task<Result<ToolResult>> count_roots(Context context) {
    const Result<std::vector<Root>> roots = co_await context.roots();
    if (!roots) co_return roots.error();
    co_return ToolResult::text(std::to_string(roots->size()) + " roots for " + std::string(context.user()));
  }

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "progress", "Talks", [](const Context& context, const Nothing&) {
      context.report_progress(1, 1);
      return std::string("done");
    });
    ToolSpec spec;
    spec.name = "poll";
    ASSERT_TRUE(
        server.add_tool(spec, Server::CoroutineTool([this](Context c, json::Raw) { return poll(c, this); })));
    spec.name = "ask";
    ASSERT_TRUE(
        server.add_tool(spec, Server::CoroutineTool([](Context c, json::Raw) { return count_roots(c); })));
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
  static RawClient::Response request_head(RawClient& client, const std::string& bytes) {
    return client.send(bytes) ? client.read_response(true) : RawClient::Response();
  }
  void initialize(RawClient& client, const std::string& capabilities = "{}") {
    const auto answer = client.request(post(
        request(0, "initialize",
                R"({"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":)" +
                    capabilities + "}")));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::size_t at = answer.head.find("Mcp-Session-Id: ");
    ASSERT_NE(at, std::string::npos);
    session = answer.head.substr(at + 16, answer.head.find("\r\n", at) - at - 16);
  }
};

TEST_F(HttpTest, ClientReceivesAnswerAfterReconnectingToClosedStream) {
  RawClient client = listener.client();
  initialize(client);
  const auto paused = client.request(post(call(1, "poll")));
  EXPECT_EQ(paused.body, "id: 1-1\nretry: 10\ndata: \n\n");
  ASSERT_TRUE(client.send(get("Last-Event-ID: 1-1\r\n")));
  listener.thread().run([&] { release.set(); });
  const auto rest = client.read_response();
  EXPECT_EQ(rest.body,
            "id: 1-2\nevent: message\ndata: "
            R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"polled"}]}})"
            "\n\n");
}

TEST_F(HttpTest, RequestToClientIsSentOnTheStreamOfItsPost) {
  RawClient client = listener.client();
  initialize(client, R"({"roots":{}})");
  ASSERT_TRUE(client.send(post(call(1, "ask"))));
  EXPECT_EQ(client.read_response(true).status, 200);
  std::string events = client.read_chunk();
  while (events.find("roots/list") == std::string::npos) events += client.read_chunk();
  const std::size_t at = events.find(R"("id":)") + 5;
  const std::string id = events.substr(at, events.find(',', at) - at);
  RawClient other = listener.client();
  EXPECT_EQ(
      other.request(post(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"roots":[{"uri":"file:///a"}]}})"))
          .status,
      202);
  EXPECT_NE(client.read_chunk().find("1 roots for alice"), std::string::npos);
}

TEST_F(HttpTest, ListChangesAreSentOnTheGetStream) {
  RawClient client = listener.client();
  initialize(client);
  ASSERT_TRUE(client.send(get()));
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.read_chunk(), "id: 0-0\nretry: 10\ndata: \n\n");
  server.remove_tool("echo");
  EXPECT_EQ(client.read_chunk(),
            "id: 0-1\nevent: message\ndata: "
            R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})"
            "\n\n");
}

TEST_F(HttpTest, ModernSubscriptionsEndWhenServerDrains) {
  RawClient client = listener.client();
  const std::string listen =
      request(7, "subscriptions/listen", R"({"notifications":{"toolsListChanged":true},)" + kEnvelope + "}");
  ASSERT_TRUE(
      client.send(post(listen, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n")));
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_NE(client.read_chunk().find("acknowledged"), std::string::npos);
  server.remove_tool("echo");
  EXPECT_NE(client.read_chunk().find(
                R"(list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}})"),
            std::string::npos);
  listener.thread().run([&] { listener.thread().loop().spawn(endpoint->begin_drain()); });
  EXPECT_NE(client.read_chunk().find(R"("id":7,"result":{"resultType":"complete")"), std::string::npos);
  EXPECT_EQ(client.read_chunk(), "");
}

TEST_F(HttpTest, ManySessionsEndInSlices) {
  constexpr std::size_t kSessions = 2'000;
  RawClient client = listener.client();
  for (std::size_t i = 0; i < kSessions; ++i) {
    session.clear();
    ASSERT_NO_FATAL_FAILURE(initialize(client));
  }
  test::DrainMonitor monitor([&] { return endpoint->session_count(); });
  listener.thread().run([&] {
    monitor.start(listener.thread().loop());
    listener.thread().loop().spawn(endpoint->drain(0ms));
  });
  ASSERT_TRUE(test::wait_until([&] { return monitor.done(); }));
  EXPECT_GT(monitor.largest_step(), 0u);
  EXPECT_LE(monitor.largest_step(), test::DrainMonitor::kTwoSlices);
}

TEST_F(HttpTest, SubscriptionIsReleasedWhenClientDisconnects) {
  const std::string listen =
      request(7, "subscriptions/listen", R"({"notifications":{"toolsListChanged":true},)" + kEnvelope + "}");
  for (int i = 0; i < 3; ++i) {
    RawClient client = listener.client();
    ASSERT_TRUE(client.send(
        post(listen, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n")));
    EXPECT_NE((client.read_response(true), client.read_chunk()).find("acknowledged"), std::string::npos);
  }
  EXPECT_TRUE(test::wait_until([&] { return listener.connection_count() == 0; }));
}

TEST_F(HttpTest, WebSocketCarriesBothEras) {
  RawClient client = listener.client();
  const auto switched = request_head(
      client,
      head("GET",
           "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: other, mcp\r\n\r\n"));
  ASSERT_EQ(switched.status, 101);
  EXPECT_TRUE(switched.has("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_TRUE(switched.has("Sec-WebSocket-Protocol: mcp\r\n"));
  websocket::Decoder decoder(websocket::Role::client, 1u << 20);
  const auto send_and_receive = [&](const std::string& text) {
    const rpc::Rope frame = websocket::text_frame(websocket::Role::client, test::rope(text));
    EXPECT_TRUE(client.send(frame.joined().view()));
    while (true) {
      const websocket::Decoder::Event event = decoder.next();
      if (event.type == websocket::Decoder::EventType::message) return event.payload;
      if (event.type != websocket::Decoder::EventType::need_more ||
          (client.buffered().empty() && !client.receive_more()))
        return std::string("ended");
      decoder.feed(client.read_bytes(client.buffered().size()));
    }
  };
  EXPECT_NE(
      send_and_receive(request(1, "tools/list", "{" + kEnvelope + "}")).find(R"("resultType":"complete")"),
      std::string::npos);
  EXPECT_NE(
      send_and_receive(request(2, "initialize", R"({"protocolVersion":"2025-06-18","capabilities":{}})"))
          .find(R"("protocolVersion":"2025-06-18")"),
      std::string::npos);
  EXPECT_NE(send_and_receive(call(3, "progress", R"(,"_meta":{"progressToken":"p"})"))
                .find("notifications/progress"),
            std::string::npos);
}

TEST_F(HttpTest, WebSocketsCountAsSessions) {
  {
    RawClient client = listener.client();
    ASSERT_EQ(
        request_head(client, head("GET",
                                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
            .status,
        101);
    EXPECT_EQ(listener.thread().run([&] { return endpoint->session_count(); }), 1u);
  }
  EXPECT_TRUE(test::wait_until(
      [&] { return listener.thread().run([&] { return endpoint->session_count(); }) == 0; }));
}

TEST_F(HttpTest, InvalidWebSocketHandshakeIsRejected) {
  RawClient client = listener.client();
  const std::string upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  EXPECT_EQ(client.request(head("GET", upgrade + "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: x\r\n\r\n"))
                .status,
            426);
  EXPECT_EQ(
      client.request(head("GET", upgrade + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n"))
          .status,
      400);
}

}  // namespace
}  // namespace fairlead::mcp
