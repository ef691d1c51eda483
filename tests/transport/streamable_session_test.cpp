// R8.3, R8.5: MCP over HTTP as a client sees it: sessions of the legacy era, their streams and their loss,
// HTTP+SSE and refused WebSockets. Real sockets.
#include <future>

#include "transport/streamable_harness.hpp"

namespace fairlead::transport {
namespace {

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

// A legacy server that loses its first session with the first call. `renewal` answers what begins the next.
ScriptServer::Script loses_first_session(ScriptServer::Script renewal) {
  return [renewal](const Asked& asked, Reply& reply) {
    if (asked.has("\"fairlead-again-")) return renewal(asked, reply);
    if (asked.has("\"initialize\"")) return reply.result(asked, kHello, "Mcp-Session-Id: 1\r\n");
    if (asked.method == "GET") return reply.answer(405, "", "");
    if (asked.has("notifications/") && asked.headers.get("Mcp-Session-Id") == "2")
      return renewal(asked, reply);
    if (asked.id().empty()) return reply.answer(asked.method == "DELETE" ? 200 : 202, "", "");
    if (asked.headers.get("Mcp-Session-Id") != "2") return reply.answer(404, "", "");
    reply.result(asked, "{}");
  };
}

TEST_F(StreamableTest, CallsMadeWhileASessionIsRenewedWaitForTheNewOne) {
  std::promise<void> release;
  ScriptServer server(
      loses_first_session([released = release.get_future().share()](const Asked& asked, Reply& reply) {
        released.wait();
        if (asked.id().empty()) return reply.answer(202, "", "");
        reply.result(asked, kHello, "Mcp-Session-Id: 2\r\n");
      }));
  connect(server.url());
  shake_hands();
  int answered = 0;
  const auto call_once = [](StreamableTest& test, int& count) -> Task<void> {
    const Result<json::Raw> answer = co_await test.peer->call("tools/list");
    EXPECT_TRUE(answer) << answer.error().to_string();
    ++count;
  };
  loop.spawn(call_once(*this, answered));
  EXPECT_TRUE(eventually([&] { return server.asked("fairlead-again").size() == 1; }));
  for (int i = 0; i < 4; ++i) loop.spawn(call_once(*this, answered));
  int turns = 0;
  loop.run_until([&] { return loop.post([] {}), ++turns == 100; });
  release.set_value();
  EXPECT_TRUE(eventually([&] { return answered == 5; }));
  EXPECT_EQ(server.asked("fairlead-again").size(), 1U);
}

TEST_F(StreamableTest, CallFailsWhenConfirmationOfARenewedSessionIsRefused) {
  ScriptServer server(loses_first_session([](const Asked& asked, Reply& reply) {
    if (asked.id().empty()) return reply.answer(404, "", "");
    reply.result(asked, kHello, "Mcp-Session-Id: 2\r\n");
  }));
  connect(server.url());
  shake_hands();
  const Error error = call("tools/list").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_NE(error.message().find("cannot be begun again"), std::string::npos) << error.message();
}

TEST_F(StreamableTest, NextCallRenewsTheSessionAfterARenewalHasFailed) {
  std::atomic<int> renewals = 0;
  ScriptServer server(loses_first_session([&renewals](const Asked& asked, Reply& reply) {
    if (asked.id().empty()) return reply.answer(202, "", "");
    if (++renewals == 1) return reply.answer(503, "", "");
    reply.result(asked, kHello, "Mcp-Session-Id: 2\r\n");
  }));
  connect(server.url());
  shake_hands();
  EXPECT_FALSE(call("tools/list"));
  EXPECT_TRUE(call("tools/list"));
  EXPECT_EQ(renewals, 2);
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
