// R5.4, R5.5, R1.5: a peer that serves.
#include <algorithm>
#include <latch>
#include <stdexcept>

#include "fairlead/json/writer.hpp"
#include "peer/harness.hpp"

namespace fairlead {
namespace {

using test::raw;
using namespace std::chrono_literals;

class Serving : public test::PeerTest {
 public:
  std::string outcome;  // of call_into()

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

  // Sends a frame as the other side, without waiting until it is taken.
  void post(std::string_view text) {
    const Result<void> posted = far->post(test::rope(text));
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
    const Result<json::Raw> got = co_await caller->call("their_method");
    into = got ? std::string(got->text()) : got.error().to_string();
  }

  Task<Answer> slow(Request request) {
    const bool opened = co_await gate.wait(loop, 10s);
    if (request.stop().stop_requested()) co_return Error(ErrorKind::cancelled, "stopped");
    co_return opened ? json::string("done") : json::string("gave up");
  }
};

TEST_F(Serving, AnswersWithTheIdAsItWasSpelled) {  // R1.3
  start();
  for (const std::string id : {"1", "1.0", "1e3", "\"1\"", "\"\"", "-7", "9223372036854775808", "null",
                               "123456789012345678901234567890", "\"\\u0041\""}) {
    run(exchange(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"ping"})",
                 R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":"pong"})"));
  }
}

TEST_F(Serving, ForwardsParamsUntouched) {  // R1.6
  start();
  const std::string odd = R"({ "b":1.50,"a":9007199254740993 , "a":"\u00e4\/", "n":-0e0})";
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"echo","params":)" + odd + "}",
               R"({"jsonrpc":"2.0","id":1,"result":)" + odd + "}"));
}

TEST_F(Serving, UnknownMethodIsMinus32601) {
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"nope"})",
               R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: nope"}})"));
}

TEST_F(Serving, ThrownErrorsAreMinus32603WithoutInternals) {
  start();
  const std::string bare = R"("error":{"code":-32603,"message":"Internal error"}})";
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"throws"})", R"({"jsonrpc":"2.0","id":1,)" + bare));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"throws_later"})", R"({"jsonrpc":"2.0","id":2,)" + bare));
  run(exchange(R"({"jsonrpc":"2.0","id":3,"method":"local_failure"})", R"({"jsonrpc":"2.0","id":3,)" + bare));
}

TEST_F(Serving, InvalidParamsAndOwnCodesArePassedOn) {
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"invalid"})",
               R"({"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"n must be positive"}})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":2,"method":"own_code"})",
      R"({"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"program not found","data":{"name":"git"}}})"));
}

TEST_F(Serving, SlowRequestDelaysNobody) {
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  EXPECT_EQ(peer->requests_in_progress(), 1u);
  gate.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  EXPECT_EQ(peer->requests_in_progress(), 0u);
}

TEST_F(Serving, SecondRequestWithAnIdUnderWayIsRefused) {
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":1,"method":"slow"})",
      R"({"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request: a request with this id is under way"}})"));
  run(say(R"({"jsonrpc":"2.0","id":"1","method":"slow"})"));  // another id altogether
  gate.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  run(expect(R"({"jsonrpc":"2.0","id":"1","result":"done"})"));
}

TEST_F(Serving, CancelledRequestIsToldToStopAndAnsweredAsTheDialectSays) {  // R5.5
  start();
  run(say(R"({"jsonrpc":"2.0","id":"x","method":"slow"})"));
  run(say(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"x"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  gate.set();
  run(expect(R"({"jsonrpc":"2.0","id":"x","error":{"code":-32005,"message":"the request was cancelled"}})"));
}

TEST_F(Serving, CancelledRequestIsNotAnsweredWhereTheDialectForbidsIt) {
  options.dialect.cancel_method = "notifications/cancelled";
  options.dialect.cancel_id_key = "requestId";
  options.dialect.answer_cancelled = false;
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})"));
  run(say(R"({"jsonrpc":"2.0","id":2,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":3,"method":"ping"})", R"({"jsonrpc":"2.0","id":3,"result":"pong"})"));
  gate.set();
  run(expect(R"({"jsonrpc":"2.0","id":2,"result":"done"})"));
}

TEST_F(Serving, CancellingWhatIsNotUnderWayIsHarmless) {
  start();
  run(say(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}})"));
  run(say(R"({"jsonrpc":"2.0","method":"$/cancelRequest"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(Serving, ProgressReachesTheOneWhoAsked) {
  methods->on("work", [](const Request& request) -> Answer {
    request.progress(raw("50"));
    return json::Raw::null();
  });
  start();
  run(exchange(R"({"jsonrpc":"2.0","id":"w","method":"work"})",
               R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"w","value":50}})"));
  run(expect(R"({"jsonrpc":"2.0","id":"w","result":null})"));
}

// ---- notifications and batches
// -----------------------------------------------------------------------------

TEST_F(Serving, NotificationsAreNeverAnswered) {
  int heard = 0;
  methods->on("note", [&](const Request& request) -> Answer {
    ++heard;
    EXPECT_TRUE(request.is_notification());
    return Error(ErrorKind::io, "nobody hears this");
  });
  start();
  run(say(R"({"jsonrpc":"2.0","method":"note"})"));
  run(say(R"({"jsonrpc":"2.0","method":"unknown"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(heard, 1);
}

TEST_F(Serving, BatchIsAnsweredWhenItsSlowestIs) {  // R1.5
  start();
  run(say(
      R"([{"jsonrpc":"2.0","id":1,"method":"slow"},{"jsonrpc":"2.0","method":"ping"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}])"));
  gate.set();
  run(expect(
      R"([{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: not an object"}},)"
      R"({"jsonrpc":"2.0","id":2,"result":"pong"},{"jsonrpc":"2.0","id":1,"result":"done"}])"));
}

TEST_F(Serving, BatchOfNotificationsGetsNoAnswerAtAll) {
  start();
  run(say(R"([{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","method":"ping"}])"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(Serving, BatchIsRefusedWhereBatchesAreOff) {
  options.batches = false;
  start();
  run(exchange(
      R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: batches are not allowed here"}})"));
}

TEST_F(Serving, BatchesMayBeAllowedFromOneMomentOn) {
  bool allowed = false;
  options.noise = Noise::skip;
  options.batch_now = [&] { return allowed; };
  start();
  run(say(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  allowed = true;
  run(exchange(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
               R"([{"jsonrpc":"2.0","id":1,"result":"pong"}])"));
}

TEST_F(Serving, BatchDoesNotWaitForAnAnswerThatWillNotCome) {
  options.dialect.answer_cancelled = false;
  start();
  run(say(R"([{"jsonrpc":"2.0","id":1,"method":"slow"},{"jsonrpc":"2.0","id":2,"method":"ping"}])"));
  run(say(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})"));
  gate.set();
  run(expect(R"([{"jsonrpc":"2.0","id":2,"result":"pong"}])"));
}

// ---- noise (R2.6)
// ------------------------------------------------------------------------------------------

TEST_F(Serving, NoiseIsAnsweredByAPlainServerAndTheNextRequestServed) {
  start();
  run(exchange(
      "npm WARN hello",
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: unexpected character 'p' at byte 1"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(peer->stats().noise, 1u);
}

TEST_F(Serving, NoiseIsSkippedAndCountedWhereItMayNotBeAnswered) {
  options.noise = Noise::skip;
  start();
  run(say("npm WARN hello"));
  run(say(R"({"no":"message"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  EXPECT_EQ(peer->stats().noise, 2u);
}

TEST_F(Serving, TooMuchNoiseInARowEndsTheConnection) {
  options.noise = Noise::skip;
  options.limits.max_noise_frames = 3;
  start();
  for (int i = 0; i < 3; ++i) run(say("noise"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
  for (int i = 0; i < 4; ++i) run(say("noise"));
  run(expect("<connection closed: the other end of the channel was closed>"));
  ASSERT_TRUE(peer->end_reason());
  EXPECT_EQ(peer->end_reason()->to_string(),
            "parse error: more than max_noise_frames (3) frames in a row from channel are no messages");
}

TEST_F(Serving, NoiseEndsNothingWhereTheLimitIsZero) {
  options.noise = Noise::skip;
  options.limits.max_noise_frames = 0;
  start();
  for (int i = 0; i < 3000; ++i) run(say("noise"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(Serving, ResponseWithoutResultAndWithoutCallIsAnInvalidRequest) {
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

TEST_F(Serving, ResponseWithoutResultIsNotAnsweredWhereNoiseIsSkipped) {
  options.noise = Noise::skip;
  start();
  run(say(R"({"jsonrpc":"2.0","id":4})"));
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":"pong"})"));
}

TEST_F(Serving, AnswersToNoiseAreFlushedBeforeHangingUp) {
  options.limits.max_noise_frames = 2;
  start();
  for (int i = 0; i < 3; ++i) run(say("x"));
  for (int i = 0; i < 3; ++i) EXPECT_NE(loop.block_on(hear()).find("-32700"), std::string::npos);
  run(expect("<connection closed: the other end of the channel was closed>"));
}

// ---- limits
// --------------------------------------------------------------------------------------------------

TEST_F(Serving, RequestsOverTheLimitAreRefusedByName) {
  options.limits.max_requests_in_progress = 2;
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(say(R"({"jsonrpc":"2.0","id":2,"method":"slow"})"));
  run(exchange(
      R"({"jsonrpc":"2.0","id":3,"method":"slow"})",
      R"({"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"max_requests_in_progress (2) requests are under way"}})"));
  run(exchange(R"({"jsonrpc":"2.0","id":4,"method":"ping"})", R"({"jsonrpc":"2.0","id":4,"result":"pong"})"));
  gate.set();
}

TEST_F(Serving, RequestIsRefusedByNameWhenItsClientIsOverItsBudget) {
  ByteBudgetLimits limits;
  limits.max_client_buffer_bytes = 100;
  const auto budget = ByteBudget::create(limits);
  auto [near_end, far_end] = make_channel(loop, loop);
  near_end->set_account(budget->account("a"));
  far = far_end;
  peer = Peer::start(near_end, methods, options);
  const std::string first = R"({"jsonrpc":"2.0","id":1,"method":"slow","params":["0123456789"]})";
  run(say(first));
  loop.run_until([&] { return budget->used() == first.size(); });
  run(exchange(
      R"({"jsonrpc":"2.0","id":2,"method":"slow"})",
      R"x({"jsonrpc":"2.0","id":2,"error":{"code":-32004,"message":"resource exhausted: this client is over max_client_buffer_bytes (100 bytes)"}})x"));
  gate.set();
  EXPECT_NE(loop.block_on(hear()).find(R"("result":"done")"), std::string::npos);
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(Serving, BlockingHandlersRunBesideEachOtherAndOffTheLoop) {
  options.workers = std::make_shared<Workers>();
  std::latch together(2);
  methods->on_blocking("meet", [&](const Request&) -> Answer {
    together.arrive_and_wait();  // returns only when both handlers run at once
    EXPECT_FALSE(loop.here());
    return json::string("met");
  });
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"meet"})"));
  run(say(R"({"jsonrpc":"2.0","id":2,"method":"meet"})"));
  for (int i = 0; i < 2; ++i) {
    const std::string answer = loop.block_on(hear());
    EXPECT_NE(answer.find(R"("result":"met")"), std::string::npos) << answer;
  }
}

TEST_F(Serving, IgnoredRequestsGetNoAnswerAndHoldUpNoBatch) {
  options.ignore_request = [](const rpc::Message& request) { return request.method() == "mute"; };
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"mute"})"));
  run(exchange(R"([{"jsonrpc":"2.0","id":2,"method":"mute"},{"jsonrpc":"2.0","id":3,"method":"ping"}])",
               R"([{"jsonrpc":"2.0","id":3,"result":"pong"}])"));
  run(exchange(R"([{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"mute"}])",
               R"([{"jsonrpc":"2.0","id":4,"result":"pong"}])"));
  EXPECT_EQ(peer->stats().ignored_requests, 3u);
}

// ---- the end
// -------------------------------------------------------------------------------------------------

TEST_F(Serving, ShutdownFinishesWhatIsUnderWayAndRefusesTheRest) {  // R6.3
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  loop.spawn(peer->shutdown(10s));
  run(exchange(
      R"({"jsonrpc":"2.0","id":3,"method":"ping"})",
      R"({"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"the server is shutting down"}})"));
  gate.set();
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"done"})"));
  run(expect("<connection closed: the other end of the channel was closed>"));
}

TEST_F(Serving, ShutdownGivesUpAfterItsGrace) {
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", R"({"jsonrpc":"2.0","id":2,"result":"pong"})"));
  loop.spawn(peer->shutdown(1ms));
  run(expect("<connection closed: the other end of the channel was closed>"));
}

TEST_F(Serving, HandlersLearnThatTheOtherSideIsGone) {
  options.limits.drain_grace = 1ms;
  std::stop_token seen;
  Event started;
  methods->on("watch", [&](Request request) {
    seen = request.stop();
    started.set();
    return slow(std::move(request));
  });
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"watch"})"));
  loop.run_until([&] { return started.is_set(); });
  far->close();
  loop.run_until([&] { return seen.stop_requested(); });
  gate.set();
}

TEST_F(Serving, EachRequestIsOneLineAtTheChosenLevel) {
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

// The other side reads none of its answers: requests wait, but the answer to a call of ours is read.
TEST_F(Serving, PausedReadingResumesWhenACallIsMade) {
  options.limits.backlog_pause_bytes = 1000;
  start();
  const std::string body(1u << 20, 'x');
  const std::string echo = R"(,"method":"echo","params":[")" + body + "\"]}";
  for (int id = 1; id <= 4; ++id) post(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + echo);
  run_turns(100);
  EXPECT_EQ(peer->stats().requests, 2u);  // the channel takes 1 MiB: with the second answer it is full
  loop.spawn(call_into(peer, outcome));
  post(R"({"jsonrpc":"2.0","id":1,"result":"mine"})");
  run_turns(100);
  EXPECT_EQ(outcome, "\"mine\"");
  EXPECT_EQ(peer->stats().requests, 4u);
}

TEST_F(Serving, RequestsAreRefusedOverMaxBacklogBytesOfAnswersWhileACallWaits) {
  options.limits.backlog_pause_bytes = 1000;
  options.limits.max_backlog_bytes = 2u << 20;
  start();
  loop.spawn(call_into(peer, outcome));
  const std::string body(1u << 20, 'x');
  const std::string echo = R"(,"method":"echo","params":[")" + body + "\"]}";
  for (int id = 1; id <= 5; ++id) post(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + echo);
  run_turns(100);
  loop.block_on(hear());  // the call
  std::string last;
  for (int id = 1; id <= 5; ++id) last = loop.block_on(hear());
  EXPECT_EQ(
      last,
      R"({"jsonrpc":"2.0","id":5,"error":{"code":-32004,"message":"max_backlog_bytes (2097152) of answers are queued and not read"}})");
}

TEST_F(Serving, LoggerThatReentersTheConnectionIsHarmless) {
  options.log = Log(LogLevel::debug, LogFormat::text, [this](std::string_view) {
    if (peer) static_cast<void>(peer->post_notification("log"));
  });
  start();
  run(say(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"));
  int frames = 0;
  std::string got;
  while (got.find("pong") == std::string::npos && ++frames < 10) got = loop.block_on(hear());
  EXPECT_EQ(got, R"({"jsonrpc":"2.0","id":1,"result":"pong"})");
}

}  // namespace
}  // namespace fairlead
