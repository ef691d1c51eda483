// Invalid input of clients: forged cursors and request states, cancellation at any time, and input that
// exceeds a limit. The server responds with an error that names the cause, and serves the next request.
#include "mcp/bad_input.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

// ---- cursors, states, tokens ----------------------------------------------------------------------------

TEST_F(BadInputTest, InvalidCursorsAreRejectedInEveryList) {
  server.page_size(1);
  start_legacy();
  // Cursors that are empty, have characters outside of base64, contain no number, point beyond the end, are
  // of a list of another length, or are huge.
  const std::string huge(100'000, 'A');
  for (const char* method : {"tools/list", "resources/list", "resources/templates/list", "prompts/list"}) {
    for (const std::string& cursor : {std::string(), std::string("!!"), std::string("eC8x"),
                                      std::string("OTkvMQ"), std::string("MC85"), huge}) {
      EXPECT_EQ(legacy(method, R"({"cursor":")" + cursor + R"("})"),
                error(-32602, R"("message":"the cursor is not valid")"))
          << method;
    }
  }
  EXPECT_TRUE(still_serves());
}

const std::string kRejectedState =
    error(-32602, R"("message":"requestState is not valid","data":{"reason":"invalid_request_state"})");

std::string state_in(const std::string& answer) {
  const std::size_t at = answer.find(R"("requestState":")") + 16;
  return answer.substr(at, answer.find('"', at) - at);
}

TEST_F(BadInputTest, TamperedRequestStateIsRejected) {
  server.request_state_keys({std::string(32, 'k')});
  start();
  const std::string call = R"("name":"ask","arguments":{"message":""},)";
  const std::string state = state_in(modern_with("tools/call", R"("name":"ask","arguments":{"message":""})"));
  const auto with = [&](const std::string& given) {
    return modern_with("tools/call", call + R"("requestState":")" + given + "\"");
  };
  EXPECT_NE(with(state).find("input_required"), std::string::npos);
  for (std::size_t at = 0; at < state.size(); ++at) {
    std::string changed = state;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    EXPECT_EQ(with(changed), kRejectedState) << at;
    EXPECT_EQ(with(state.substr(0, at)), kRejectedState) << at;
  }
  EXPECT_EQ(with(state + "A"), kRejectedState);
  EXPECT_EQ(with(std::string(100'000, 'x')), kRejectedState);
  // The request state of another tool (also if the handler of the called tool makes no input requests and
  // would ignore the state), and a request state sealed with another key.
  EXPECT_EQ(modern_with("tools/call",
                        R"("name":"echo","arguments":{"message":""},"requestState":")" + state + "\""),
            kRejectedState);
  EXPECT_EQ(modern_with("resources/read", R"("uri":"test://fixed","requestState":")" + state + "\""),
            kRejectedState);
  EXPECT_EQ(modern_with("prompts/get", R"("name":"hello","requestState":")" + state + "\""), kRejectedState);
  server.request_state_keys({std::string(32, 'n'), std::string(32, 'k')});
  EXPECT_NE(with(state).find("input_required"), std::string::npos);  // rotated
  server.request_state_keys({std::string(32, 'n')});
  EXPECT_EQ(with(state), kRejectedState);
}

TEST_F(BadInputTest, ExpiredRequestStateIsRejected) {
  for (const auto lifetime : {0s, -1s, -1000s}) {
    server.request_state_keys({std::string(32, 'k')}, lifetime);
    start();
    const std::string state =
        state_in(modern_with("tools/call", R"("name":"ask","arguments":{"message":""})"));
    EXPECT_EQ(modern_with("tools/call",
                          R"("name":"ask","arguments":{"message":""},"requestState":")" + state + "\""),
              kRejectedState);
    EXPECT_NE(modern("tools/list").find(R"("result":)"), std::string::npos);
    TearDown();
  }
}

TEST_F(BadInputTest, ProgressTokenIsRejectedUnlessStringOrInteger) {
  start_legacy();
  const auto call = [&](const std::string& token) {
    return legacy("tools/call",
                  R"({"name":"step","arguments":{"message":""},"_meta":{"progressToken":)" + token + "}}");
  };
  for (const std::string token : {"\"t\"", "\"\"", "7", "-3", "0", "9007199254740993"}) {
    EXPECT_EQ(call(token),
              R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" + token +
                  R"(,"progress":1}})");
    EXPECT_NE(receive().find("done"), std::string::npos);
  }
  EXPECT_NE(call("null").find("done"), std::string::npos);  // null is treated as absent
  for (const std::string token : {"1.5", "{}", "[]", "true"}) {
    EXPECT_EQ(call(token), error(-32602, R"("message":"progressToken is neither a string nor an integer")"))
        << token;
  }
}

// ---- sleeping -------------------------------------------------------------------------------------------

Task<Result<std::string>> sleepy(Context context, EchoArgs) {
  const bool rested = co_await context.sleep(std::chrono::milliseconds(1));
  context.log(LoggingLevel::info, json::string(rested ? "rested" : "woken too early"));
  const bool rested_again = co_await context.sleep(std::chrono::hours(1));
  context.log(LoggingLevel::info, json::string(rested_again ? "slept through" : "woken"));
  co_return std::string("done");
}

TEST_F(ServerTest, SleepingHandlerIsWokenWhenItsRequestIsCancelled) {
  tool(server, "sleepy", "", &sleepy);
  start();
  initialize("2025-11-25");
  EXPECT_NE(legacy("tools/call", R"({"name":"sleepy","arguments":{"message":""}})").find("rested"),
            std::string::npos);
  const std::string woken =
      round_trip(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_NE(woken.find("woken"), std::string::npos) << woken;
}

// ---- cancelling -----------------------------------------------------------------------------------------

TEST_F(BadInputTest, CancellationOfNoRequestInProgressIsIgnored) {
  start_legacy();
  const std::string cancel =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})";
  send(cancel);
  EXPECT_NE(legacy("tools/list").find(R"("tools":[)"), std::string::npos);
  send(cancel);
  for (const char* bad : {"{}", R"({"requestId":null})", R"({"requestId":"1"})", R"({"requestId":{}})",
                          R"({"requestId":1.0,"reason":7})"}) {
    send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)" + std::string(bad) + "}");
  }
  EXPECT_TRUE(still_serves());
}

TEST_F(BadInputTest, CancellationOfRequestCancelsItsOpenInputRequest) {
  start_legacy();
  EXPECT_NE(legacy("tools/call", R"({"name":"ask","arguments":{"message":""}})").find("elicitation/create"),
            std::string::npos);
  EXPECT_EQ(peer->requests_in_progress(), 1u);
  const std::string notification =
      round_trip(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_EQ(
      notification.find(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1)"), 0u)
      << notification;
  EXPECT_TRUE(still_serves());  // and no other message was sent for the cancelled request
  EXPECT_EQ(peer->requests_in_progress(), 0u);
  EXPECT_EQ(peer->calls_in_flight(), 0u);
  send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"decline"}})");  // after the cancellation
  EXPECT_TRUE(still_serves());
}

TEST_F(BadInputTest, InitializeCannotBeCancelled) {
  start();
  ASSERT_TRUE(test_end->post(test::rope(
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})")));
  ASSERT_TRUE(test_end->post(
      test::rope(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})")));
  EXPECT_NE(receive().find(R"("protocolVersion":"2025-11-25")"), std::string::npos);
  EXPECT_TRUE(still_serves());
}

// ---- limits and shutdown --------------------------------------------------------------------------------

TEST_F(BadInputTest, SubscriptionOverMaxSubscribedResourcesIsRejected) {
  start_legacy();
  const auto uri = [](int i) { return R"({"uri":"test://)" + std::to_string(i) + R"("})"; };
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(legacy("resources/subscribe", uri(i)), result("{}"));
  EXPECT_EQ(
      legacy("resources/subscribe", uri(10'000)),
      error(
          -32603,
          R"x("message":"Subscription limit reached: the resources are over max_subscribed_resources (10000)")x"));
  EXPECT_EQ(legacy("resources/subscribe", uri(9'999)), result("{}"));  // already subscribed
  EXPECT_EQ(legacy("resources/unsubscribe", uri(0)), result("{}"));
  EXPECT_EQ(legacy("resources/subscribe", uri(10'000)), result("{}"));
  server.notify_resource_updated("test://10000");
  EXPECT_NE(receive().find("test://10000"), std::string::npos);
  const std::string endless(8193, 'x');
  EXPECT_EQ(legacy("resources/subscribe", R"({"uri":")" + endless + R"("})"),
            error(-32602, R"x("message":"uri is over the limit max_uri_bytes (8192)")x"));
}

TEST_F(BadInputTest, LegacyClientIsNotifiedOnceOfRepeatedChangesWithinOneTurn) {
  start_legacy();
  ASSERT_EQ(legacy("resources/subscribe", R"({"uri":"test://1"})"), result("{}"));
  for (int i = 0; i < 1'000; ++i) {
    server.notify_resource_updated("test://1");
    server.notify_tools_changed([](std::string_view, const Principal&) { return true; });
  }
  EXPECT_NE(receive().find("resources/updated"), std::string::npos);
  EXPECT_NE(receive().find("tools/list_changed"), std::string::npos);
  EXPECT_EQ(legacy("ping"), result("{}"));
}

TEST_F(BadInputTest, ListenOverMaxListensIsRejected) {
  start();
  const auto listen = [&](int id, const std::string& filter) {
    return round_trip(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                      R"(,"method":"subscriptions/listen","params":{"notifications":)" + filter + "," +
                      kEnvelope + "}}");
  };
  for (int id = 2; id < 1026; ++id)
    ASSERT_NE(listen(id, R"({"toolsListChanged":true})").find("acknowledged"), std::string::npos);
  EXPECT_EQ(listen(1, R"({"toolsListChanged":true})"),
            error(-32603,
                  R"x("message":"Subscription limit reached: this connection is over max_listens (1024)")x"));
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  EXPECT_NE(modern("tools/list").find(R"("tools":[)"), std::string::npos);
  std::string uris;
  for (int i = 0; i < 10'001; ++i) uris += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\"";
  EXPECT_EQ(
      listen(1, R"({"resourceSubscriptions":[)" + uris + "]}"),
      error(
          -32603,
          R"x("message":"Subscription limit reached: the resources are over max_subscribed_resources (10000)")x"));
  EXPECT_NE(listen(3, R"({"toolsListChanged":true})").find("a request with this id is in progress"),
            std::string::npos);
  EXPECT_NE(listen(2, R"({"toolsListChanged":true})").find("acknowledged"), std::string::npos);
}

TEST_F(BadInputTest, OtherRequestsAreServedWhenClientNeverAnswersInputRequests) {
  start_legacy();
  for (int id = 100; id < 200; ++id) {
    EXPECT_NE(round_trip(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                         R"(,"method":"tools/call","params":{"name":"ask","arguments":{"message":""}}})")
                  .find("elicitation/create"),
              std::string::npos);
    EXPECT_TRUE(still_serves());
  }
  EXPECT_EQ(peer->requests_in_progress(), 100u);
  test_end->close();
  loop.run_until([&] { return peer->finished().is_set(); });
  EXPECT_EQ(peer->calls_in_flight(), 0u);
  loop.run_until([&] { return peer->requests_in_progress() == 0; });
}

TEST_F(BadInputTest, InvalidInputResponsesFailTheToolCall) {
  start_legacy();
  int id = 0;
  for (const char* answer : {R"("result":{})", R"("result":{"action":"what"})", R"("result":{"action":7})",
                             R"("result":[])", R"("error":{"code":-32601,"message":"no"})"}) {
    EXPECT_NE(legacy("tools/call", R"({"name":"ask","arguments":{"message":""}})").find("elicitation/create"),
              std::string::npos);
    const std::string got =
        round_trip(R"({"jsonrpc":"2.0","id":)" + std::to_string(++id) + "," + answer + "}");
    EXPECT_TRUE(got.find(R"("isError":true)") != std::string::npos ||
                got.find(R"("error":)") != std::string::npos)
        << answer << ": " << got;
    EXPECT_TRUE(still_serves());
  }
}

TEST_F(BadInputTest, BatchIsServedOnlyInRevisionOfMarch2025) {
  start();
  const std::string batch =
      R"([{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":8,"method":"nope"}])";
  send(batch);  // no revision is negotiated yet
  EXPECT_TRUE(still_serves());
  for (const char* revision : {"2024-11-05", "2025-06-18", "2025-11-25"}) {
    initialize(revision);
    send(batch);
    EXPECT_TRUE(still_serves()) << revision;
  }
  initialize("2025-03-26");
  const std::string answers = round_trip(batch);
  EXPECT_EQ(answers.front(), '[') << answers;
  EXPECT_NE(answers.find(R"({"jsonrpc":"2.0","id":7,"result":{}})"), std::string::npos) << answers;
  EXPECT_NE(answers.find(R"("id":8,"error":{"code":-32601)"), std::string::npos) << answers;
  send("[]");
  EXPECT_TRUE(still_serves());
}

TEST_F(BadInputTest, InitializeInBatchIsRejectedAndTheRestServed) {
  start_legacy("2025-03-26");
  EXPECT_EQ(
      round_trip(
          R"([{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}},{"jsonrpc":"2.0","id":8,"method":"ping"}])"),
      R"([{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid Request: initialize is not allowed inside a batch"}},)"
      R"({"jsonrpc":"2.0","id":8,"result":{}}])");
  // The revision of the session is unchanged, since batches are still served: only 2025-03-26 has batches.
  EXPECT_EQ(round_trip(R"([{"jsonrpc":"2.0","id":9,"method":"ping"}])"),
            R"([{"jsonrpc":"2.0","id":9,"result":{}}])");
}

TEST_F(BadInputTest, RequestOverMaxRequestsInProgressIsRejected) {
  auto [near_end, far_end] = make_channel(loop, loop);
  test_end = far_end;
  Limits limits;
  limits.max_requests_in_progress = 1;
  peer = serve(server, near_end, limits);
  initialize("2025-11-25", kCapabilities);
  EXPECT_NE(legacy("tools/call", R"({"name":"ask","arguments":{"message":""}})").find("elicitation/create"),
            std::string::npos);
  EXPECT_EQ(
      round_trip(R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})"),
      R"x({"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"max_requests_in_progress (1) requests are in progress"}})x");
}

TEST_F(BadInputTest, CancelledRequestOfBatchDoesNotDelayTheOthers) {
  start_legacy("2025-03-26");
  tool(
      server, "roots", "", +[](Context context, EchoArgs) -> Task<Result<std::string>> {
        const Result<std::vector<Root>> answer = co_await context.roots();
        if (!answer) co_return answer.error();
        co_return std::string("");
      });
  EXPECT_NE(receive().find("list_changed"), std::string::npos);
  initialize("2025-03-26", R"({"roots":{}})");
  EXPECT_NE(
      round_trip(
          R"([{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"roots","arguments":{"message":""}}},{"jsonrpc":"2.0","id":8,"method":"ping"}])")
          .find("roots/list"),
      std::string::npos);
  EXPECT_NE(round_trip(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})")
                .find("notifications/cancelled"),
            std::string::npos);
  EXPECT_EQ(receive(), R"([{"jsonrpc":"2.0","id":8,"result":{}}])");
}

TEST_F(BadInputTest, ShutdownRejectsNewRequestsAndEndsSubscriptions) {
  start_legacy();
  EXPECT_NE(
      round_trip(
          R"({"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},)" +
          kEnvelope + "}}")
          .find("acknowledged"),
      std::string::npos);
  EXPECT_NE(legacy("tools/call", R"({"name":"ask","arguments":{"message":""}})").find("elicitation/create"),
            std::string::npos);
  loop.spawn(peer->shutdown(5s));
  EXPECT_EQ(receive().find(R"({"jsonrpc":"2.0","id":"s","result":{"resultType":"complete")"), 0u);
  EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})"),
            R"({"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the server is shutting down"}})");
  send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"decline"}})");
  EXPECT_NE(receive().find("answered"), std::string::npos);  // a request in progress is completed
}

TEST_F(BadInputTest, RequestIsSkippedUnlessItsIdIsStringOrInteger) {
  start_legacy();
  for (const std::string id : {"\"\"", "\"1\"", "-5", "9007199254740993", R"("é")"}) {
    EXPECT_EQ(round_trip(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})"),
              R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
  }
  for (const std::string id : {"{}", "[1]", "true"})
    send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})");  // malformed frames
  EXPECT_TRUE(still_serves());
}

// ---- the client -----------------------------------------------------------------------------------------

TEST_F(BadInputTest, NotificationAfterDestructionOfClientIsIgnored) {
  start();
  Result<std::shared_ptr<Client>> client = loop.block_on(Client::connect_over(test_end));
  ASSERT_TRUE(client);
  client->reset();
  const Result<void> posted = peer->post_notification("notifications/message", test::raw("{}"));
  ASSERT_TRUE(posted);
  bool passed = false;
  Timer timer(loop);
  timer.arm(Clock::now() + 10ms, [&] { passed = true; });
  loop.run_until([&] { return passed; });
}

}  // namespace
}  // namespace fairlead::mcp
