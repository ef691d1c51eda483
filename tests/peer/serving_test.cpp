// R5.4, R5.5, R1.5: Peer as the server.
#include <algorithm>
#include <latch>
#include <stdexcept>

#include "fairlead/json/writer.hpp"
#include "peer/harness.hpp"

namespace fairlead {
namespace {

using test::raw;
using namespace std::chrono_literals;

class PeerServingTest : public test::PeerTest {
 public:
  std::string outcome;  // of the call that call_into() made

  void SetUp() override {
    methods->on("ping", [](const Request&) { return json::string("pong"); });
    methods->on("echo", [](const Request& request) { return request.params(); });
    methods->on("throws", [](const Request&) -> Answer { throw std::runtime_error("secret path /etc/x"); });
    methods->on("invalid",
                [](const Request&) -> Answer { return rpc::invalid_params("n must be positive"); });
    methods->on("own_code", [](const Request&) -> Answer {
      return Error::rpc(rpc::kProgramNotFound, "program not found", "{\"name\":\"git\"}");
    });
    methods->on("local_failure",
                [](const Request&) -> Answer { return Error(ErrorKind::io, "disk on fire"); });
    methods->on("slow", [this](Request request) { return slow(std::move(request)); });
    methods->on("throws_later", [](Request) -> Task<Answer> {
      throw std::runtime_error("secret");
      co_return json::Raw::null();
    });
  }

  // Sends a frame as the remote peer, without waiting until it is written.
  void post(std::string_view text) {
    const Result<void> posted = remote->post(test::rope(text));
    EXPECT_TRUE(posted);
  }
  void run_turns(int count) {
    for (int turn = 0; turn < count; ++turn) {
      bool turned = false;
      loop.post([&] { turned = true; });
      loop.run_until([&] { return turned; });
    }
  }
  static Task<void> call_into(std::shared_ptr<Peer> caller, std::string& into) {
    const Result<json::Raw> received = co_await caller->call("their_method");
    into = received ? std::string(received->text()) : received.error().to_string();
  }

  Task<Answer> slow(Request request) {
    const bool released = co_await handlers_released.wait(loop, 10s);
    if (request.stop().stop_requested()) co_return Error(ErrorKind::cancelled, "stopped");
    co_return released ? json::string("done") : json::string("timed out");
  }
};

TEST_F(PeerServingTest, ResponseHasTheIdAsSpelledInTheRequest) {  // R1.3
  start();
  for (const std::string id : {"1", "1.0", "1e3", "\"1\"", "\"\"", "-7", "9223372036854775808", "null",
                               "123456789012345678901234567890", "\"\\u0041\""}) {
    run(exchange(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})",
                 R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":"pong"})"));
  }
}

TEST_F(PeerServingTest, ParamsAreEchoedUnchanged) {  // R1.6
  start();
  const std::string odd = R"({ "b":1.50,"a":9007199254740993 , "a":"\u00e4\/", "n":-0e0})";
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"echo","params":)" + odd + "}",
               R"({"jsonrpc":"2.0","id":1,"result":)" + odd + "}"));
}

TEST_F(PeerServingTest, UnknownMethodFailsWithMinus32601) {
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"nope"})",
               R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: nope"}})"));
}

TEST_F(PeerServingTest, HandlerExceptionFailsWithMinus32603WithoutDetails) {
  start();
  const std::string bare = R"("error":{"code":-32603,"message":"Internal error"}})";
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"throws"})", R"({"jsonrpc":"2.0","id":1,)" + bare));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"throws_later"})", R"({"jsonrpc":"2.0","id":2,)" + bare));
  run(exchange(R"({"jsonrpc":"2.0","id":3,"method":"local_failure"})", R"({"jsonrpc":"2.0","id":3,)" + bare));
}

TEST_F(PeerServingTest, RpcErrorOfHandlerIsSentUnchanged) {
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"invalid"})",
               R"({"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"n must be positive"}})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":2,"method":"own_code"})",
      R"({"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"program not found","data":{"name":"git"}}})"));
}

TEST_F(PeerServingTest, SlowRequestDoesNotDelayOthers) {
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  EXPECT_EQ(peer->requests_in_progress(), 1u);
  handlers_released.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  EXPECT_EQ(peer->requests_in_progress(), 0u);
}

TEST_F(PeerServingTest, RequestWithIdInProgressIsRejected) {
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":1,"method":"slow"})",
      R"({"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request: a request with this id is in progress"}})"));
  run(send(R"({"jsonrpc":"2.0","id":"1","method":"slow"})"));  // a different id
  handlers_released.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  run(expect(R"({"jsonrpc":"2.0","id":"1","result":"done"})"));
}

TEST_F(PeerServingTest, CancelledRequestGetsAnErrorResponse) {  // R5.5
  start();
  run(send(R"({"jsonrpc":"2.0","id":"x","method":"slow"})"));
  run(send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"x"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  handlers_released.set();
  run(expect(R"({"jsonrpc":"2.0","id":"x","error":{"code":-32005,"message":"the request was cancelled"}})"));
}

TEST_F(PeerServingTest, CancelledRequestGetsNoResponseWhenDialectForbidsIt) {
  options.dialect.cancel_method = "notifications/cancelled";
  options.dialect.cancel_id_key = "requestId";
  options.dialect.respond_to_cancelled = false;
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})"));
  run(send(R"({"jsonrpc":"2.0","id":2,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":3,"method":"ping"})", R"({"jsonrpc":"2.0","id":3,"result":"pong"})"));
  handlers_released.set();
  run(expect(R"({"jsonrpc":"2.0","id":2,"result":"done"})"));
}

TEST_F(PeerServingTest, CancellingAnUnknownRequestIsIgnored) {
  start();
  run(send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}})"));
  run(send(R"({"jsonrpc":"2.0","method":"$/cancelRequest"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(PeerServingTest, ProgressIsSentToTheCaller) {
  methods->on("work", [](const Request& request) -> Answer {
    request.progress(raw("50"));
    return json::Raw::null();
  });
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":"w","method":"work"})",
               R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"w","value":50}})"));
  run(expect(R"({"jsonrpc":"2.0","id":"w","result":null})"));
}

// ---- notifications and batches ---------------------------------------------------------------------------

TEST_F(PeerServingTest, NotificationsGetNoResponse) {
  int received = 0;
  methods->on("note", [&](const Request& request) -> Answer {
    ++received;
    EXPECT_TRUE(request.is_notification());
    return Error(ErrorKind::io, "ignored");
  });
  start();
  run(send(R"({"jsonrpc":"2.0","method":"note"})"));
  run(send(R"({"jsonrpc":"2.0","method":"unknown"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(received, 1);
}

TEST_F(PeerServingTest, BatchResponseIsSentWhenAllRequestsHaveEnded) {  // R1.5
  start();
  run(send(
      R"([{"jsonrpc":"2.0","id":1,"method":"slow"},{"jsonrpc":"2.0","method":"ping"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}])"));
  handlers_released.set();
  run(expect(
      R"([{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: not an object"}},)"
      R"({"jsonrpc":"2.0","id":2,"result":"pong"},{"jsonrpc":"2.0","id":1,"result":"done"}])"));
}

TEST_F(PeerServingTest, BatchOfNotificationsGetsNoResponse) {
  start();
  run(send(R"([{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","method":"ping"}])"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(PeerServingTest, BatchIsRejectedWhenBatchesAreOff) {
  options.accept_batches = false;
  start();
  run(exchange(
      R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: batches are not allowed here"}})"));
}

TEST_F(PeerServingTest, BatchesAreAllowedAsSoonAsBatchesAllowedReturnsTrue) {
  bool allowed = false;
  options.malformed_frames = MalformedFramePolicy::skip;
  options.batches_allowed = [&] { return allowed; };
  start();
  run(send(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  allowed = true;
  run(exchange(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
               R"([{"jsonrpc":"2.0","id":1,"result":"pong"}])"));
}

TEST_F(PeerServingTest, BatchDoesNotWaitForCancelledRequest) {
  options.dialect.respond_to_cancelled = false;
  start();
  run(send(R"([{"jsonrpc":"2.0","id":1,"method":"slow"},{"jsonrpc":"2.0","id":2,"method":"ping"}])"));
  run(send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})"));
  handlers_released.set();
  run(expect(R"([{"jsonrpc":"2.0","id":2,"result":"pong"}])"));
}

// ---- malformed frames (R2.6) -----------------------------------------------------------------------------

TEST_F(PeerServingTest, MalformedFrameGetsErrorResponseAndNextRequestIsServed) {
  start();
  run(exchange(
      "npm WARN hello",
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: unexpected character 'p' at byte 1"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(peer->stats().malformed_frames, 1u);
}

TEST_F(PeerServingTest, MalformedFramesAreSkippedAndCountedWithSkipPolicy) {
  options.malformed_frames = MalformedFramePolicy::skip;
  start();
  run(send("npm WARN hello"));
  run(send(R"({"no":"message"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(peer->stats().malformed_frames, 2u);
}

TEST_F(PeerServingTest, ConnectionClosesOverMaxNoiseFramesInARow) {
  options.malformed_frames = MalformedFramePolicy::skip;
  options.limits.max_noise_frames = 3;
  start();
  for (int i = 0; i < 3; ++i) run(send("noise"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  for (int i = 0; i < 4; ++i) run(send("noise"));
  run(expect("<connection closed: the other end of the channel was closed>"));
  ASSERT_TRUE(peer->end_reason());
  EXPECT_EQ(peer->end_reason()->to_string(),
            "parse error: channel sent more than max_noise_frames (3) malformed frames in a row");
}

TEST_F(PeerServingTest, MaxNoiseFramesOfZeroMeansNoLimit) {
  options.malformed_frames = MalformedFramePolicy::skip;
  options.limits.max_noise_frames = 0;
  start();
  for (int i = 0; i < 3000; ++i) run(send("noise"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(PeerServingTest, ResponseWithoutResultAndCallIsAnInvalidRequest) {
  start();
  run(exchange(
      R"({"jsonrpc":"2.0","id":4})",
      R"({"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"Invalid Request: neither method, result nor error"}})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":"a","params":[1]})",
      R"({"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid Request: neither method, result nor error"}})"));
  run(exchange(
      R"([{"jsonrpc":"2.0","id":5},{"jsonrpc":"2.0","id":6,"result":1},{"jsonrpc":"2.0","id":7,"method":"ping"}])",
      R"([{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid Request: neither method, result nor error"}},{"jsonrpc":"2.0","id":7,"result":"pong"}])"));
}

TEST_F(PeerServingTest, ResponseWithoutResultIsIgnoredWithSkipPolicy) {
  options.malformed_frames = MalformedFramePolicy::skip;
  start();
  run(send(R"({"jsonrpc":"2.0","id":4})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(PeerServingTest, ResponsesToMalformedFramesAreFlushedBeforeClosing) {
  options.limits.max_noise_frames = 2;
  start();
  for (int i = 0; i < 3; ++i) run(send("x"));
  for (int i = 0; i < 3; ++i) EXPECT_NE(loop.block_on(receive()).find("-32700"), std::string::npos);
  run(expect("<connection closed: the other end of the channel was closed>"));
}

// ---- limits ----------------------------------------------------------------------------------------------

TEST_F(PeerServingTest, RequestIsRejectedOverMaxRequestsInProgress) {
  options.limits.max_requests_in_progress = 2;
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(send(R"({"jsonrpc":"2.0","id":2,"method":"slow"})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":3,"method":"slow"})",
      R"({"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"max_requests_in_progress (2) requests are in progress"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":4,"method":"ping"})", R"({"jsonrpc":"2.0","id":4,"result":"pong"})"));
  handlers_released.set();
}

TEST_F(PeerServingTest, RequestIsRejectedWhenItsClientIsOverItsByteBudget) {
  ByteBudgetLimits limits;
  limits.max_client_buffer_bytes = 100;
  const auto budget = ByteBudget::create(limits);
  auto [local_end, remote_end] = make_channel(loop, loop);
  local_end->set_account(budget->account("a"));
  remote = remote_end;
  peer = Peer::start(local_end, methods, options);
  const std::string first = R"({"jsonrpc":"2.0","id":1,"method":"slow","params":["0123456789"]})";
  run(send(first));
  loop.run_until([&] { return budget->used_bytes() == first.size(); });
  run(exchange(
      R"({"jsonrpc":"2.0","id":2,"method":"slow"})",
      R"x({"jsonrpc":"2.0","id":2,"error":{"code":-32004,"message":"resource exhausted: this client is over max_client_buffer_bytes (100 bytes)"}})x"));
  handlers_released.set();
  EXPECT_NE(loop.block_on(receive()).find(R"("result":"done")"), std::string::npos);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST_F(PeerServingTest, BlockingHandlersRunConcurrentlyOffTheLoopThread) {
  options.workers = std::make_shared<Workers>();
  std::latch together(2);
  methods->on_blocking("meet", [&](const Request&) -> Answer {
    together.arrive_and_wait();  // returns only when both handlers run concurrently
    EXPECT_FALSE(loop.in_loop_thread());
    return json::string("met");
  });
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"meet"})"));
  run(send(R"({"jsonrpc":"2.0","id":2,"method":"meet"})"));
  for (int i = 0; i < 2; ++i) {
    const std::string answer = loop.block_on(receive());
    EXPECT_NE(answer.find(R"("result":"met")"), std::string::npos) << answer;
  }
}

TEST_F(PeerServingTest, IgnoredRequestsGetNoResponseAndDoNotDelayABatch) {
  options.ignore_request = [](const rpc::Message& request) { return request.method() == "mute"; };
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"mute"})"));
  run(exchange(R"([{"jsonrpc":"2.0","id":2,"method":"mute"},{"jsonrpc":"2.0","id":3,"method":"ping"}])",
               R"([{"jsonrpc":"2.0","id":3,"result":"pong"}])"));
  run(exchange(R"([{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"mute"}])",
               R"([{"jsonrpc":"2.0","id":4,"result":"pong"}])"));
  EXPECT_EQ(peer->stats().ignored_requests, 3u);
}

// ---- shutdown --------------------------------------------------------------------------------------------

TEST_F(PeerServingTest, ShutdownFinishesRequestsInProgressAndRejectsNewOnes) {  // R6.3
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  loop.spawn(peer->shutdown(10s));
  run(exchange(
      R"({"jsonrpc":"2.0","id":3,"method":"ping"})",
      R"({"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"the server is shutting down"}})"));
  handlers_released.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  run(expect("<connection closed: the other end of the channel was closed>"));
}

TEST_F(PeerServingTest, ShutdownClosesWhenGraceExpires) {
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  loop.spawn(peer->shutdown(1ms));
  run(expect("<connection closed: the other end of the channel was closed>"));
}

TEST_F(PeerServingTest, HandlerIsStoppedWhenRemotePeerCloses) {
  options.limits.drain_grace = 1ms;
  std::stop_token seen;
  Event started;
  methods->on("watch", [&](Request request) {
    seen = request.stop();
    started.set();
    return slow(std::move(request));
  });
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"watch"})"));
  loop.run_until([&] { return started.is_set(); });
  remote->close();
  loop.run_until([&] { return seen.stop_requested(); });
  handlers_released.set();
}

TEST_F(PeerServingTest, EachRequestIsLoggedOnceAtRequestLogLevel) {
  std::string log;
  options.log = Log(LogLevel::info, LogFormat::json, [&](std::string_view line) { log += line; });
  options.request_log_level = LogLevel::info;
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":7,"method":"ping"})", R"({"jsonrpc":"2.0","id":7,"result":"pong"})"));
  EXPECT_NE(log.find(R"("message":"request","id":7,"method":"ping","outcome":"ok","duration_us":)"),
            std::string::npos)
      << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

// The remote peer reads no responses, so its requests are not read. When a call is made, its response must be
// read nevertheless.
TEST_F(PeerServingTest, PausedReadingResumesWhenACallIsMade) {
  options.limits.backlog_pause_bytes = 1000;
  start();
  const std::string body(1u << 20, 'x');
  const std::string echo = R"(,"method":"echo","params":[")" + body + "\"]}";
  for (int id = 1; id <= 4; ++id) post(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + echo);
  run_turns(100);
  EXPECT_EQ(peer->stats().requests, 2u);  // the channel holds 1 MiB: the second response fills it
  loop.spawn(call_into(peer, outcome));
  post(R"({"jsonrpc":"2.0","id":1,"result":"mine"})");
  run_turns(100);
  EXPECT_EQ(outcome, "\"mine\"");
  EXPECT_EQ(peer->stats().requests, 4u);
}

TEST_F(PeerServingTest, RequestsAreRejectedOverMaxBacklogBytesWhileACallIsInFlight) {
  options.limits.backlog_pause_bytes = 1000;
  options.limits.max_backlog_bytes = 2u << 20;
  start();
  loop.spawn(call_into(peer, outcome));
  const std::string body(1u << 20, 'x');
  const std::string echo = R"(,"method":"echo","params":[")" + body + "\"]}";
  for (int id = 1; id <= 5; ++id) post(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + echo);
  run_turns(100);
  loop.block_on(receive());  // the request of the call
  std::string last;
  for (int id = 1; id <= 5; ++id) last = loop.block_on(receive());
  EXPECT_EQ(
      last,
      R"({"jsonrpc":"2.0","id":5,"error":{"code":-32004,"message":"max_backlog_bytes (2097152) of responses are queued and not read by the client"}})");
}

TEST_F(PeerServingTest, LogSinkMaySendOnTheConnection) {
  options.log = Log(LogLevel::debug, LogFormat::text, [this](std::string_view) {
    if (peer) static_cast<void>(peer->post_notification("log"));
  });
  start();
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"));
  int frames = 0;
  std::string received;
  while (received.find("pong") == std::string::npos && ++frames < 10) received = loop.block_on(receive());
  EXPECT_EQ(received, R"({"jsonrpc":"2.0","id":1,"result":"pong"})");
}

}  // namespace
}  // namespace fairlead
