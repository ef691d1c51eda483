// StreamableConnection sends calls over idle connections without a coroutine. Whatever the server does, the
// outcome is that of a call that is sent on a new connection.
#include <atomic>

#include "transport/streamable_harness.hpp"

namespace fairlead::transport {
namespace {

const std::string kCall =
    R"({"name":"NAME","arguments":{"text":"TEXT"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}})";

std::string params_of(const std::string& name, const std::string& text = "") {
  std::string params = kCall;
  params.replace(params.find("NAME"), 4, name);
  params.replace(params.find("TEXT"), 4, text);
  return params;
}

TEST_F(StreamableTest, RepeatedCallsUseOneConnectionAndTheirOwnHeaders) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    reply.result(request, request.has("long") ? R"({"long":"................"})" : "{}");
  });
  connect(server.url());
  for (const char* const name : {"one", "two", "two", "\xc3\xa4", "long"}) {
    const Result<json::Raw> response = call("tools/call", params_of(name));
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->text().size() > 2, name == std::string("long"));
  }
  EXPECT_TRUE(call("prompts/get", params_of("one")));
  EXPECT_TRUE(call("tools/list", kModernParams));
  const std::vector<ReceivedRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 7U);
  std::vector<std::string> names;
  for (const ReceivedRequest& request : requests) {
    EXPECT_EQ(request.headers.get("MCP-Protocol-Version"), "2026-07-28");
    EXPECT_EQ(request.headers.count("Content-Length"), 1U);
    EXPECT_EQ(request.headers.get("Content-Type"), "application/json");
    names.emplace_back(request.headers.get("Mcp-Method"));
    names.emplace_back(request.headers.get("Mcp-Name"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"tools/call", "one", "tools/call", "two", "tools/call", "two",
                                             "tools/call", "=?base64?w6Q=?=", "tools/call", "long",
                                             "prompts/get", "one", "tools/list", ""}));
  EXPECT_EQ(server.connection_count(), 1);
}

// The first call of each test opens a connection, and the second one makes the head of responses known.
class DirectCallTest : public StreamableTest {
 public:
  void connect_and_prepare(const ScriptServer& server) {
    connect(server.url());
    EXPECT_TRUE(call("tools/call", params_of("ok")));
    EXPECT_TRUE(call("tools/call", params_of("ok")));
    EXPECT_EQ(server.connection_count(), 1);
  }
};

TEST_F(DirectCallTest, ResponsesOfAllShapesAreReceived) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    const std::string result = result_of(request);
    const std::string head = "HTTP/1.1 200 Whatever\r\nContent-Type: application/json\r\nContent-Length: " +
                             std::to_string(result.size()) + "\r\n\r\n";
    if (request.has("events")) {
      reply.begin_events();
      reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})") + event(result));
      return reply.end_events();
    }
    if (request.has("chunked")) {
      reply.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
      reply.chunk(result);
      return reply.end_events();
    }
    if (const std::size_t at = request.body.find("split"); at != std::string::npos) {
      const std::size_t first = std::stoul(request.body.substr(at + 5));
      reply.send((head + result).substr(0, first));
      std::this_thread::sleep_for(5ms);
      return reply.send((head + result).substr(first));
    }
    if (request.has("date")) return reply.json(200, result, "Date: now\r\n");
    if (request.has("rpc_error"))
      return reply.json(200, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}})");
    reply.json(200, result);
  });
  connect_and_prepare(server);
  for (const std::string name : {"events", "ok", "chunked", "ok", "date", "date", "ok"}) {
    const Result<json::Raw> response = call("tools/call", params_of(name));
    ASSERT_TRUE(response) << name << ": " << response.error().message();
    EXPECT_EQ(response->text(), R"({"ok":true})");
  }
  for (const int first : {1, 24, 55, 74, 76, 77, 78, 79, 80, 81, 100}) {  // the head has 77 bytes
    const Result<json::Raw> response = call("tools/call", params_of("split" + std::to_string(first)));
    ASSERT_TRUE(response) << first << ": " << response.error().message();
  }
  EXPECT_EQ(call("tools/call", params_of("rpc_error")).error().detail().rpc_code, -32000);
  EXPECT_EQ(notifications, std::vector<std::string>{"notifications/message"});
  EXPECT_EQ(server.connection_count(), 1);
}

TEST_F(DirectCallTest, InvalidResponsesFailTheCallOnly) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("malformed")) return reply.json(200, "{");
    if (request.has("empty")) return reply.json(200, "");
    if (request.has("other_id")) return reply.json(200, R"({"jsonrpc":"2.0","id":"other","result":{}})");
    if (request.has("large")) return reply.json(200, "[" + std::string(2000, '1') + "]");
    if (request.has("error")) return reply.respond(500, "text/plain", "broken");
    if (request.has("truncated")) {
      reply.send("HTTP/1.1 200 Whatever\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{");
      return reply.disconnect();
    }
    reply.result(request, "{}");
  });
  options.max_response_bytes = 1000;
  connect_and_prepare(server);
  for (const auto& [name, kind] : {std::pair("malformed", ErrorKind::parse),
                                   {"empty", ErrorKind::parse},
                                   {"other_id", ErrorKind::id_mismatch},
                                   {"large", ErrorKind::frame_too_large},
                                   {"error", ErrorKind::http_status},
                                   {"truncated", ErrorKind::closed}}) {
    const Result<json::Raw> response = call("tools/call", params_of(name));
    ASSERT_FALSE(response) << name;
    EXPECT_EQ(response.error().kind(), kind) << name << ": " << response.error().message();
    EXPECT_TRUE(call("tools/call", params_of("ok"))) << name;
  }
  EXPECT_EQ(server.requests("truncated").size(), 1U);
}

TEST_F(DirectCallTest, CallOnConnectionClosedByServerIsRetriedOnce) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("never") || (request.has("lost") && request.connection == 1)) return reply.disconnect();
    reply.result(request, "{}");
  });
  connect_and_prepare(server);
  EXPECT_TRUE(call("tools/call", params_of("lost")));
  EXPECT_EQ(server.requests("lost").size(), 2U);
  EXPECT_EQ(call("tools/call", params_of("never")).error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.requests("never").size(), 2U);
}

TEST_F(DirectCallTest, CancelAndCloseEndWaitingCalls) {
  std::atomic<int> closed = 0;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (!request.has("silent")) return reply.result(request, "{}");
    if (reply.wait_for_client_close()) ++closed;
  });
  connect_and_prepare(server);
  EXPECT_EQ(call("tools/call", params_of("silent"), CallOptions(50ms)).error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(eventually([&] { return closed == 1; }));
  EXPECT_TRUE(call("tools/call", params_of("ok")));
  EXPECT_EQ(server.requests("cancelled").size(), 0U);
  std::optional<Result<json::Raw>> outcome;
  loop.spawn([](StreamableTest& test, std::optional<Result<json::Raw>>& out) -> Task<void> {
    out = co_await test.call_task("tools/call", test::raw(params_of("silent")), CallOptions());
  }(*this, outcome));
  EXPECT_TRUE(eventually([&] { return server.requests("silent").size() == 2; }));
  connection->close();
  EXPECT_TRUE(eventually([&] { return outcome && closed == 2; }));
  EXPECT_EQ(outcome->error().kind(), ErrorKind::closed);
}

TEST_F(DirectCallTest, CallThatIsCancelledWhileConnectionIsClosedEndsOnce) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (!request.has("silent")) return reply.result(request, "{}");
    reply.wait_for_client_close();
  });
  connect_and_prepare(server);
  std::optional<Result<json::Raw>> outcome;
  loop.spawn([](StreamableTest& test, std::optional<Result<json::Raw>>& out) -> Task<void> {
    out = co_await test.call_task("tools/call", test::raw(params_of("silent")), CallOptions());
  }(*this, outcome));
  EXPECT_TRUE(eventually([&] { return server.requests("silent").size() == 1; }));
  const std::string id = server.requests("silent").front().id();
  loop.post([&] {
    EXPECT_TRUE(connection->post(
        rpc::make_notification("notifications/cancelled", test::raw(R"({"requestId":)" + id + "}"))));
    connection->close();
  });
  EXPECT_TRUE(eventually([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->error().kind(), ErrorKind::closed);
}

// The request does not fit into the buffer of the socket, and the server reads it slowly.
TEST_F(DirectCallTest, LargeRequestIsSentCompletely) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); });
  connect_and_prepare(server);
  const std::string text(8u << 20, 'x');
  EXPECT_TRUE(call("tools/call", params_of("large", text)));
  ASSERT_EQ(server.requests("large").size(), 1U);
  EXPECT_GT(server.requests("large").front().body.size(), text.size());
  EXPECT_EQ(server.connection_count(), 1);
}

TEST_F(StreamableTest, DirectCallsOfLegacyEraNameTheirSession) {
  ScriptServer server(
      legacy_script([](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); }));
  connect(server.url());
  handshake();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(call("tools/call", R"({"name":"t"})"));
  const std::vector<ReceivedRequest> calls = server.requests("tools/call");
  ASSERT_EQ(calls.size(), 3U);
  for (const ReceivedRequest& request : calls) {
    EXPECT_EQ(request.headers.get("Mcp-Session-Id"), "one");
    EXPECT_EQ(request.headers.get("MCP-Protocol-Version"), "2025-11-25");
    EXPECT_FALSE(request.headers.has("Mcp-Name"));
  }
}

TEST_F(StreamableTest, ConfiguredHeaderIsReplacedByThatOfTheCall) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); });
  options.headers.add("mcp-name", "configured");
  connect(server.url());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(call("tools/call", params_of("mine")));
  for (const ReceivedRequest& request : server.requests()) {
    EXPECT_EQ(request.headers.get("Mcp-Name"), "mine");
    EXPECT_EQ(request.headers.count("Mcp-Name"), 1U);
  }
}

}  // namespace
}  // namespace fairlead::transport
