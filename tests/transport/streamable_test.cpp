// R8.3, R8.4: the HTTP transport of a client: calls of the modern era, and the kinds of responses of servers
// of both eras. Uses real sockets.
#include "support/hostile_json.hpp"
#include "support/turns.hpp"
#include "transport/streamable_harness.hpp"

namespace fairlead::transport {
namespace {

// ---- the modern era ----

TEST_F(StreamableTest, LargestResponsesDoNotBlockTheLoop) {
  std::string value;
  bool as_event = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    const std::string response = result_of(request, value);
    if (!as_event) return reply.respond(200, "application/json", response);
    reply.respond(200, "text/event-stream", event(response));
  });
  connect(server.url());
  for (const std::string& hostile : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(hostile.substr(0, 40));
    value = hostile;
    for (const bool event_stream : {false, true}) {
      as_event = event_stream;
      test::expect_short_turns(loop, [&] {
        const Result<json::Raw> response = call("tools/call", kModernParams);
        ASSERT_TRUE(response) << response.error().to_string();
        EXPECT_TRUE(response->text() == hostile);
      });
    }
  }
}

TEST_F(StreamableTest, LargestRequestsDoNotBlockTheLoop) {
  std::string body;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    body = request.body;
    reply.result(request, "{}");
  });
  connect(server.url());
  for (const std::string& hostile : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(hostile.substr(0, 40));
    const json::Raw params = test::raw(R"({"arguments":{"a":)" + hostile + "}," + kModernParams.substr(1));
    test::expect_short_turns(loop, [&] {
      const Result<json::Raw> response = loop.block_on(call_task("tools/call", params, CallOptions()));
      ASSERT_TRUE(response) << response.error().to_string();
    });
    EXPECT_NE(body.find(hostile), std::string::npos);
  }
}

TEST_F(StreamableTest, ModernCallIsOnePost) {
  ScriptServer server(
      [](const ReceivedRequest& request, Reply& reply) { reply.result(request, R"({"ok":1})"); });
  connect(server.url());
  const Result<json::Raw> response = call("tools/list", kModernParams);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->text(), R"({"ok":1})");
  const ReceivedRequest request = server.requests().front();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/mcp");
  EXPECT_EQ(request.headers.get("Mcp-Method"), "tools/list");
  loop.block_on(close());
  EXPECT_TRUE(server.requests("GET").empty());
  EXPECT_TRUE(server.requests("DELETE").empty());
}

TEST_F(StreamableTest, EventsAreDeliveredOnArrivalAndResponseEndsCall) {
  std::atomic<bool> notification_received = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    reply.begin_events();
    reply.chunk(": hello\n\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})"));
    while (!notification_received)
      std::this_thread::yield();  // the notification is delivered before the response
    const std::string response = "event: message\r\n" + event(result_of(request));
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", response.size());
    reply.send(size + response +
               "\r\n0\r\n\r\n");  // in one write with the last chunk, so that the connection can be reused
  });
  on_notification = [&] { notification_received = true; };
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModernParams));
  EXPECT_TRUE(call("tools/call", kModernParams));
  EXPECT_EQ(server.connection_count(), 1);
}

TEST_F(StreamableTest, ConnectionIsClosedWhenServerKeepsStreamOpenAfterResponse) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(result_of(request)));
    closed = reply.wait_for_client_close();
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModernParams));
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
}

TEST_F(StreamableTest, ModernCallFailsWhenItsStreamIsInterrupted) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "7"));
    reply.disconnect();
  });
  connect(server.url());
  const Result<json::Raw> response = call("tools/call", kModernParams);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_FALSE(connection->closed());
}

// A modern request is cancelled by closing its stream.
TEST_F(StreamableTest, CancellingModernCallClosesItsStreamAndSendsNothing) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (request.has("tools/list")) return reply.result(request, "{}");
    reply.begin_events();
    closed = reply.wait_for_client_close();
  });
  connect(server.url());
  EXPECT_EQ(call("tools/call", kModernParams, CallOptions(50ms)).error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_TRUE(call("tools/list", kModernParams));
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(StreamableTest, RequestFromModernServerIsDropped) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})") + event(result_of(request)));
    reply.end_events();
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModernParams));
  EXPECT_EQ(server.requests().size(), 1U);
}

// ---- kinds of responses ----

TEST_F(StreamableTest, UnknownContentTypeFailsCallButNotConnection) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("page")) return reply.respond(200, "text/html; charset=utf-8", "<html>");
    if (request.has("none")) return reply.respond(200, "", "{}");
    reply.result(request, "{}");
  });
  connect(server.url());
  const Result<json::Raw> page = call("page", kModernParams);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind(), ErrorKind::invalid_content_type);
  EXPECT_NE(page.error().message().find("`text/html`"), std::string::npos);
  EXPECT_EQ(call("none", kModernParams).error().kind(), ErrorKind::invalid_content_type);
  EXPECT_TRUE(call("tools/list", kModernParams));
}

TEST_F(StreamableTest, JsonRpcErrorBodyIsTheResponseWhateverItsId) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    const std::string error = R"("error":{"code":-32020,"message":"no","data":{"a":1}}})";
    if (request.has("null")) return reply.json(400, R"({"jsonrpc":"2.0","id":null,)" + error);
    if (request.has("none")) return reply.json(400, R"({"jsonrpc":"2.0",)" + error);
    if (request.has("foreign")) return reply.json(400, R"({"jsonrpc":"2.0","id":"server-error",)" + error);
    reply.json(404, R"({"jsonrpc":"2.0","id":)" + request.id() + "," + error);
  });
  connect(server.url());
  for (const char* const method : {"null", "none", "foreign", "own"}) {
    const Result<json::Raw> response = call(method, kModernParams);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind(), ErrorKind::remote) << method;
    EXPECT_EQ(response.error().detail().rpc_code, -32020);
    EXPECT_EQ(response.error().detail().rpc_data, R"({"a":1})");
  }
}

TEST_F(StreamableTest, ErrorStatusIsReportedWithExcerptOfBody) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("plain")) return reply.respond(400, "text/plain", "go\r\naway");
    if (request.has("login")) return reply.respond(401, "text/plain", "who?");
    if (request.has("forbidden"))
      return reply.json(403, R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}})");
    if (request.has("broken"))
      return reply.json(500, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oops"}})");
    reply.respond(202, "", "");
  });
  connect(server.url());
  const Error text = call("plain", kModernParams).error();
  EXPECT_EQ(text.kind(), ErrorKind::http_status);
  EXPECT_EQ(text.detail().http_status, 400);
  EXPECT_EQ(text.message(), server.url() + " answered 400 Whatever: go  away");
  EXPECT_EQ(call("login", kModernParams).error().kind(), ErrorKind::authorization);
  EXPECT_EQ(call("login", kModernParams).error().detail().http_status, 401);
  EXPECT_EQ(call("forbidden", kModernParams).error().kind(), ErrorKind::authorization);
  const Error broken = call("broken", kModernParams).error();
  EXPECT_EQ(broken.kind(), ErrorKind::http_status);
  EXPECT_EQ(broken.detail().http_status, 500);
  EXPECT_EQ(broken.detail().rpc_code, -32603);
  EXPECT_EQ(call("accepted", kModernParams).error().kind(), ErrorKind::http_status);
}

TEST_F(StreamableTest, CredentialsEchoedByServerAreRedactedInError) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    const std::string token(request.headers.get("Authorization").substr(7));
    const std::string json =
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"bad )" + token + "\"}}";
    if (request.has("broken")) return reply.json(500, json);
    reply.respond(401, "text/plain", "bad token " + token + ", that is Bearer " + token);
  });
  options.headers.add("Authorization", "Bearer quokka-77");
  connect(server.url());
  EXPECT_EQ(call("plain", kModernParams).error().message(),
            server.url() + " answered 401 Whatever: bad token ***, that is ***");
  EXPECT_EQ(call("broken", kModernParams).error().message(),
            server.url() + " answered 500 Whatever: bad ***");
}

TEST_F(StreamableTest, CallFailsWhenResponseIsMalformedOrForAnotherId) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.has("other")) return reply.json(200, R"({"jsonrpc":"2.0","id":"other","result":{}})");
    reply.json(200, "{nonsense");
  });
  connect(server.url());
  EXPECT_EQ(call("x", kModernParams).error().kind(), ErrorKind::parse);
  EXPECT_EQ(call("other", kModernParams).error().kind(), ErrorKind::id_mismatch);
}

// A server of revision 2025-03-26 may send batches.
TEST_F(StreamableTest, BatchInResponseIsSplit) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    reply.json(200, R"([{"jsonrpc":"2.0","method":"notifications/message"},)" + result_of(request) + "]");
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/list"));
  EXPECT_EQ(notifications, std::vector<std::string>{"notifications/message"});
}

// Conformance trap 25: a server may respond to a notification with a body.
TEST_F(StreamableTest, ResponseBodyToNotificationIsIgnored) {
  ScriptServer server(
      [](const ReceivedRequest&, Reply& reply) { reply.json(200, R"({"jsonrpc":"2.0","result":{}})"); });
  connect(server.url());
  EXPECT_TRUE(notify("notifications/x"));
  EXPECT_EQ(peer->stats().mismatched_responses, 0U);
}

TEST_F(StreamableTest, NotifyFailsWithTimeoutWhenServerNeverAccepts) {
  options.limits.call_timeout = 50ms;
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.wait_for_client_close(); });
  connect(server.url());
  EXPECT_EQ(notify("notifications/x").error().kind(), ErrorKind::timeout);
}

TEST_F(StreamableTest, CallFailsWithConnectionFailedWhenPortIsClosed) {
  connect("http://127.0.0.1:1/mcp");
  const Error error = call("x").error();
  EXPECT_EQ(error.kind(), ErrorKind::connection_failed);
  EXPECT_TRUE(error.detail().unsent);
  EXPECT_EQ(notify("notifications/x").error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(connection->backlog(), 0U);
}

TEST_F(StreamableTest, CallFailsWhenEventExceedsMaxFrameBytes) {
  options.limits.max_frame_bytes = 10'000;
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.begin_events();
    for (int i = 0; i < 100; ++i) reply.chunk("data: " + std::string(1000, 'x') + "\n");
  });
  connect(server.url());
  EXPECT_EQ(call("x", kModernParams).error().kind(), ErrorKind::frame_too_large);
}

Task<void> call_and_count(StreamableTest& test, int count, int& answered, Event& all) {
  const Result<json::Raw> response = co_await test.peer->call("x", test::raw(kModernParams));
  if (response && ++answered == count) all.set();
}

TEST_F(StreamableTest, ManyConcurrentCallsSucceed) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); });
  connect(server.url());
  int answered = 0;
  Event all;
  for (int i = 0; i < 50; ++i) loop.spawn(call_and_count(*this, 50, answered, all));
  EXPECT_TRUE(eventually([&] { return answered == 50; }));
  EXPECT_EQ(server.requests().size(), 50U);
}

TEST_F(StreamableTest, CloseFailsPendingCallsAndClosesTheirStreams) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const ReceivedRequest&, Reply& reply) {
    reply.begin_events();
    closed = reply.wait_for_client_close();
  });
  connect(server.url());
  std::optional<Result<json::Raw>> outcome;
  loop.spawn([](StreamableTest& test, std::optional<Result<json::Raw>>& out) -> Task<void> {
    out = co_await test.call_task("x", test::raw(kModernParams), CallOptions());
  }(*this, outcome));
  EXPECT_TRUE(eventually([&] { return server.requests().size() == 1; }));
  connection->close();
  EXPECT_TRUE(eventually([&] { return outcome && closed; }));
  EXPECT_EQ(outcome->error().kind(), ErrorKind::closed);
}

}  // namespace
}  // namespace fairlead::transport
