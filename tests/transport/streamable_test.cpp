// R8.3, R8.4: MCP over HTTP as a client sees it: calls of the modern era, and what servers of both eras
// answer with. Real sockets.
#include "support/hostile_json.hpp"
#include "support/turns.hpp"
#include "transport/streamable_harness.hpp"

namespace fairlead::transport {
namespace {

// ---- the modern era ----

TEST_F(StreamableTest, LargestAnswersDoNotHoldTheLoop) {
  std::string value;
  bool as_event = false;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    const std::string answer = result_of(asked, value);
    if (!as_event) return reply.answer(200, "application/json", answer);
    reply.answer(200, "text/event-stream", event(answer));
  });
  connect(server.url());
  for (const std::string& hostile : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(hostile.substr(0, 40));
    value = hostile;
    for (const bool event_stream : {false, true}) {
      as_event = event_stream;
      test::expect_short_turns(loop, [&] {
        const Result<json::Raw> answer = call("tools/call", kModern);
        ASSERT_TRUE(answer) << answer.error().to_string();
        EXPECT_TRUE(answer->text() == hostile);
      });
    }
  }
}

TEST_F(StreamableTest, LargestRequestsDoNotHoldTheLoop) {
  std::string body;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    body = asked.body;
    reply.result(asked, "{}");
  });
  connect(server.url());
  for (const std::string& hostile : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(hostile.substr(0, 40));
    const json::Raw params = test::raw(R"({"arguments":{"a":)" + hostile + "}," + kModern.substr(1));
    test::expect_short_turns(loop, [&] {
      const Result<json::Raw> answer = loop.block_on(calling("tools/call", params, CallOptions()));
      ASSERT_TRUE(answer) << answer.error().to_string();
    });
    EXPECT_NE(body.find(hostile), std::string::npos);
  }
}

TEST_F(StreamableTest, AModernCallIsOnePost) {
  ScriptServer server([](const Asked& asked, Reply& reply) { reply.result(asked, R"({"ok":1})"); });
  connect(server.url());
  const Result<json::Raw> answer = call("tools/list", kModern);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text(), R"({"ok":1})");
  const Asked asked = server.asked().front();
  EXPECT_EQ(asked.method, "POST");
  EXPECT_EQ(asked.target, "/mcp");
  EXPECT_EQ(asked.headers.get("Mcp-Method"), "tools/list");
  loop.block_on(close());
  EXPECT_TRUE(server.asked("GET").empty());
  EXPECT_TRUE(server.asked("DELETE").empty());
}

TEST_F(StreamableTest, EventsAreDeliveredAsTheyComeAndTheAnswerEndsTheCall) {
  std::atomic<bool> heard = false;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    reply.begin_events();
    reply.chunk(": hello\n\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})"));
    while (!heard) std::this_thread::yield();  // the notification does not wait for the answer
    const std::string answer = "event: message\r\n" + event(result_of(asked));
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", answer.size());
    reply.send(size + answer +
               "\r\n0\r\n\r\n");  // its end with it, so that the connection is free for the next
  });
  on_notified = [&] { heard = true; };
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModern));
  EXPECT_TRUE(call("tools/call", kModern));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(StreamableTest, AServerThatLeavesItsStreamOpenBehindTheAnswerIsHungUpOn) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(result_of(asked)));
    closed = reply.client_closes();
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModern));
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
}

TEST_F(StreamableTest, ALostModernStreamIsALostCall) {
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "7"));
    reply.hang_up();
  });
  connect(server.url());
  const Result<json::Raw> answer = call("tools/call", kModern);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.asked().size(), 1U);
  EXPECT_FALSE(connection->closed());
}

// To cancel a modern request is to close its stream.
TEST_F(StreamableTest, CancellingAModernCallClosesItsStreamAndSendsNothing) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (asked.has("tools/list")) return reply.result(asked, "{}");
    reply.begin_events();
    closed = reply.client_closes();
  });
  connect(server.url());
  EXPECT_EQ(call("tools/call", kModern, CallOptions(50ms)).error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_TRUE(call("tools/list", kModern));
  EXPECT_EQ(server.asked().size(), 2U);
}

TEST_F(StreamableTest, ARequestOfAModernServerIsDropped) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    reply.begin_events();
    reply.chunk(event(R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})") + event(result_of(asked)));
    reply.end_events();
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/call", kModern));
  EXPECT_EQ(server.asked().size(), 1U);
}

// ---- what servers answer with ----

TEST_F(StreamableTest, AnUnknownContentTypeFailsTheCallAndNotTheConnection) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("page")) return reply.answer(200, "text/html; charset=utf-8", "<html>");
    if (asked.has("none")) return reply.answer(200, "", "{}");
    reply.result(asked, "{}");
  });
  connect(server.url());
  const Result<json::Raw> page = call("page", kModern);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind(), ErrorKind::invalid_content_type);
  EXPECT_NE(page.error().message().find("`text/html`"), std::string::npos);
  EXPECT_EQ(call("none", kModern).error().kind(), ErrorKind::invalid_content_type);
  EXPECT_TRUE(call("tools/list", kModern));
}

TEST_F(StreamableTest, AnErrorInJsonRpcIsTheAnswerWhateverItsId) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    const std::string error = R"("error":{"code":-32020,"message":"no","data":{"a":1}}})";
    if (asked.has("null")) return reply.json(400, R"({"jsonrpc":"2.0","id":null,)" + error);
    if (asked.has("none")) return reply.json(400, R"({"jsonrpc":"2.0",)" + error);
    if (asked.has("foreign")) return reply.json(400, R"({"jsonrpc":"2.0","id":"server-error",)" + error);
    reply.json(404, R"({"jsonrpc":"2.0","id":)" + asked.id() + "," + error);
  });
  connect(server.url());
  for (const char* const method : {"null", "none", "foreign", "own"}) {
    const Result<json::Raw> answer = call(method, kModern);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::remote) << method;
    EXPECT_EQ(answer.error().detail().rpc_code, -32020);
    EXPECT_EQ(answer.error().detail().rpc_data, R"({"a":1})");
  }
}

TEST_F(StreamableTest, OtherErrorsHaveTheirStatusAndWhatTheServerSaid) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("plain")) return reply.answer(400, "text/plain", "go\r\naway");
    if (asked.has("login")) return reply.answer(401, "text/plain", "who?");
    if (asked.has("forbidden"))
      return reply.json(403, R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}})");
    if (asked.has("broken"))
      return reply.json(500, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oops"}})");
    reply.answer(202, "", "");
  });
  connect(server.url());
  const Error text = call("plain", kModern).error();
  EXPECT_EQ(text.kind(), ErrorKind::http_status);
  EXPECT_EQ(text.detail().http_status, 400);
  EXPECT_EQ(text.message(), server.url() + " answered 400 Whatever: go  away");
  EXPECT_EQ(call("login", kModern).error().kind(), ErrorKind::authorization);
  EXPECT_EQ(call("login", kModern).error().detail().http_status, 401);
  EXPECT_EQ(call("forbidden", kModern).error().kind(), ErrorKind::authorization);
  const Error broken = call("broken", kModern).error();
  EXPECT_EQ(broken.kind(), ErrorKind::http_status);
  EXPECT_EQ(broken.detail().http_status, 500);
  EXPECT_EQ(broken.detail().rpc_code, -32603);
  EXPECT_EQ(call("accepted", kModern).error().kind(), ErrorKind::http_status);
}

TEST_F(StreamableTest, AServerThatRepeatsOurCredentialsDoesNotBringThemIntoTheError) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    const std::string token(asked.headers.get("Authorization").substr(7));
    const std::string json =
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"bad )" + token + "\"}}";
    if (asked.has("broken")) return reply.json(500, json);
    reply.answer(401, "text/plain", "bad token " + token + ", that is Bearer " + token);
  });
  options.headers.add("Authorization", "Bearer quokka-77");
  connect(server.url());
  EXPECT_EQ(call("plain", kModern).error().message(),
            server.url() + " answered 401 Whatever: bad token ***, that is ***");
  EXPECT_EQ(call("broken", kModern).error().message(), server.url() + " answered 500 Whatever: bad ***");
}

TEST_F(StreamableTest, WhatIsNoMessageFailsTheCall) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.has("other")) return reply.json(200, R"({"jsonrpc":"2.0","id":"other","result":{}})");
    reply.json(200, "{nonsense");
  });
  connect(server.url());
  EXPECT_EQ(call("x", kModern).error().kind(), ErrorKind::parse);
  EXPECT_EQ(call("other", kModern).error().kind(), ErrorKind::id_mismatch);
}

// 2025-03-26 has arrays.
TEST_F(StreamableTest, AnArrayIsTakenApart) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    reply.json(200, R"([{"jsonrpc":"2.0","method":"notifications/message"},)" + result_of(asked) + "]");
  });
  connect(server.url());
  EXPECT_TRUE(call("tools/list"));
  EXPECT_EQ(notified, std::vector<std::string>{"notifications/message"});
}

// Conformance trap 25.
TEST_F(StreamableTest, WhatComesBackOnANotificationIsIgnored) {
  ScriptServer server(
      [](const Asked&, Reply& reply) { reply.json(200, R"({"jsonrpc":"2.0","result":{}})"); });
  connect(server.url());
  EXPECT_TRUE(notify("notifications/x"));
  EXPECT_EQ(peer->stats().mismatched_answers, 0U);
}

TEST_F(StreamableTest, ANotificationThatIsNeverAcceptedIsGivenUp) {
  options.limits.call_timeout = 50ms;
  ScriptServer server([](const Asked&, Reply& reply) { reply.client_closes(); });
  connect(server.url());
  EXPECT_EQ(notify("notifications/x").error().kind(), ErrorKind::timeout);
}

TEST_F(StreamableTest, NobodyListening) {
  connect("http://127.0.0.1:1/mcp");
  const Error error = call("x").error();
  EXPECT_EQ(error.kind(), ErrorKind::connection_failed);
  EXPECT_TRUE(error.detail().unsent);
  EXPECT_EQ(notify("notifications/x").error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(connection->backlog(), 0U);
}

TEST_F(StreamableTest, AnEventOverTheLimitFailsTheCall) {
  options.limits.max_frame_bytes = 10'000;
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.begin_events();
    for (int i = 0; i < 100; ++i) reply.chunk("data: " + std::string(1000, 'x') + "\n");
  });
  connect(server.url());
  EXPECT_EQ(call("x", kModern).error().kind(), ErrorKind::frame_too_large);
}

Task<void> many(StreamableTest& test, int count, int& answered, Event& all) {
  const Result<json::Raw> answer = co_await test.peer->call("x", test::raw(kModern));
  if (answer && ++answered == count) all.set();
}

TEST_F(StreamableTest, ManyCallsAtOnce) {
  ScriptServer server([](const Asked& asked, Reply& reply) { reply.result(asked, "{}"); });
  connect(server.url());
  int answered = 0;
  Event all;
  for (int i = 0; i < 50; ++i) loop.spawn(many(*this, 50, answered, all));
  EXPECT_TRUE(eventually([&] { return answered == 50; }));
  EXPECT_EQ(server.asked().size(), 50U);
}

TEST_F(StreamableTest, ClosingFailsWhatIsUnderWayAndHangsUp) {
  std::atomic<bool> closed = false;
  ScriptServer server([&](const Asked&, Reply& reply) {
    reply.begin_events();
    closed = reply.client_closes();
  });
  connect(server.url());
  std::optional<Result<json::Raw>> outcome;
  loop.spawn([](StreamableTest& test, std::optional<Result<json::Raw>>& out) -> Task<void> {
    Task<Result<json::Raw>> waiting = test.calling("x", test::raw(kModern), CallOptions());
    out = co_await waiting;
  }(*this, outcome));
  EXPECT_TRUE(eventually([&] { return server.asked().size() == 1; }));
  connection->close();
  EXPECT_TRUE(eventually([&] { return outcome && closed; }));
  EXPECT_EQ(outcome->error().kind(), ErrorKind::closed);
}

}  // namespace
}  // namespace fairlead::transport
