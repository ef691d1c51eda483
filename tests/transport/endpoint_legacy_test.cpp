// Endpoint: Streamable HTTP and HTTP+SSE of the legacy era.
#include "support/hostile_json.hpp"
#include "support/turns.hpp"
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

class LegacyEndpointTest : public EndpointTest {};

std::string notification(const std::string& params) {
  return R"({"jsonrpc":"2.0","method":"notifications/message","params":)" + params + "}";
}

TEST_F(LegacyEndpointTest, LargestBodiesDoNotBlockTheLoop) {
  initialize("2025-11-25");
  for (const std::string& value : test::hostile_values(test::kLargeBodyBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    test::expect_short_turns(loop, [&] {
      const FakeExchangePtr response = call("1", "echo", R"({"a":)" + value + "}");
      loop.run_until([&] { return response->finished; });
      EXPECT_EQ(response->status, 200);
      EXPECT_NE(response->body.find(value), std::string::npos);
    });
  }
}

TEST_F(LegacyEndpointTest, LargeBodyIsDroppedWhenClientDisconnects) {
  initialize("2025-11-25");
  const std::string params = test::shuffled("[", {"[],", "1,"}, "1", "]", 40u << 20);
  const FakeExchangePtr exchange = call("1", "echo", params);
  ASSERT_FALSE(exchange->responded()) << "the body is not large enough";
  exchange->disconnect();
  run_pending_callbacks();
  const FakeExchangePtr next = call("2", "echo", R"({"b":1})");
  EXPECT_EQ(next->status, 200);
  for (int i = 0; i < 20; ++i) run_pending_callbacks();
  EXPECT_FALSE(exchange->responded());
}

TEST_F(LegacyEndpointTest, SessionIsCreatedByInitializeAndEndedByDelete) {
  initialize("2025-11-25");
  EXPECT_EQ(endpoint->session_count(), 1u);
  for (const char c : session) EXPECT_TRUE(c >= 0x21 && c <= 0x7e);
  EXPECT_EQ(post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})")->status, 202);
  const FakeExchangePtr echo = call("1", "echo", R"({"a":1})");
  EXPECT_EQ(echo->status, 200);
  EXPECT_EQ(echo->header("Content-Type"), "application/json");
  EXPECT_EQ(echo->body, result("1", R"({"a":1})"));
  EXPECT_EQ(send("DELETE", headers())->status, 200);
  EXPECT_EQ(endpoint->session_count(), 0u);
  EXPECT_EQ(call("2", "echo")->status, 404);
  EXPECT_EQ(get()->status, 404);
  EXPECT_EQ(send("DELETE", headers())->status, 404);
}

TEST_F(LegacyEndpointTest, RequestIsRejectedWithoutKnownSessionId) {
  const FakeExchangePtr none = call("5", "echo");
  EXPECT_EQ(none->status, 400);
  EXPECT_EQ(
      none->body,
      R"({"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id is missing"}})");
  session = "0123456789abcdef0123456789abcdef";
  const FakeExchangePtr unknown = call("\"x\"", "echo");
  EXPECT_EQ(unknown->status, 404);
  EXPECT_EQ(unknown->body,
            R"({"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"Session not found"}})");
  EXPECT_EQ(call("0", "initialize", R"({"protocolVersion":"2025-11-25"})")->status, 404);
}

TEST_F(LegacyEndpointTest, FailedInitializeCreatesNoSession) {
  const FakeExchangePtr failed = call("0", "initialize");
  EXPECT_EQ(failed->status, 200);
  EXPECT_FALSE(failed->headers.has("Mcp-Session-Id"));
  EXPECT_NE(failed->body.find("-32602"), std::string::npos);
  EXPECT_EQ(endpoint->session_count(), 0u);
}

TEST_F(LegacyEndpointTest, SecondInitializeIsRejected) {
  initialize("2025-11-25");
  EXPECT_EQ(call("0", "initialize", R"({"protocolVersion":"2025-11-25"})")->status, 400);
  EXPECT_EQ(call("1", "echo")->status, 200);
}

TEST_F(LegacyEndpointTest, WrongMediaTypesAndHttpMethodsAreRejected) {
  initialize("2025-11-25");
  http::Headers plain = headers();
  plain.set("Content-Type", "text/plain");
  EXPECT_EQ(send("POST", plain, request("1", "echo"))->status, 415);
  EXPECT_EQ(send("POST", headers("text/html"), request("1", "echo"))->status, 406);
  EXPECT_EQ(send("GET", headers("application/json"))->status, 406);
  const FakeExchangePtr put = send("PUT", headers());
  EXPECT_EQ(put->status, 405);
  EXPECT_EQ(put->header("Allow"), "GET, POST, DELETE");
  EXPECT_EQ(post("{")->status, 400);
  http::Headers modern = headers();
  modern.add("MCP-Protocol-Version", "2026-07-28");
  EXPECT_EQ(send("GET", modern)->status, 405);
  // The header may name a supported version other than the negotiated one, or be absent.
  modern.set("MCP-Protocol-Version", "2025-03-26");
  EXPECT_EQ(send("POST", modern, request("1", "echo"))->status, 200);
}

TEST_F(LegacyEndpointTest, ResponseIsEventStreamWhenNotificationPrecedesIt) {
  initialize("2025-11-25");
  const FakeExchangePtr talk = call("1", "talk", R"({"a":1})");
  EXPECT_EQ(talk->header("Content-Type"), "text/event-stream");
  EXPECT_TRUE(talk->finished);
  EXPECT_EQ(talk->body, priming("1-1") + event("1-2", notification(R"({"a":1})")) +
                            event("1-3", result("1", R"({"a":1})")));
}

TEST_F(LegacyEndpointTest, OlderClientsReceiveNoPrimingEvents) {
  initialize("2025-06-18");
  http::Headers newer = headers();
  newer.add("MCP-Protocol-Version", "2025-11-25");  // the negotiated version counts, not the header
  EXPECT_EQ(send("POST", newer, request("1", "talk"))->body,
            event("1-1", notification("{}")) + event("1-2", result("1", "{}")));
}

TEST_F(LegacyEndpointTest, ResponseHasTheOnlyMediaTypeThatClientAccepts) {
  initialize("2025-06-18");
  const FakeExchangePtr events = send("POST", headers("text/event-stream"), request("1", "echo"));
  EXPECT_EQ(events->body, event("1-1", result("1", "{}")));
  EXPECT_TRUE(events->finished);
  // A client that accepts only JSON receives notifications on the standalone stream.
  EXPECT_EQ(send("POST", headers("application/json"), request("2", "talk"))->body, result("2", "{}"));
  EXPECT_EQ(get()->body, event("0-1", notification("{}")));
}

TEST_F(LegacyEndpointTest, ClientRespondsToServerRequestWithPost) {
  initialize("2025-11-25");
  const FakeExchangePtr ask = call("1", "ask");
  ASSERT_TRUE(ask->streaming);
  EXPECT_FALSE(ask->finished);
  const std::string question = R"("method":"roots/list"})";
  ASSERT_NE(ask->body.find(question), std::string::npos);
  const std::size_t at = ask->body.find(R"("id":)") + 5;
  const std::string id = ask->body.substr(at, ask->body.find(',', at) - at);
  EXPECT_EQ(post(result(id, R"({"roots":[]})"))->status, 202);
  EXPECT_TRUE(ask->finished);
  EXPECT_NE(ask->body.find(result("1", R"({"roots":[]})")), std::string::npos);
}

TEST_F(LegacyEndpointTest, UnrelatedMessagesAreSentOnStandaloneStream) {
  initialize("2025-11-25");
  on_loop([&] { EXPECT_TRUE(application->peers.front()->post_notification("notifications/early")); });
  const FakeExchangePtr first = get();
  const std::string early = event("0-1", R"({"jsonrpc":"2.0","method":"notifications/early"})");
  EXPECT_EQ(first->body, priming("0-0") + early);
  EXPECT_EQ(get()->status, 409);
  on_loop([&] { EXPECT_TRUE(application->peers.front()->post_notification("notifications/late")); });
  const std::string late = event("0-2", R"({"jsonrpc":"2.0","method":"notifications/late"})");
  EXPECT_EQ(first->body, priming("0-0") + early + late);
  first->disconnect();
  EXPECT_EQ(get()->body, priming("0-2"));  // all events have been sent on the previous stream
  // A client that resumes names its last event; the previous connection to the stream is closed.
  const FakeExchangePtr again = get("0-1");
  EXPECT_EQ(again->body, late);
  EXPECT_FALSE(again->finished);
  EXPECT_EQ(get("0-0")->body, early + late);
  EXPECT_TRUE(again->finished);
}

// The head of the stream then leaves in one write with the first event.
TEST_F(LegacyEndpointTest, EventStreamStartsWithFirstEventOrAfterDelay) {
  initialize("2025-11-25");
  const FakeExchangePtr quick = send("POST", headers("text/event-stream"), request("1", "echo"));
  EXPECT_EQ(quick->body, priming("1-1") + event("1-2", result("1", "{}")));
  const FakeExchangePtr hang = send("POST", headers("text/event-stream"), request("2", "hang"));
  EXPECT_FALSE(hang->responded());
  loop.run_until([&] { return hang->streaming; });
  EXPECT_EQ(hang->body, priming("2-1"));
}

TEST_F(LegacyEndpointTest, ResponsesThatPrecedeTheStreamOfTheirBatchAreSentWhenItStarts) {
  initialize("2025-03-26");
  const std::string batch = "[" + request("10", "echo") + "," + request("11", "hang") + R"(,{"id":12}])";
  const FakeExchangePtr events = post_for_events(batch);
  EXPECT_NE(events->body.find(result("10", "{}")), std::string::npos) << events->body;
  EXPECT_NE(events->body.find(R"("id":12)"), std::string::npos) << events->body;
  EXPECT_FALSE(events->finished);
  on_loop([&] { application->release(); });
  EXPECT_NE(events->body.find(result("11", "{}")), std::string::npos) << events->body;
  EXPECT_TRUE(events->finished);
}

TEST_F(LegacyEndpointTest, ResponsesThatPrecedeANotificationOfTheirBatchAreSentBeforeIt) {
  initialize("2025-03-26");
  const FakeExchangePtr events = post("[" + request("10", "echo") + "," + request("11", "talk") + "]");
  const std::size_t first = events->body.find(result("10", "{}"));
  const std::size_t notification = events->body.find("notifications/message");
  EXPECT_LT(first, notification) << events->body;
  EXPECT_NE(notification, std::string::npos) << events->body;
  EXPECT_NE(events->body.find(result("11", "{}")), std::string::npos) << events->body;
}

TEST_F(LegacyEndpointTest, LostResponseIsReplayedOnResumption) {
  initialize("2025-11-25");
  const FakeExchangePtr hang = post_for_events(request("1", "hang"));
  EXPECT_EQ(hang->body, priming("1-1"));
  hang->disconnect();
  EXPECT_EQ(application->stopped(), 0);  // a disconnect does not cancel a request of the legacy era
  const FakeExchangePtr waiting = get("1-1");
  EXPECT_TRUE(waiting->streaming);
  EXPECT_FALSE(waiting->finished);
  waiting->disconnect();
  on_loop([&] { application->release(); });
  const FakeExchangePtr collected = get("1-1");
  EXPECT_EQ(collected->body, event("1-2", result("1", "{}")));
  EXPECT_TRUE(collected->finished);
  EXPECT_EQ(get("1-2")->body, "");
}

TEST_F(LegacyEndpointTest, EventsOfFinishedStreamAreDroppedAfterGracePeriod) {
  options.finished_stream_grace = 20ms;
  initialize("2025-11-25");
  const FakeExchangePtr talk = call("1", "talk", R"({"a":1})");
  EXPECT_TRUE(talk->finished);
  EXPECT_EQ(get("1-1")->status, 200);
  FakeExchangePtr late = get("1-1");
  for (const auto until = Clock::now() + 10s; late->status == 200 && Clock::now() < until;) late = get("1-1");
  EXPECT_EQ(late->status, 400);
  EXPECT_NE(late->body.find("names no event of this session"), std::string::npos);
  EXPECT_EQ(call("2", "echo")->status, 200);  // the session is still open
}

TEST_F(LegacyEndpointTest, StreamClosedEarlyCanBePolled) {
  initialize("2025-11-25");
  const FakeExchangePtr hang = call("1", "hang");
  EXPECT_FALSE(hang->responded());
  on_loop([&] { application->peers.front()->connection().close_request_stream("1"); });
  EXPECT_EQ(hang->body, priming("1-1"));
  EXPECT_TRUE(hang->finished);
  // Opening the standalone stream does not affect the stream of the request.
  const FakeExchangePtr standalone = get();
  const FakeExchangePtr polling = get("1-1");
  on_loop([&] { application->release(); });
  EXPECT_EQ(polling->body, event("1-2", result("1", "{}")));
  EXPECT_TRUE(polling->finished);
  EXPECT_EQ(standalone->body, priming("0-0"));
}

TEST_F(LegacyEndpointTest, StreamOfOlderClientIsNotClosedEarly) {
  initialize("2025-06-18");
  const FakeExchangePtr hang = call("1", "hang");
  on_loop([&] { application->peers.front()->connection().close_request_stream("1"); });
  EXPECT_FALSE(hang->responded());
  on_loop([&] { application->release(); });
  EXPECT_EQ(hang->body, result("1", "{}"));
}

TEST_F(LegacyEndpointTest, EventIdsOfOtherSessionsAreRejected) {
  initialize("2025-11-25");
  const std::string first = session;
  call("1", "talk");
  initialize("2025-11-25");
  for (const char* id : {"1-1", "1-2", "0-1", "2-0", "x", "1-1-1", "0-99999999999999999999"}) {
    EXPECT_EQ(get(id)->status, 400) << id;
  }
  session = first;
  EXPECT_EQ(get("1-2")->status, 200);
}

TEST_F(LegacyEndpointTest, CancelledRequestEndsItsStream) {
  initialize("2025-11-25");
  const FakeExchangePtr quiet = call("1", "hang");
  const FakeExchangePtr events = post_for_events(request("2", "hang"));
  EXPECT_EQ(post(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})")->status,
            202);
  EXPECT_EQ(post(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})")->status,
            202);
  EXPECT_EQ(application->stopped(), 2);
  EXPECT_TRUE(quiet->finished);
  EXPECT_EQ(quiet->body, "");
  EXPECT_TRUE(events->finished);
  EXPECT_EQ(events->body, priming("1-1"));
}

TEST_F(LegacyEndpointTest, RequestIsRejectedWhenItsIdIsInUse) {
  initialize("2025-11-25");
  const FakeExchangePtr hang = call("1", "hang", R"({"first":true})");
  const FakeExchangePtr echo = call("1", "echo");
  EXPECT_EQ(echo->status, 400);
  EXPECT_NE(echo->body.find(R"("id":1,"error":{"code":-32600)"), std::string::npos);
  on_loop([&] { application->release(); });
  EXPECT_EQ(hang->body, result("1", R"({"first":true})"));
}

TEST_F(LegacyEndpointTest, BatchIsSplitAndItsResponsesAreCollected) {
  initialize("2025-03-26");
  const std::string init = request("0", "initialize", R"({"protocolVersion":"2025-03-26"})");
  const FakeExchangePtr both =
      post("[" + request("1", "echo", "[1]") + "," + request("2", "hang") + R"(,{"jsonrpc":"2.0"},)" +
           R"({"jsonrpc":"2.0","method":"notifications/initialized"}])");
  EXPECT_FALSE(both->responded());
  on_loop([&] { application->release(); });
  EXPECT_TRUE(both->body.starts_with("[") && both->body.ends_with("]"));
  EXPECT_NE(both->body.find(result("1", "[1]")), std::string::npos);
  EXPECT_NE(both->body.find(result("2", "{}")), std::string::npos);
  EXPECT_NE(both->body.find(R"({"jsonrpc":"2.0","error":{"code":-32600)"), std::string::npos);
  EXPECT_EQ(post(R"([{"jsonrpc":"2.0","method":"notifications/initialized"}])")->status, 202);
  EXPECT_EQ(post("[" + init + "]")->status, 400);
  const FakeExchangePtr events = post("[" + request("3", "echo") + "," + request("4", "talk") + "]");
  EXPECT_EQ(events->header("Content-Type"), "text/event-stream");
  EXPECT_TRUE(events->finished);
  EXPECT_NE(events->body.find("data: " + result("4", "{}")), std::string::npos);
  initialize("2025-06-18");
  EXPECT_EQ(post("[" + request("1", "echo") + "]")->status, 400);
}

PrincipalPtr make_principal(const std::string& issuer, const std::string& user,
                            const std::string& token = "") {
  auto principal = std::make_shared<Principal>();
  principal->issuer = issuer;
  principal->subject = user;
  principal->user = user;
  principal->token_id = token;
  return principal;
}

TEST_F(LegacyEndpointTest, SessionOfAnotherPrincipalIsNotFound) {
  const PrincipalPtr alice = make_principal("a", "alice");
  principal = alice;
  initialize("2025-11-25");
  EXPECT_EQ(application->users, std::vector<std::string>{"alice"});
  for (const PrincipalPtr& other :
       {make_principal("a", "bob"), make_principal("b", "alice"), Principal::anonymous()}) {
    principal = other;
    EXPECT_EQ(call("1", "echo")->status, 404);
    EXPECT_EQ(get()->status, 404);
    EXPECT_EQ(send("DELETE", headers())->status, 404);
  }
  principal = make_principal("a", "alice", "a fresh token");
  EXPECT_EQ(call("1", "echo")->status, 200);
}

TEST_F(LegacyEndpointTest, SessionIsRejectedWhenMaxSessionsIsReached) {
  options.max_sessions = 1;
  initialize("2025-11-25");
  EXPECT_EQ(call("1", "echo")->status, 200);
  session.clear();
  const FakeExchangePtr refused = call("0", "initialize", R"({"protocolVersion":"2025-11-25"})");
  EXPECT_EQ(refused->status, 503);
  EXPECT_NE(refused->body.find("max_sessions (1)"), std::string::npos);
}

TEST_F(LegacyEndpointTest, SessionWithoutRequestIsEvictedWhenMaxSessionsIsReached) {
  options.max_sessions = 3;
  std::vector<std::string> sessions;
  for (int i = 0; i < 3; ++i) {
    initialize("2025-11-25");
    sessions.push_back(session);
  }
  session = sessions[0];
  EXPECT_EQ(call("1", "echo")->status, 200);
  session = sessions[2];
  const FakeExchangePtr stream = get();  // an open stream: the session is not idle
  initialize("2025-11-25");
  sessions.push_back(session);
  EXPECT_EQ(endpoint->session_count(), 3u);
  for (const int kept : {0, 2, 3}) {
    session = sessions[static_cast<std::size_t>(kept)];
    EXPECT_EQ(call("2", "echo")->status, 200) << kept;
  }
  session = sessions[1];
  EXPECT_EQ(call("2", "echo")->status, 404);
}

TEST_F(LegacyEndpointTest, ClientBelowItsShareEvictsSessionOfClientAboveIt) {
  options.max_sessions = 3;
  options.max_client_sessions = 2;
  const auto budget = ByteBudget::create();
  client = budget->account("many");
  std::vector<std::string> sessions;
  for (int i = 0; i < 3; ++i) {
    initialize("2025-11-25");
    EXPECT_EQ(call("1", "echo")->status, 200);
    sessions.push_back(session);
  }
  session.clear();
  EXPECT_EQ(call("0", "initialize", R"({"protocolVersion":"2025-11-25"})")->status, 503);

  client = budget->account("few");
  initialize("2025-11-25");
  EXPECT_EQ(call("1", "echo")->status, 200);
  EXPECT_EQ(endpoint->session_count(), 3u);
  // No client is above its share now.
  session.clear();
  EXPECT_EQ(call("0", "initialize", R"({"protocolVersion":"2025-11-25"})")->status, 503);
}

TEST_F(LegacyEndpointTest, IdleSessionsEndAndActiveOnesDoNot) {
  options.session_idle = 20ms;
  initialize("2025-11-25");
  const std::string idle = session;
  initialize("2025-11-25");
  const FakeExchangePtr open = get();
  loop.run_until([&] { return endpoint->session_count() == 1; });
  EXPECT_FALSE(open->finished);
  EXPECT_EQ(call("1", "echo")->status, 200);
  open->disconnect();
  loop.run_until([&] { return endpoint->session_count() == 0; });
}

TEST_F(LegacyEndpointTest, IdleStreamsReceiveKeepAliveComments) {
  options.keep_alive = 5ms;
  initialize("2025-06-18");
  const FakeExchangePtr open = get();
  const FakeExchangePtr hang = send("POST", headers("text/event-stream"), request("1", "hang"));
  loop.run_until([&] { return !open->body.empty() && !hang->body.empty(); });
  EXPECT_TRUE(open->body.starts_with(": keepalive\n\n"));
  EXPECT_TRUE(hang->body.starts_with(": keepalive\n\n"));
}

TEST_F(LegacyEndpointTest, SlowResponseBecomesResumableStream) {
  options.keep_alive = 5ms;
  initialize("2025-11-25");
  const FakeExchangePtr hang = call("1", "hang");
  loop.run_until([&] { return hang->responded(); });
  EXPECT_TRUE(hang->body.starts_with(priming("1-1")));
  hang->disconnect();
  on_loop([&] { application->release(); });
  EXPECT_EQ(get("1-1")->body, event("1-2", result("1", "{}")));
}

TEST_F(LegacyEndpointTest, RequestTimesOutAfterRequestTimeout) {
  options.request_timeout = 20ms;
  initialize("2025-11-25");
  const FakeExchangePtr hang = call("1", "hang");
  loop.run_until([&] { return hang->finished; });
  EXPECT_NE(hang->body.find("request_timeout (20 ms)"), std::string::npos);
  run_pending_callbacks();
  EXPECT_EQ(application->stopped(), 1);
}

TEST_F(LegacyEndpointTest, DeleteEndsPendingRequestsAndStreams) {
  initialize("2025-11-25");
  const FakeExchangePtr standalone = get();
  const FakeExchangePtr hang = call("1", "hang");
  const FakeExchangePtr events = send("POST", headers("text/event-stream"), request("2", "hang"));
  EXPECT_EQ(send("DELETE", headers())->status, 200);
  EXPECT_TRUE(standalone->finished);
  EXPECT_EQ(hang->status, 404);
  EXPECT_TRUE(events->finished);
  EXPECT_EQ(application->stopped(), 2);
}

TEST_F(LegacyEndpointTest, DrainingEndpointFinishesRequestsAndRejectsSessions) {
  initialize("2025-11-25");
  const FakeExchangePtr standalone = get();
  const FakeExchangePtr hang = call("1", "hang");
  on_loop([&] { loop.spawn(endpoint->begin_drain()); });
  EXPECT_TRUE(standalone->finished);
  EXPECT_TRUE(application->drained);
  EXPECT_FALSE(hang->responded());
  on_loop([&] { application->release(); });
  EXPECT_EQ(hang->body, result("1", "{}"));
  session.clear();
  EXPECT_EQ(call("0", "initialize", R"({"protocolVersion":"2025-11-25"})")->status, 503);
}

TEST_F(LegacyEndpointTest, HttpSseSessionUsesOneStream) {
  endpoint = Endpoint::create(loop, application, options);
  http::Request request;
  request.method = "GET";
  const auto stream = std::make_shared<FakeExchange>(loop, request);
  on_loop([&] { endpoint->sse_handler("/messages")(stream); });
  const std::string prefix = "event: endpoint\ndata: /messages?sessionId=";
  ASSERT_TRUE(stream->body.starts_with(prefix));
  const std::string id = stream->body.substr(prefix.size(), stream->body.find("\n\n") - prefix.size());
  const auto post_to = [&](const std::string& target, const std::string& body) {
    http::Request posted;
    posted.method = "POST";
    posted.target = target;
    posted.headers = http::Headers{{"Content-Type", "application/json"}};
    posted.body = Bytes::copy_of(body);
    posted.principal = principal;
    auto exchange = std::make_shared<FakeExchange>(loop, posted);
    on_loop([&] { endpoint->messages_handler()(exchange); });
    return exchange;
  };
  const std::string echo = EndpointTest::request("1", "echo");
  EXPECT_EQ(post_to("/messages?sessionId=" + id, echo)->status, 202);
  EXPECT_TRUE(stream->body.ends_with(event("", result("1", "{}"))));
  EXPECT_EQ(post_to("/messages?x=1&sessionId=" + id, "{")->status, 400);
  EXPECT_EQ(post_to("/messages?sessionId=other", echo)->status, 404);
  EXPECT_EQ(post_to("/messages", echo)->status, 404);
  principal = make_principal("a", "bob");
  EXPECT_EQ(post_to("/messages?sessionId=" + id, echo)->status, 404) << "of another principal";
  principal = Principal::anonymous();
  on_loop([&] { stream->disconnect(); });
  EXPECT_EQ(endpoint->session_count(), 0u);
  EXPECT_EQ(post_to("/messages?sessionId=" + id, echo)->status, 404);
}

}  // namespace
}  // namespace fairlead::transport
