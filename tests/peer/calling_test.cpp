// R5.1 to R5.3, R5.5: a peer that calls.
#include <stop_token>
#include <thread>

#include "fairlead/json/writer.hpp"
#include "peer/harness.hpp"

namespace fairlead {
namespace {

using test::raw;
using namespace std::chrono_literals;

class Calling : public test::PeerTest {
 public:
  // Outcomes of calls made in the background, by the name of their method.
  std::map<std::string, std::string> outcomes;

  Task<void> call(std::string method, CallOptions call_options = CallOptions()) {
    const Result<json::Raw> result = co_await peer->call(method, json::Raw(), std::move(call_options));
    outcomes[method] = result ? std::string(result->text()) : result.error().to_string();
  }
  void begin(const std::string& method, CallOptions call_options = CallOptions()) {
    // Posted so that it runs on the loop's thread, where calls are made.
    loop.post([this, method, call_options] { loop.spawn(call(method, call_options)); });
  }
  void settle(const std::string& method) {
    loop.run_until([&] { return outcomes.contains(method); });
  }
};

TEST_F(Calling, IdsCountUpFromOneAndAbsentParamsAreLeftOut) {  // R5.1, R1.2
  start();
  begin("a");
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"a"})"));
  begin("b");
  run(expect(R"({"jsonrpc":"2.0","id":2,"method":"b"})"));
}

TEST_F(Calling, AnswersInAnyOrderReachTheirCallers) {
  start();
  for (const char* method : {"a", "b", "c"}) begin(method);
  for (int i = 0; i < 3; ++i) loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":3,"result":"C"})"));
  run(say(R"({"jsonrpc":"2.0","id":1,"result":"A"})"));
  run(say(R"({"jsonrpc":"2.0","id":2})"));  // R1.2: neither result nor error reads as null
  settle("b");
  EXPECT_EQ(outcomes["a"], "\"A\"");
  EXPECT_EQ(outcomes["b"], "null");
  EXPECT_EQ(outcomes["c"], "\"C\"");
  EXPECT_EQ(peer->calls_in_flight(), 0u);
}

TEST_F(Calling, RemoteErrorKeepsCodeMessageAndData) {
  start();
  Error error(ErrorKind::io, "");
  auto body = [](Calling* self, Error& out) -> Task<void> {
    const Result<json::Raw> result = co_await self->peer->call("x");
    out = result.error();
  };
  loop.spawn(body(this, error));
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"x"})"));
  run(say(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"n\u00f6","data":{"k": 1.0}}})"));
  loop.run_until([&] { return error.kind() == ErrorKind::remote; });
  EXPECT_EQ(error.detail().rpc_code, -32050);
  EXPECT_EQ(error.message(), "nö");
  EXPECT_EQ(error.detail().rpc_data, R"({"k": 1.0})");
}

TEST_F(Calling, TimedOutCallIsCancelledThereAndItsLateAnswerDropped) {  // R5.2
  start();
  begin("slow", CallOptions(20ms));
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(expect(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"timed out"}})"));
  settle("slow");
  EXPECT_EQ(outcomes["slow"], "timed out: `slow` got no answer within 20 ms");
  run(say(R"({"jsonrpc":"2.0","id":1,"result":"late"})"));
  begin("next");
  run(expect(R"({"jsonrpc":"2.0","id":2,"method":"next"})"));
  run(say(R"({"jsonrpc":"2.0","id":2,"result":"mine"})"));
  settle("next");
  EXPECT_EQ(outcomes["next"], "\"mine\"");
  EXPECT_EQ(peer->stats().late_answers, 1u);
  EXPECT_EQ(peer->stats().mismatched_answers, 0u);
}

TEST_F(Calling, AnswerNobodyAskedForNamesBothIdsAndEndsNothing) {  // R5.3
  std::string log;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { log += line; });
  start();
  begin("a");
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":99,"result":1})"));
  run(say(R"({"jsonrpc":"2.0","id":"1","result":1})"));  // the same digits, another id
  run(say(R"({"jsonrpc":"2.0","id":1.0,"result":1})"));
  run(say(R"({"jsonrpc":"2.0","id":1,"result":"right"})"));
  settle("a");
  EXPECT_EQ(outcomes["a"], "\"right\"");
  EXPECT_EQ(peer->stats().mismatched_answers, 3u);
  EXPECT_NE(log.find("id mismatch: an answer nobody waits for id=99 expected=1"), std::string::npos) << log;
}

TEST_F(Calling, FloodOfAnswersNobodyAskedForIsLoggedAFewTimesAndShort) {
  std::string log;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { log += line; });
  start();
  // Long enough to be cut in the log, and all of them together well within LogRateLimit::kLogInterval.
  const std::string id = "\"" + std::string(32u << 10, 'i') + "\"";
  for (int i = 0; i < 100; ++i) run(say(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}"));
  loop.run_until([&] { return peer->stats().mismatched_answers >= 100; });  // large ones are parsed in steps
  EXPECT_EQ(peer->stats().mismatched_answers, 100u);
  EXPECT_EQ(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')), LogRateLimit::kLogLines);
  EXPECT_LT(log.size(), 2 * LogRateLimit::kLogLines * Limits::kMaxLogFieldBytes);
}

TEST_F(Calling, ResponseWithoutResultIsANullResultOfItsCall) {  // R1.2
  start();
  begin("a");
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":1})"));
  settle("a");
  EXPECT_EQ(outcomes["a"], "null");
}

TEST_F(Calling, SecondAnswerToTheSameCallIsAMismatch) {
  start();
  begin("a");
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":1,"result":"first"})"));
  run(say(R"({"jsonrpc":"2.0","id":1,"result":"second"})"));
  begin("b");
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":2,"result":"third"})"));
  settle("b");
  EXPECT_EQ(outcomes["a"], "\"first\"");
  EXPECT_EQ(outcomes["b"], "\"third\"");
  EXPECT_EQ(peer->stats().mismatched_answers, 1u);
}

TEST_F(Calling, LockStepTurnsAWrongIdIntoTheCallsError) {
  options.lock_step = true;
  start();
  begin("a");
  loop.block_on(hear());
  begin("b");
  settle("b");
  EXPECT_EQ(outcomes["b"], "resource exhausted: a call is under way and this peer speaks in lock step");
  run(say(R"({"jsonrpc":"2.0","id":7,"result":1})"));
  settle("a");
  EXPECT_EQ(outcomes["a"], "id mismatch: the answer has id 7 where 1 was expected");
}

TEST_F(Calling, AnswerWithResultAndErrorFailsItsCallAtOnce) {
  start();
  begin("a");
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}})"));
  settle("a");
  EXPECT_EQ(outcomes["a"], "invalid: Invalid Request: both a result and an error");
}

TEST_F(Calling, BrokenAnswerCarriesNoCodeThatAHandlerWouldPassOn) {
  start();
  std::optional<Error> failed;
  auto body = [](Calling* self, std::optional<Error>& out) -> Task<void> {
    const Result<json::Raw> result = co_await self->peer->call("x");
    out = result.error();
  };
  loop.spawn(body(this, failed));
  loop.block_on(hear());
  run(say(R"({"jsonrpc":"1.0","id":1,"result":1})"));
  loop.run_until([&] { return failed.has_value(); });
  EXPECT_EQ(failed->kind(), ErrorKind::validation);
  EXPECT_FALSE(failed->detail().rpc_code);
}

TEST_F(Calling, StopTokenGivesTheCallUpFromAnotherThread) {
  start();
  std::stop_source source;
  CallOptions stoppable;
  stoppable.stop = source.get_token();
  begin("a", stoppable);
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"a"})"));
  std::thread([&] { source.request_stop(); }).join();
  settle("a");
  EXPECT_EQ(outcomes["a"], "cancelled: the call was given up by its caller");
  run(expect(
      R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"cancelled by the caller"}})"));
  begin("b", stoppable);
  settle("b");
  EXPECT_EQ(outcomes["b"], "cancelled: given up before it was sent");
}

TEST_F(Calling, ProgressRearmsTheIdleDeadlineButNotTheAbsoluteOne) {
  start();
  int seen = 0;
  CallOptions patient(500ms);  // a busy machine may keep the loop waiting for a tenth of a second
  patient.max_total = 1200ms;
  patient.on_progress = [&](const json::Raw& value) {
    EXPECT_EQ(value.text(), R"({"n":1})");
    ++seen;
  };
  const auto started = Clock::now();
  begin("a", patient);
  loop.block_on(hear());
  auto keep_going = [](Calling* self) -> Task<void> {
    while (!self->outcomes.contains("a")) {
      Task<void> saying =
          self->say(R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":{"n":1}}})");
      co_await saying;
      co_await sleep_for(self->loop, 10ms);
    }
  };
  run(keep_going(this));
  EXPECT_EQ(outcomes["a"], "timed out: `a` got no answer within 1200 ms");
  EXPECT_GE(Clock::now() - started, 1190ms);
  EXPECT_GT(seen, 3);
}

TEST_F(Calling, CallsOverTheLimitAreRefusedByName) {
  options.limits.max_calls_in_flight = 1;
  start();
  begin("a");
  begin("b");
  settle("b");
  EXPECT_EQ(outcomes["b"], "resource exhausted: max_calls_in_flight (1) calls wait for answers");
}

TEST_F(Calling, CloseFailsEverythingInFlightAndEverythingLater) {  // R3.5
  start();
  begin("a");
  begin("b");
  loop.block_on(hear());
  std::thread([&] { peer->close(); }).join();
  settle("b");
  EXPECT_EQ(outcomes["a"], "connection closed: the connection was closed by this side");
  EXPECT_EQ(outcomes["b"], outcomes["a"]);
  begin("c");
  settle("c");
  EXPECT_EQ(outcomes["c"], outcomes["a"]);
}

TEST_F(Calling, EndOfTheOtherSideFailsAllPendingAtOnce) {
  start();
  begin("a");
  loop.block_on(hear());
  far->close();
  settle("a");
  EXPECT_EQ(outcomes["a"], "connection closed: the other end of the channel was closed");
}

TEST_F(Calling, AbandonedCoroutineLeavesNoCallBehind) {
  start();
  {
    Task<void> forgotten = call("a");
    bool started = false;
    // Started by hand and destroyed while it waits.
    loop.post([&] {
      forgotten.await_suspend(std::noop_coroutine()).resume();
      started = true;
    });
    loop.run_until([&] { return started; });
    EXPECT_EQ(peer->calls_in_flight(), 1u);
  }
  EXPECT_EQ(peer->calls_in_flight(), 0u);
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"a"})"));
  run(expect(
      R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"no longer wanted"}})"));
}

TEST_F(Calling, ForwardChangesTheIdAndNothingElse) {  // R1.6
  start();
  const rpc::Message request = rpc::Message::parse(Bytes::copy_of(
      R"({ "method":"t","x":[1.0],"id":"theirs" , "params":{"b":1,"a":9007199254740993},"jsonrpc":"2.0"})"));
  std::string answer;
  auto body = [](Calling* self, rpc::Message message, std::string& out) -> Task<void> {
    const Result<rpc::Message> got = co_await self->peer->forward(std::move(message));
    out = got ? std::string(got->frame().view()) : got.error().to_string();
  };
  loop.spawn(body(this, request, answer));
  run(expect(R"({ "method":"t","x":[1.0],"id":1 , "params":{"b":1,"a":9007199254740993},"jsonrpc":"2.0"})"));
  run(say(R"({"result":{"z": 1e2},"jsonrpc":"2.0","id":1})"));
  loop.run_until([&] { return !answer.empty(); });
  EXPECT_EQ(answer, R"({"result":{"z": 1e2},"jsonrpc":"2.0","id":1})");
}

// ---- both ways
// ---------------------------------------------------------------------------------------------

TEST_F(Calling, HandlerCallsItsCallerBackWhileThousandsOfRequestsPileUp) {
  // Two peers. `ask` calls back `who` on its caller and waits; meanwhile its caller sends 10,000 further
  // requests.
  auto callers_methods = std::make_shared<Methods>();
  callers_methods->on("who", [](const Request&) { return json::string("me"); });
  methods->on("ask", [](Request request) -> Task<Answer> {
    Result<json::Raw> who = co_await request.peer().call("who");
    co_return who;
  });
  methods->on("ping", [](const Request&) { return json::string("pong"); });
  auto [near_end, far_end] = make_channel(loop, loop);
  peer = Peer::start(near_end, methods, options);
  const auto caller = Peer::start(far_end, callers_methods, options);

  int answered = 0;
  auto ask = [](Peer& from, std::string method, std::string expected, int& count) -> Task<void> {
    const Result<json::Raw> got = co_await from.call(method);
    EXPECT_TRUE(got && got->text() == expected)
        << method << (got ? std::string(got->text()) : got.error().to_string());
    ++count;
  };
  loop.post([&] {
    for (int i = 0; i < 10'000; ++i) {
      const bool asking = i % 2 == 0;
      loop.spawn(ask(*caller, asking ? "ask" : "ping", asking ? "\"me\"" : "\"pong\"", answered));
    }
  });
  loop.run_until([&] { return answered == 10'000; });
  EXPECT_EQ(answered, 10'000);
  caller->close();
}

}  // namespace
}  // namespace fairlead
