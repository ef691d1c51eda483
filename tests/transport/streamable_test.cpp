// R8.3, R8.4, R8.5: MCP over HTTP as a client sees it, in both eras, against servers of every kind. Real
// sockets.
#include <gtest/gtest.h>

#include "fairlead/loop/event.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/script_server.hpp"
#include "support/hostile_json.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::Reply;
using test::ScriptServer;

const std::string kModern =
    R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}})";
const std::string kHello =
    R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}})";

std::string event(std::string_view data, std::string_view id = {}) {
  return (id.empty() ? std::string() : "id: " + std::string(id) + "\n") + "data: " + std::string(data) +
         "\n\n";
}
std::string result_of(const Asked& asked, std::string_view result = R"({"ok":true})") {
  return R"({"jsonrpc":"2.0","id":)" + asked.id() + R"(,"result":)" + std::string(result) + "}";
}

class StreamableTest : public ::testing::Test {
 public:
  Loop loop;
  ConnectOptions options;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  std::vector<std::string> notified;
  std::function<void()> on_notified = [] {};

  void connect(const std::string& url) {
    methods->otherwise([this](fairlead::Request request) { return serve(std::move(request)); });
    connection = loop.block_on(transport::connect(loop, url, options)).value();
    PeerOptions peer_options;
    peer_options.noise = Noise::skip;
    peer_options.dialect.cancel_method = "notifications/cancelled";
    peer_options.dialect.cancel_id_key = "requestId";
    peer = Peer::start(connection, methods, peer_options);
  }
  Task<Answer> serve(fairlead::Request request) {
    if (request.is_notification()) {
      notified.push_back(std::string(request.method()));
      on_notified();
    }
    co_return test::raw(R"({"asked":true})");
  }
  void TearDown() override {
    if (!connection) return;
    loop.block_on(close());
    loop.run_until([&] { return peer->finished().is_set(); });
  }
  Task<void> close() {
    connection->close();
    Task<void> settling = connection->settled();
    co_await settling;
  }

  Task<Result<json::Raw>> calling(std::string method, json::Raw params, CallOptions call_options) {
    Result<json::Raw> answer = co_await peer->call(method, std::move(params), std::move(call_options));
    co_return answer;
  }
  Result<json::Raw> call(const std::string& method, const std::string& params = "{}",
                         CallOptions call_options = CallOptions()) {
    return loop.block_on(calling(method, test::raw(params), std::move(call_options)));
  }
  Task<Result<void>> notifying(std::string method) {
    Result<void> sent = co_await peer->notify(method);
    co_return sent;
  }
  Result<void> notify(const std::string& method) { return loop.block_on(notifying(method)); }
  // The legacy handshake.
  void shake_hands() {
    ASSERT_TRUE(call(
        "initialize",
        R"({"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}})"));
    ASSERT_TRUE(notify("notifications/initialized"));
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return loop.block_on(test::eventually(loop, condition));
  }
};

// A legacy server with a session; the rest is told to `otherwise`.
ScriptServer::Script legacy(ScriptServer::Script otherwise, bool stream = false) {
  return [otherwise, stream](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\"")) return reply.result(asked, kHello, "Mcp-Session-Id: one\r\n");
    if (asked.has("notifications/initialized")) return reply.answer(202, "", "");
    if (asked.method == "GET" && !asked.headers.has("Last-Event-ID") && !stream)
      return reply.answer(405, "", "");
    if (asked.method == "DELETE") return reply.answer(200, "", "");
    otherwise(asked, reply);
  };
}

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

// PROTOCOL §8.2: to cancel a modern request is to close its stream.
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

// PROTOCOL §2.2: 2025-03-26 has arrays.
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

// ---- the legacy era ----

TEST_F(StreamableTest, ASessionIsNamedOnEverythingAndEndedAtTheEnd) {
  ScriptServer server(legacy([](const Asked& asked, Reply& reply) { reply.result(asked, "{}"); }));
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(call("tools/list"));
  loop.block_on(close());
  const std::vector<Asked> asked = server.asked();
  ASSERT_EQ(asked.size(), 5U);
  EXPECT_FALSE(asked[0].headers.has("Mcp-Session-Id"));
  EXPECT_FALSE(asked[0].headers.has("MCP-Protocol-Version"));
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(asked[i].headers.get("Mcp-Session-Id"), "one");
    EXPECT_EQ(asked[i].headers.get("MCP-Protocol-Version"), "2025-11-25");
  }
  EXPECT_EQ(asked[2].method, "GET");
  EXPECT_EQ(asked[4].method, "DELETE");
}

// Conformance traps 22 and 23: the stream is open before `initialized` counts as sent, and there may be none.
TEST_F(StreamableTest, TheServersOwnStreamIsOpenBeforeAnythingElseIsSaid) {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked_back = false;
  ScriptServer server(legacy(
      [&](const Asked& asked, Reply& reply) {
        if (asked.method == "GET") {
          reply.begin_events();
          reply.chunk(event(R"({"jsonrpc":"2.0","id":"q1","method":"elicitation/create"})"));
          reply.client_closes();
        } else if (asked.has(R"("asked":true)")) {
          const std::lock_guard lock(mutex);
          asked_back = true;
          changed.notify_all();
          reply.answer(202, "", "");
        } else {
          std::unique_lock lock(mutex);
          changed.wait_for(lock, 10s, [&] { return asked_back; });
          reply.result(asked, "{}");
        }
      },
      true));
  connect(server.url());
  shake_hands();
  EXPECT_EQ(server.asked("GET").size(), 1U);
  EXPECT_TRUE(call("tools/call"));
  const Asked answer = server.asked(R"("asked":true)").front();
  EXPECT_EQ(answer.id(), "\"q1\"");
  EXPECT_EQ(answer.headers.get("Mcp-Session-Id"), "one");
}

// SEP-1699: a stream that ends before its answer is taken up again, not before `retry` has passed.
TEST_F(StreamableTest, AStreamThatPausesIsTakenUpWhereItEnded) {
  std::atomic<std::chrono::steady_clock::time_point> ended;
  std::string id;
  ScriptServer server(legacy([&](const Asked& asked, Reply& reply) {
    reply.begin_events();
    if (asked.method == "POST") {
      id = result_of(asked);
      reply.chunk("id: event-1\nretry: 120\ndata: \n\n");
      ended = std::chrono::steady_clock::now();
      return reply.end_events();
    }
    reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "event-2") +
                event(id, "event-3"));
    reply.client_closes();
  }));
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(call("tools/call"));
  const std::vector<Asked> gets = server.asked("GET");
  ASSERT_EQ(gets.size(), 2U);
  EXPECT_EQ(gets[1].headers.get("Last-Event-ID"), "event-1");
  EXPECT_EQ(gets[1].headers.get("Mcp-Session-Id"), "one");
  EXPECT_GE(gets[1].at - ended.load(), 100ms);
  EXPECT_EQ(notified, std::vector<std::string>{"notifications/message"});
}

TEST_F(StreamableTest, AStreamThatIsCutIsResumedFromTheLastEvent) {
  std::string answer;
  ScriptServer server(legacy([&](const Asked& asked, Reply& reply) {
    reply.begin_events();
    if (asked.method == "POST") answer = result_of(asked);
    if (asked.method == "POST")
      reply.chunk("retry: 1\n" + event(R"({"jsonrpc":"2.0","method":"notifications/a"})", "a"));
    if (asked.headers.get("Last-Event-ID") == "a")
      reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/b"})", "b"));
    if (asked.headers.get("Last-Event-ID") == "b") reply.chunk(event(answer, "c"));
    reply.send("1f\r\ndata: cut in the mid");
    reply.hang_up();
  }));
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(call("tools/call"));
  EXPECT_EQ(notified, (std::vector<std::string>{"notifications/a", "notifications/b"}));
  EXPECT_EQ(server.asked("GET").size(), 3U);
}

TEST_F(StreamableTest, ResumingIsGivenUpWhenNothingComesOfIt) {
  options.max_resumptions = 3;
  ScriptServer server(legacy([&](const Asked& asked, Reply& reply) {
    if (asked.method == "GET") return reply.answer(503, "text/plain", "later");
    reply.begin_events();
    reply.chunk("retry: 1\nid: a\ndata:\n\n");
    reply.hang_up();
  }));
  connect(server.url());
  shake_hands();
  const Error error = call("tools/call").error();
  EXPECT_EQ(error.kind(), ErrorKind::closed);
  EXPECT_NE(error.message().find("max_resumptions (3)"), std::string::npos);
  EXPECT_EQ(server.asked("GET").size(), 4U);
}

TEST_F(StreamableTest, AStreamWithoutEventIdsCannotBeResumed) {
  ScriptServer server(legacy([&](const Asked&, Reply& reply) {
    reply.begin_events();
    reply.chunk("retry: 1\ndata:\n\n");
    reply.hang_up();
  }));
  connect(server.url());
  shake_hands();
  EXPECT_EQ(call("tools/call").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.asked("GET").size(), 1U);
}

TEST_F(StreamableTest, CancellingALegacyCallIsSaidInTheSession) {
  std::atomic<bool> closed = false;
  ScriptServer server(legacy([&](const Asked& asked, Reply& reply) {
    if (asked.has("notifications/cancelled")) return reply.answer(202, "", "");
    reply.begin_events();
    reply.chunk("id: a\ndata:\n\n");
    closed = reply.client_closes();
  }));
  connect(server.url());
  shake_hands();
  EXPECT_EQ(call("tools/call", "{}", CallOptions(50ms)).error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(eventually([&] { return closed && server.asked("notifications/cancelled").size() == 1; }));
  EXPECT_EQ(server.asked("GET").size(), 1U);
}

TEST_F(StreamableTest, TheServersOwnStreamIsOpenedAgainWhenItEnds) {
  std::atomic<int> streams = 0;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (asked.method != "GET")
      return legacy([](const Asked& a, Reply& r) { r.result(a, "{}"); })(asked, reply);
    reply.begin_events();
    reply.chunk("retry: 1\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})",
                                     "s" + std::to_string(++streams)));
    if (streams < 3) return reply.hang_up();
    reply.client_closes();
  });
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(eventually([&] { return notified.size() == 3; }));
  EXPECT_EQ(server.asked("GET")[2].headers.get("Last-Event-ID"), "s2");
}

// ---- sessions that are lost ----

ScriptServer::Script forgetful(std::atomic<int>& sessions) {
  return [&sessions](const Asked& asked, Reply& reply) {
    const std::string current = std::to_string(sessions);
    if (asked.has("\"initialize\"")) {
      return reply.result(asked, kHello, "Mcp-Session-Id: " + std::to_string(++sessions) + "\r\n");
    }
    if (asked.method == "GET") return reply.answer(405, "", "");
    if (asked.headers.get("Mcp-Session-Id") == "1" && asked.has("tools/"))
      return reply.json(
          404, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}})");
    if (asked.headers.get("Mcp-Session-Id") != current) return reply.answer(404, "", "");
    if (asked.id().empty()) return reply.answer(asked.method == "DELETE" ? 200 : 202, "", "");
    reply.result(asked, "{}");
  };
}

// A server whose stream ends at once, with an event, and asks to be asked again without delay.
ScriptServer::Script ends_at_once() {
  return legacy(
      [](const Asked&, Reply& reply) {
        reply.begin_events();
        reply.chunk("retry: 0\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "a"));
        reply.end_events();
      },
      true);
}

TEST_F(StreamableTest, ServersRetryCannotUndercutMinReconnectDelay) {
  options.min_reconnect_delay = 200ms;
  ScriptServer server(ends_at_once());
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(eventually([&] { return server.asked("GET").size() >= 5; }));
  const std::vector<Asked> gets = server.asked("GET");
  for (std::size_t i = 1; i < gets.size(); ++i) EXPECT_GE(gets[i].at - gets[i - 1].at, 100ms);
}

TEST_F(StreamableTest, ReconnectsBeyondTheBurstWaitForASecond) {
  options.min_reconnect_delay = 1ms;
  options.reconnect_burst = 5;
  ScriptServer server(ends_at_once());
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(eventually([&] { return server.asked("GET").size() >= 7; }));
  const std::vector<Asked> gets = server.asked("GET");
  EXPECT_GE(gets[6].at - gets[5].at, 500ms);
}

TEST_F(StreamableTest, ALostSessionIsBegunAgainAndTheRequestMadeOnceMore) {
  std::atomic<int> sessions = 0;
  ScriptServer server(forgetful(sessions));
  connect(server.url());
  shake_hands();
  EXPECT_TRUE(call("tools/list"));
  EXPECT_TRUE(call("tools/list"));
  const std::vector<Asked> asked = server.asked("POST");
  ASSERT_EQ(asked.size(), 7U);
  EXPECT_TRUE(asked[3].has("\"initialize\""));
  EXPECT_FALSE(asked[3].headers.has("Mcp-Session-Id"));
  EXPECT_NE(asked[3].id(), asked[0].id());
  EXPECT_TRUE(asked[4].has("notifications/initialized"));
  EXPECT_EQ(asked[5].headers.get("Mcp-Session-Id"), "2");
  EXPECT_EQ(asked[5].body, asked[2].body);
  EXPECT_EQ(peer->stats().mismatched_answers, 0U);
}

TEST_F(StreamableTest, CallsThatLoseTheSessionTogetherBeginOneNewOne) {
  std::atomic<int> sessions = 0;
  ScriptServer server(forgetful(sessions));
  connect(server.url());
  shake_hands();
  int answered = 0;
  Event all;
  for (int i = 0; i < 5; ++i) {
    loop.spawn([](StreamableTest& test, int& count) -> Task<void> {
      const Result<json::Raw> answer = co_await test.peer->call("tools/list");
      if (answer) ++count;
    }(*this, answered));
  }
  EXPECT_TRUE(eventually([&] { return answered == 5; }));
  EXPECT_EQ(sessions, 2);
}

TEST_F(StreamableTest, ASessionThatCannotBeBegunAgainFailsTheCall) {
  std::atomic<int> handshakes = 0;
  ScriptServer server([&](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\"") && ++handshakes == 1)
      return reply.result(asked, kHello, "Mcp-Session-Id: one\r\n");
    if (asked.has("notifications/")) return reply.answer(202, "", "");
    if (asked.has("\"initialize\"")) return reply.answer(503, "text/plain", "no more");
    reply.answer(404, "", "");
  });
  connect(server.url());
  shake_hands();
  const Error error = call("tools/list").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_NE(error.message().find("cannot be begun again"), std::string::npos) << error.message();
}

// ---- HTTP+SSE ----

class PairTest : public StreamableTest {
 public:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> to_say;
  std::string endpoint = "/messages?session=1";
  bool hang_up = false;

  ScriptServer::Script pair() {
    return [this](const Asked& asked, Reply& reply) {
      if (asked.target == "/sse" && asked.method == "POST") return reply.answer(405, "text/plain", "no");
      if (asked.target == "/sse") {
        reply.begin_events();
        reply.chunk("event: endpoint\ndata: " + endpoint + "\n\n");
        std::unique_lock lock(mutex);
        while (changed.wait_for(lock, 10s, [&] { return !to_say.empty() || hang_up; }) && !hang_up) {
          reply.chunk("event: message\n" + event(to_say.front()));
          to_say.erase(to_say.begin());
        }
        return reply.hang_up();
      }
      {
        const std::lock_guard lock(mutex);
        if (asked.has("\"initialize\"")) to_say.push_back(result_of(asked, kHello));
        if (asked.has("tools/list")) to_say.push_back(result_of(asked));
        if (asked.has("tools/list")) to_say.push_back(R"({"jsonrpc":"2.0","id":5,"method":"roots/list"})");
      }
      changed.notify_all();
      reply.answer(202, "text/plain", "Accepted");
    };
  }
  void end() {
    {
      const std::lock_guard lock(mutex);
      hang_up = true;
    }
    changed.notify_all();
  }
};

TEST_F(PairTest, AnOldServerIsSpokenToInItsOwnWay) {
  ScriptServer server(pair());
  connect(server.url("/sse"));
  shake_hands();
  EXPECT_TRUE(call("tools/list"));
  EXPECT_TRUE(eventually([&] { return server.asked(R"("asked":true)").size() == 1; }));
  EXPECT_EQ(server.asked("tools/list").front().target, "/messages?session=1");
  EXPECT_EQ(server.asked("GET").size(), 1U);
  end();
  EXPECT_TRUE(eventually([&] { return connection->closed(); }));
}

TEST_F(PairTest, AnEndpointElsewhereIsNotPostedTo) {
  endpoint = "http://127.0.0.2:1/messages";
  ScriptServer server(pair());
  connect(server.url("/sse"));
  const Error error = call("initialize").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_EQ(error.detail().http_status, 405);
  end();
}

// ---- WebSocket ----

TEST_F(StreamableTest, AWebSocketThatIsRefusedSaysWhy) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/wrong") {
      return reply.send(
          "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: "
          "no\r\n\r\n");
    }
    reply.answer(404, "", "");
  });
  const auto refused = loop.block_on(transport::connect(loop, "ws" + server.url().substr(4), options));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::http_status);
  EXPECT_EQ(server.asked().front().headers.get("Sec-WebSocket-Protocol"), "mcp");
  const auto wrong = loop.block_on(transport::connect(loop, "ws" + server.url("/wrong").substr(4), options));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), ErrorKind::connection_failed);
}

}  // namespace
}  // namespace fairlead::transport
