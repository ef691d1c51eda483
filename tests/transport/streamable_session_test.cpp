// R8.3, R8.5: the HTTP transport of a client: sessions of the legacy era, their streams, the renewal of lost
// sessions, HTTP+SSE, and rejected WebSocket handshakes. Uses real sockets.
#include <future>

#include "transport/streamable_harness.hpp"

namespace fairlead::transport {
namespace {

// ---- the legacy era ----

TEST_F(StreamableTest, SessionIdIsSentOnAllRequestsAndDeletedOnClose) {
  ScriptServer server(
      legacy_script([](const ReceivedRequest& request, Reply& reply) { reply.result(request, "{}"); }));
  connect(server.url());
  handshake();
  EXPECT_TRUE(call("tools/list"));
  loop.block_on(close());
  const std::vector<ReceivedRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_FALSE(requests[0].headers.has("Mcp-Session-Id"));
  EXPECT_FALSE(requests[0].headers.has("MCP-Protocol-Version"));
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(requests[i].headers.get("Mcp-Session-Id"), "one");
    EXPECT_EQ(requests[i].headers.get("MCP-Protocol-Version"), "2025-11-25");
  }
  EXPECT_EQ(requests[2].method, "GET");
  EXPECT_EQ(requests[4].method, "DELETE");
}

// Conformance traps 22 and 23: notifications/initialized counts as sent only when the standalone stream is
// open, and a server may have no standalone stream.
TEST_F(StreamableTest, StandaloneStreamIsOpenBeforeOtherRequestsAreSent) {
  std::mutex mutex;
  std::condition_variable changed;
  bool client_responded = false;
  ScriptServer server(legacy_script(
      [&](const ReceivedRequest& request, Reply& reply) {
        if (request.method == "GET") {
          reply.begin_events();
          reply.chunk(event(R"({"jsonrpc":"2.0","id":"q1","method":"elicitation/create"})"));
          reply.wait_for_client_close();
        } else if (request.has(R"("asked":true)")) {
          const std::lock_guard lock(mutex);
          client_responded = true;
          changed.notify_all();
          reply.respond(202, "", "");
        } else {
          std::unique_lock lock(mutex);
          changed.wait_for(lock, 10s, [&] { return client_responded; });
          reply.result(request, "{}");
        }
      },
      true));
  connect(server.url());
  handshake();
  EXPECT_EQ(server.requests("GET").size(), 1U);
  EXPECT_TRUE(call("tools/call"));
  const ReceivedRequest response = server.requests(R"("asked":true)").front();
  EXPECT_EQ(response.id(), "\"q1\"");
  EXPECT_EQ(response.headers.get("Mcp-Session-Id"), "one");
}

// SEP-1699: a stream that ends before its response is resumed after the delay in its `retry` field.
TEST_F(StreamableTest, StreamThatEndsBeforeResponseIsResumedAfterRetryDelay) {
  std::atomic<std::chrono::steady_clock::time_point> ended;
  std::string id;
  ScriptServer server(legacy_script([&](const ReceivedRequest& request, Reply& reply) {
    reply.begin_events();
    if (request.method == "POST") {
      id = result_of(request);
      reply.chunk("id: event-1\nretry: 120\ndata: \n\n");
      ended = std::chrono::steady_clock::now();
      return reply.end_events();
    }
    reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "event-2") +
                event(id, "event-3"));
    reply.wait_for_client_close();
  }));
  connect(server.url());
  handshake();
  EXPECT_TRUE(call("tools/call"));
  const std::vector<ReceivedRequest> gets = server.requests("GET");
  ASSERT_EQ(gets.size(), 2U);
  EXPECT_EQ(gets[1].headers.get("Last-Event-ID"), "event-1");
  EXPECT_EQ(gets[1].headers.get("Mcp-Session-Id"), "one");
  EXPECT_GE(gets[1].received_at - ended.load(), 100ms);
  EXPECT_EQ(notifications, std::vector<std::string>{"notifications/message"});
}

TEST_F(StreamableTest, InterruptedStreamIsResumedFromLastEvent) {
  std::string response;
  ScriptServer server(legacy_script([&](const ReceivedRequest& request, Reply& reply) {
    reply.begin_events();
    if (request.method == "POST") response = result_of(request);
    if (request.method == "POST")
      reply.chunk("retry: 1\n" + event(R"({"jsonrpc":"2.0","method":"notifications/a"})", "a"));
    if (request.headers.get("Last-Event-ID") == "a")
      reply.chunk(event(R"({"jsonrpc":"2.0","method":"notifications/b"})", "b"));
    if (request.headers.get("Last-Event-ID") == "b") reply.chunk(event(response, "c"));
    reply.send("1f\r\ndata: cut in the mid");
    reply.disconnect();
  }));
  connect(server.url());
  handshake();
  EXPECT_TRUE(call("tools/call"));
  EXPECT_EQ(notifications, (std::vector<std::string>{"notifications/a", "notifications/b"}));
  EXPECT_EQ(server.requests("GET").size(), 3U);
}

TEST_F(StreamableTest, CallFailsWhenMaxResumptionsIsReached) {
  options.max_resumptions = 3;
  ScriptServer server(legacy_script([&](const ReceivedRequest& request, Reply& reply) {
    if (request.method == "GET") return reply.respond(503, "text/plain", "later");
    reply.begin_events();
    reply.chunk("retry: 1\nid: a\ndata:\n\n");
    reply.disconnect();
  }));
  connect(server.url());
  handshake();
  const Error error = call("tools/call").error();
  EXPECT_EQ(error.kind(), ErrorKind::closed);
  EXPECT_NE(error.message().find("max_resumptions (3)"), std::string::npos);
  EXPECT_EQ(server.requests("GET").size(), 4U);
}

TEST_F(StreamableTest, StreamWithoutEventIdsIsNotResumed) {
  ScriptServer server(legacy_script([&](const ReceivedRequest&, Reply& reply) {
    reply.begin_events();
    reply.chunk("retry: 1\ndata:\n\n");
    reply.disconnect();
  }));
  connect(server.url());
  handshake();
  EXPECT_EQ(call("tools/call").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.requests("GET").size(), 1U);
}

TEST_F(StreamableTest, CancellingLegacyCallNotifiesServer) {
  std::atomic<bool> closed = false;
  ScriptServer server(legacy_script([&](const ReceivedRequest& request, Reply& reply) {
    if (request.has("notifications/cancelled")) return reply.respond(202, "", "");
    reply.begin_events();
    reply.chunk("id: a\ndata:\n\n");
    closed = reply.wait_for_client_close();
  }));
  connect(server.url());
  handshake();
  EXPECT_EQ(call("tools/call", "{}", CallOptions(50ms)).error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(eventually([&] { return closed && server.requests("notifications/cancelled").size() == 1; }));
  EXPECT_EQ(server.requests("GET").size(), 1U);
}

TEST_F(StreamableTest, StandaloneStreamIsReopenedWhenItEnds) {
  std::atomic<int> streams = 0;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (request.method != "GET")
      return legacy_script([](const ReceivedRequest& a, Reply& r) { r.result(a, "{}"); })(request, reply);
    reply.begin_events();
    reply.chunk("retry: 1\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})",
                                     "s" + std::to_string(++streams)));
    if (streams < 3) return reply.disconnect();
    reply.wait_for_client_close();
  });
  connect(server.url());
  handshake();
  EXPECT_TRUE(eventually([&] { return notifications.size() == 3; }));
  EXPECT_EQ(server.requests("GET")[2].headers.get("Last-Event-ID"), "s2");
}

// ---- lost sessions ----

// Returns the script of a server that responds to calls in its first session with 404. `sessions` counts the
// sessions.
ScriptServer::Script script_losing_session_one(std::atomic<int>& sessions) {
  return [&sessions](const ReceivedRequest& request, Reply& reply) {
    const std::string current = std::to_string(sessions);
    if (request.has("\"initialize\"")) {
      return reply.result(request, kInitializeResult,
                          "Mcp-Session-Id: " + std::to_string(++sessions) + "\r\n");
    }
    if (request.method == "GET") return reply.respond(405, "", "");
    if (request.headers.get("Mcp-Session-Id") == "1" && request.has("tools/"))
      return reply.json(
          404, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}})");
    if (request.headers.get("Mcp-Session-Id") != current) return reply.respond(404, "", "");
    if (request.id().empty()) return reply.respond(request.method == "DELETE" ? 200 : 202, "", "");
    reply.result(request, "{}");
  };
}

// Returns the script of a server whose standalone stream ends after one event, with a `retry` of 0.
ScriptServer::Script script_ending_stream_at_once() {
  return legacy_script(
      [](const ReceivedRequest&, Reply& reply) {
        reply.begin_events();
        reply.chunk("retry: 0\n" + event(R"({"jsonrpc":"2.0","method":"notifications/message"})", "a"));
        reply.end_events();
      },
      true);
}

TEST_F(StreamableTest, RetryOfServerCannotUndercutMinReconnectDelay) {
  options.min_reconnect_delay = 200ms;
  ScriptServer server(script_ending_stream_at_once());
  connect(server.url());
  handshake();
  EXPECT_TRUE(eventually([&] { return server.requests("GET").size() >= 5; }));
  const std::vector<ReceivedRequest> gets = server.requests("GET");
  for (std::size_t i = 1; i < gets.size(); ++i)
    EXPECT_GE(gets[i].received_at - gets[i - 1].received_at, 100ms);
}

TEST_F(StreamableTest, ReconnectsBeyondBurstWaitOneSecond) {
  options.min_reconnect_delay = 1ms;
  options.reconnect_burst = 5;
  ScriptServer server(script_ending_stream_at_once());
  connect(server.url());
  handshake();
  EXPECT_TRUE(eventually([&] { return server.requests("GET").size() >= 7; }));
  const std::vector<ReceivedRequest> gets = server.requests("GET");
  EXPECT_GE(gets[6].received_at - gets[5].received_at, 500ms);
}

TEST_F(StreamableTest, LostSessionIsRenewedAndRequestRetried) {
  std::atomic<int> sessions = 0;
  ScriptServer server(script_losing_session_one(sessions));
  connect(server.url());
  handshake();
  EXPECT_TRUE(call("tools/list"));
  EXPECT_TRUE(call("tools/list"));
  const std::vector<ReceivedRequest> requests = server.requests("POST");
  ASSERT_EQ(requests.size(), 7U);
  EXPECT_TRUE(requests[3].has("\"initialize\""));
  EXPECT_FALSE(requests[3].headers.has("Mcp-Session-Id"));
  EXPECT_NE(requests[3].id(), requests[0].id());
  EXPECT_TRUE(requests[4].has("notifications/initialized"));
  EXPECT_EQ(requests[5].headers.get("Mcp-Session-Id"), "2");
  EXPECT_EQ(requests[5].body, requests[2].body);
  EXPECT_EQ(peer->stats().mismatched_responses, 0U);
}

TEST_F(StreamableTest, ConcurrentCallsRenewLostSessionOnce) {
  std::atomic<int> sessions = 0;
  ScriptServer server(script_losing_session_one(sessions));
  connect(server.url());
  handshake();
  int answered = 0;
  Event all;
  for (int i = 0; i < 5; ++i) {
    loop.spawn([](StreamableTest& test, int& count) -> Task<void> {
      const Result<json::Raw> response = co_await test.peer->call("tools/list");
      if (response) ++count;
    }(*this, answered));
  }
  EXPECT_TRUE(eventually([&] { return answered == 5; }));
  EXPECT_EQ(sessions, 2);
}

TEST_F(StreamableTest, CallFailsWhenSessionCannotBeRenewed) {
  std::atomic<int> handshakes = 0;
  ScriptServer server([&](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"initialize\"") && ++handshakes == 1)
      return reply.result(request, kInitializeResult, "Mcp-Session-Id: one\r\n");
    if (request.has("notifications/")) return reply.respond(202, "", "");
    if (request.has("\"initialize\"")) return reply.respond(503, "text/plain", "no more");
    reply.respond(404, "", "");
  });
  connect(server.url());
  handshake();
  const Error error = call("tools/list").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_NE(error.message().find("cannot be renewed"), std::string::npos) << error.message();
}

// Returns the script of a legacy server that loses its first session with the first call. `renewal` handles
// the requests that start the next session.
ScriptServer::Script script_losing_first_session(ScriptServer::Script renewal) {
  return [renewal](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"fairlead-again-")) return renewal(request, reply);
    if (request.has("\"initialize\""))
      return reply.result(request, kInitializeResult, "Mcp-Session-Id: 1\r\n");
    if (request.method == "GET") return reply.respond(405, "", "");
    if (request.has("notifications/") && request.headers.get("Mcp-Session-Id") == "2")
      return renewal(request, reply);
    if (request.id().empty()) return reply.respond(request.method == "DELETE" ? 200 : 202, "", "");
    if (request.headers.get("Mcp-Session-Id") != "2") return reply.respond(404, "", "");
    reply.result(request, "{}");
  };
}

TEST_F(StreamableTest, CallsDuringRenewalWaitForNewSession) {
  std::promise<void> release;
  ScriptServer server(script_losing_first_session(
      [released = release.get_future().share()](const ReceivedRequest& request, Reply& reply) {
        released.wait();
        if (request.id().empty()) return reply.respond(202, "", "");
        reply.result(request, kInitializeResult, "Mcp-Session-Id: 2\r\n");
      }));
  connect(server.url());
  handshake();
  int answered = 0;
  const auto call_once = [](StreamableTest& test, int& count) -> Task<void> {
    const Result<json::Raw> response = co_await test.peer->call("tools/list");
    EXPECT_TRUE(response) << response.error().to_string();
    ++count;
  };
  loop.spawn(call_once(*this, answered));
  EXPECT_TRUE(eventually([&] { return server.requests("fairlead-again").size() == 1; }));
  for (int i = 0; i < 4; ++i) loop.spawn(call_once(*this, answered));
  int turns = 0;
  loop.run_until([&] { return loop.post([] {}), ++turns == 100; });
  release.set_value();
  EXPECT_TRUE(eventually([&] { return answered == 5; }));
  EXPECT_EQ(server.requests("fairlead-again").size(), 1U);
}

TEST_F(StreamableTest, CallFailsWhenConfirmationOfRenewedSessionIsRejected) {
  ScriptServer server(script_losing_first_session([](const ReceivedRequest& request, Reply& reply) {
    if (request.id().empty()) return reply.respond(404, "", "");
    reply.result(request, kInitializeResult, "Mcp-Session-Id: 2\r\n");
  }));
  connect(server.url());
  handshake();
  const Error error = call("tools/list").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_NE(error.message().find("cannot be renewed"), std::string::npos) << error.message();
}

TEST_F(StreamableTest, NextCallRenewsSessionAfterFailedRenewal) {
  std::atomic<int> renewals = 0;
  ScriptServer server(script_losing_first_session([&renewals](const ReceivedRequest& request, Reply& reply) {
    if (request.id().empty()) return reply.respond(202, "", "");
    if (++renewals == 1) return reply.respond(503, "", "");
    reply.result(request, kInitializeResult, "Mcp-Session-Id: 2\r\n");
  }));
  connect(server.url());
  handshake();
  EXPECT_FALSE(call("tools/list"));
  EXPECT_TRUE(call("tools/list"));
  EXPECT_EQ(renewals, 2);
}

// ---- HTTP+SSE ----

class HttpSseTest : public StreamableTest {
 public:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> outbox;
  std::string endpoint = "/messages?session=1";
  bool stream_ended = false;

  ScriptServer::Script http_sse_server() {
    return [this](const ReceivedRequest& request, Reply& reply) {
      if (request.target == "/sse" && request.method == "POST") return reply.respond(405, "text/plain", "no");
      if (request.target == "/sse") {
        reply.begin_events();
        reply.chunk("event: endpoint\ndata: " + endpoint + "\n\n");
        std::unique_lock lock(mutex);
        while (changed.wait_for(lock, 10s, [&] { return !outbox.empty() || stream_ended; }) &&
               !stream_ended) {
          reply.chunk("event: message\n" + event(outbox.front()));
          outbox.erase(outbox.begin());
        }
        return reply.disconnect();
      }
      {
        const std::lock_guard lock(mutex);
        if (request.has("\"initialize\"")) outbox.push_back(result_of(request, kInitializeResult));
        if (request.has("tools/list")) outbox.push_back(result_of(request));
        if (request.has("tools/list")) outbox.push_back(R"({"jsonrpc":"2.0","id":5,"method":"roots/list"})");
      }
      changed.notify_all();
      reply.respond(202, "text/plain", "Accepted");
    };
  }
  void end_stream() {
    {
      const std::lock_guard lock(mutex);
      stream_ended = true;
    }
    changed.notify_all();
  }
};

TEST_F(HttpSseTest, ClientFallsBackToHttpSseWithOldServer) {
  ScriptServer server(http_sse_server());
  connect(server.url("/sse"));
  handshake();
  EXPECT_TRUE(call("tools/list"));
  EXPECT_TRUE(eventually([&] { return server.requests(R"("asked":true)").size() == 1; }));
  EXPECT_EQ(server.requests("tools/list").front().target, "/messages?session=1");
  EXPECT_EQ(server.requests("GET").size(), 1U);
  end_stream();
  EXPECT_TRUE(eventually([&] { return connection->closed(); }));
}

TEST_F(HttpSseTest, EndpointOfAnotherOriginIsRejected) {
  endpoint = "http://127.0.0.2:1/messages";
  ScriptServer server(http_sse_server());
  connect(server.url("/sse"));
  const Error error = call("initialize").error();
  EXPECT_EQ(error.kind(), ErrorKind::http_status);
  EXPECT_EQ(error.detail().http_status, 405);
  end_stream();
}

// ---- WebSocket ----

TEST_F(StreamableTest, ConnectFailsWhenServerRejectsWebSocketHandshake) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/wrong") {
      return reply.send(
          "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: "
          "no\r\n\r\n");
    }
    reply.respond(404, "", "");
  });
  const auto refused = loop.block_on(transport::connect(loop, "ws" + server.url().substr(4), options));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::http_status);
  EXPECT_EQ(server.requests().front().headers.get("Sec-WebSocket-Protocol"), "mcp");
  const auto wrong = loop.block_on(transport::connect(loop, "ws" + server.url("/wrong").substr(4), options));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), ErrorKind::connection_failed);
}

}  // namespace
}  // namespace fairlead::transport
