// R5.1 to R5.3, R5.5: Peer as the caller.
#include <stop_token>
#include <thread>

#include "fairlead/json/writer.hpp"
#include "peer/harness.hpp"

namespace fairlead {
namespace {

using test::raw;
using namespace std::chrono_literals;

class PeerCallingTest : public test::PeerTest {
 public:
  // Outcomes of calls made in the background, by the name of their method.
  std::map<std::string, std::string> outcomes;

  Task<void> call(std::string method, CallOptions call_options = CallOptions()) {
    const Result<json::Raw> result = co_await peer->call(method, json::Raw(), std::move(call_options));
    outcomes[method] = result ? std::string(result->text()) : result.error().to_string();
  }
  void start_call(const std::string& method, CallOptions call_options = CallOptions()) {
    // Posted, because calls are made on the loop thread.
    loop.post([this, method, call_options] { loop.spawn(call(method, call_options)); });
  }
  void run_until_done(const std::string& method) {
    loop.run_until([&] { return outcomes.contains(method); });
  }
};

TEST_F(PeerCallingTest, CallIdsCountUpFromOneAndAbsentParamsAreOmitted) {  // R5.1, R1.2
  start();
  start_call("a");
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"a"})"));
  start_call("b");
  run(expect(R"({"jsonrpc":"2.0","id":2,"method":"b"})"));
}

TEST_F(PeerCallingTest, ResponsesInAnyOrderReachTheirCallers) {
  start();
  for (const char* method : {"a", "b", "c"}) start_call(method);
  for (int i = 0; i < 3; ++i) loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":3,"result":"C"})"));
  run(send(R"({"jsonrpc":"2.0","id":1,"result":"A"})"));
  run(send(R"({"jsonrpc":"2.0","id":2})"));  // R1.2: without result and error, the result is null
  run_until_done("b");
  EXPECT_EQ(outcomes["a"], "\"A\"");
  EXPECT_EQ(outcomes["b"], "null");
  EXPECT_EQ(outcomes["c"], "\"C\"");
  EXPECT_EQ(peer->calls_in_flight(), 0u);
}

TEST_F(PeerCallingTest, RemoteErrorKeepsCodeMessageAndData) {
  start();
  Error error(ErrorKind::io, "");
  auto body = [](PeerCallingTest* self, Error& out) -> Task<void> {
    const Result<json::Raw> result = co_await self->peer->call("x");
    out = result.error();
  };
  loop.spawn(body(this, error));
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"x"})"));
  run(send(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"n\u00f6","data":{"k": 1.0}}})"));
  loop.run_until([&] { return error.kind() == ErrorKind::remote; });
  EXPECT_EQ(error.detail().rpc_code, -32050);
  EXPECT_EQ(error.message(), "nö");
  EXPECT_EQ(error.detail().rpc_data, R"({"k": 1.0})");
}

TEST_F(PeerCallingTest, TimedOutCallSendsCancelAndItsLateResponseIsDropped) {  // R5.2
  start();
  start_call("slow", CallOptions(20ms));
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"slow"})"));
  run(expect(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"timed out"}})"));
  run_until_done("slow");
  EXPECT_EQ(outcomes["slow"], "timed out: `slow` got no answer within 20 ms");
  run(send(R"({"jsonrpc":"2.0","id":1,"result":"late"})"));
  start_call("next");
  run(expect(R"({"jsonrpc":"2.0","id":2,"method":"next"})"));
  run(send(R"({"jsonrpc":"2.0","id":2,"result":"mine"})"));
  run_until_done("next");
  EXPECT_EQ(outcomes["next"], "\"mine\"");
  EXPECT_EQ(peer->stats().late_responses, 1u);
  EXPECT_EQ(peer->stats().mismatched_responses, 0u);
}

TEST_F(PeerCallingTest, UnexpectedResponseIsLoggedWithBothIds) {  // R5.3
  std::string log;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { log += line; });
  start();
  start_call("a");
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":99,"result":1})"));
  run(send(R"({"jsonrpc":"2.0","id":"1","result":1})"));  // the same digits, another id
  run(send(R"({"jsonrpc":"2.0","id":1.0,"result":1})"));
  run(send(R"({"jsonrpc":"2.0","id":1,"result":"right"})"));
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "\"right\"");
  EXPECT_EQ(peer->stats().mismatched_responses, 3u);
  EXPECT_NE(log.find("id mismatch: the response belongs to no call id=99 expected=1"), std::string::npos)
      << log;
}

TEST_F(PeerCallingTest, FloodOfUnexpectedResponsesIsLoggedWithRateLimit) {
  std::string log;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { log += line; });
  start();
  // Long enough to be truncated in the log; all of them are processed well within
  // LogRateLimit::kDefaultInterval.
  const std::string id = "\"" + std::string(32u << 10, 'i') + "\"";
  for (int i = 0; i < 100; ++i) run(send(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}"));
  loop.run_until(
      [&] { return peer->stats().mismatched_responses >= 100; });  // large frames are parsed in steps
  EXPECT_EQ(peer->stats().mismatched_responses, 100u);
  EXPECT_EQ(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')),
            LogRateLimit::kDefaultMaxLines);
  EXPECT_LT(log.size(), 2 * LogRateLimit::kDefaultMaxLines * Limits::kMaxLogFieldBytes);
}

TEST_F(PeerCallingTest, ResponseWithoutResultIsANullResult) {  // R1.2
  start();
  start_call("a");
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":1})"));
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "null");
}

TEST_F(PeerCallingTest, SecondResponseToTheSameCallIsAMismatch) {
  start();
  start_call("a");
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":1,"result":"first"})"));
  run(send(R"({"jsonrpc":"2.0","id":1,"result":"second"})"));
  start_call("b");
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":2,"result":"third"})"));
  run_until_done("b");
  EXPECT_EQ(outcomes["a"], "\"first\"");
  EXPECT_EQ(outcomes["b"], "\"third\"");
  EXPECT_EQ(peer->stats().mismatched_responses, 1u);
}

TEST_F(PeerCallingTest, LockStepCallFailsWhenResponseHasAnotherId) {
  options.lock_step = true;
  start();
  start_call("a");
  loop.block_on(receive());
  start_call("b");
  run_until_done("b");
  EXPECT_EQ(outcomes["b"],
            "resource exhausted: a call is in flight already (lock step allows one at a time)");
  run(send(R"({"jsonrpc":"2.0","id":7,"result":1})"));
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "id mismatch: the response has id 7, expected 1");
}

TEST_F(PeerCallingTest, ResponseWithResultAndErrorFailsItsCall) {
  start();
  start_call("a");
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}})"));
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "invalid: Invalid Request: both a result and an error");
}

TEST_F(PeerCallingTest, InvalidResponseFailsItsCallWithoutRpcCode) {
  start();
  std::optional<Error> failed;
  auto body = [](PeerCallingTest* self, std::optional<Error>& out) -> Task<void> {
    const Result<json::Raw> result = co_await self->peer->call("x");
    out = result.error();
  };
  loop.spawn(body(this, failed));
  loop.block_on(receive());
  run(send(R"({"jsonrpc":"1.0","id":1,"result":1})"));
  loop.run_until([&] { return failed.has_value(); });
  EXPECT_EQ(failed->kind(), ErrorKind::validation);
  EXPECT_FALSE(failed->detail().rpc_code);
}

TEST_F(PeerCallingTest, StopTokenCancelsTheCallFromAnotherThread) {
  start();
  std::stop_source source;
  CallOptions stoppable;
  stoppable.stop = source.get_token();
  start_call("a", stoppable);
  run(expect(R"({"jsonrpc":"2.0","id":1,"method":"a"})"));
  std::thread([&] { source.request_stop(); }).join();
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "cancelled: the call was cancelled by its caller");
  run(expect(
      R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"cancelled by the caller"}})"));
  start_call("b", stoppable);
  run_until_done("b");
  EXPECT_EQ(outcomes["b"], "cancelled: the call was cancelled before it was sent");
}

TEST_F(PeerCallingTest, ProgressExtendsTimeoutButNotMaxTotalTime) {
  start();
  int seen = 0;
  CallOptions patient(500ms);  // on a busy machine the loop may be delayed by 100 ms
  patient.max_total_time = 1200ms;
  patient.on_progress = [&](const json::Raw& value) {
    EXPECT_EQ(value.text(), R"({"n":1})");
    ++seen;
  };
  const auto started = Clock::now();
  start_call("a", patient);
  loop.block_on(receive());
  auto keep_going = [](PeerCallingTest* self) -> Task<void> {
    while (!self->outcomes.contains("a")) {
      Task<void> sending =
          self->send(R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":1,"value":{"n":1}}})");
      co_await sending;
      co_await sleep_for(self->loop, 10ms);
    }
  };
  run(keep_going(this));
  EXPECT_EQ(outcomes["a"], "timed out: `a` got no answer within 1200 ms");
  EXPECT_GE(Clock::now() - started, 1190ms);
  EXPECT_GT(seen, 3);
}

TEST_F(PeerCallingTest, CallFailsOverMaxCallsInFlight) {
  options.limits.max_calls_in_flight = 1;
  start();
  start_call("a");
  start_call("b");
  run_until_done("b");
  EXPECT_EQ(outcomes["b"], "resource exhausted: max_calls_in_flight (1) calls are waiting for responses");
}

TEST_F(PeerCallingTest, CloseFailsCallsInFlightAndLaterCalls) {  // R3.5
  start();
  start_call("a");
  start_call("b");
  loop.block_on(receive());
  std::thread([&] { peer->close(); }).join();
  run_until_done("b");
  EXPECT_EQ(outcomes["a"], "connection closed: the connection was closed by this side");
  EXPECT_EQ(outcomes["b"], outcomes["a"]);
  start_call("c");
  run_until_done("c");
  EXPECT_EQ(outcomes["c"], outcomes["a"]);
}

TEST_F(PeerCallingTest, CallsInFlightFailWhenRemotePeerCloses) {
  start();
  start_call("a");
  loop.block_on(receive());
  remote->close();
  run_until_done("a");
  EXPECT_EQ(outcomes["a"], "connection closed: the other end of the channel was closed");
}

TEST_F(PeerCallingTest, DestroyedCoroutineCancelsItsCall) {
  start();
  {
    Task<void> abandoned = call("a");
    bool started = false;
    // Started manually, and destroyed while it is suspended.
    loop.post([&] {
      abandoned.await_suspend(std::noop_coroutine()).resume();
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

TEST_F(PeerCallingTest, ForwardChangesOnlyTheId) {  // R1.6
  start();
  const rpc::Message request = rpc::Message::parse(Bytes::copy_of(
      R"({ "method":"t","x":[1.0],"id":"theirs" , "params":{"b":1,"a":9007199254740993},"jsonrpc":"2.0"})"));
  std::string answer;
  auto body = [](PeerCallingTest* self, rpc::Message message, std::string& out) -> Task<void> {
    const Result<rpc::Message> received = co_await self->peer->forward(std::move(message));
    out = received ? std::string(received->frame().view()) : received.error().to_string();
  };
  loop.spawn(body(this, request, answer));
  run(expect(R"({ "method":"t","x":[1.0],"id":1 , "params":{"b":1,"a":9007199254740993},"jsonrpc":"2.0"})"));
  run(send(R"({"result":{"z": 1e2},"jsonrpc":"2.0","id":1})"));
  loop.run_until([&] { return !answer.empty(); });
  EXPECT_EQ(answer, R"({"result":{"z": 1e2},"jsonrpc":"2.0","id":1})");
}

// ---- calls in both directions ----------------------------------------------------------------------------

TEST_F(PeerCallingTest, HandlerCanCallItsCallerWhileThousandsOfRequestsAreQueued) {
  // There are two peers. The handler of `ask` calls `who` on its caller and waits; meanwhile the caller sends
  // 10,000 further requests.
  auto callers_methods = std::make_shared<Methods>();
  callers_methods->on("who", [](const Request&) { return json::string("me"); });
  methods->on("ask", [](Request request) -> Task<Answer> {
    Result<json::Raw> who = co_await request.peer().call("who");
    co_return who;
  });
  methods->on("ping", [](const Request&) { return json::string("pong"); });
  auto [local_end, remote_end] = make_channel(loop, loop);
  peer = Peer::start(local_end, methods, options);
  const auto caller = Peer::start(remote_end, callers_methods, options);

  int completed = 0;
  auto ask = [](Peer& from, std::string method, std::string expected, int& count) -> Task<void> {
    const Result<json::Raw> received = co_await from.call(method);
    EXPECT_TRUE(received && received->text() == expected)
        << method << (received ? std::string(received->text()) : received.error().to_string());
    ++count;
  };
  loop.post([&] {
    for (int i = 0; i < 10'000; ++i) {
      const bool asking = i % 2 == 0;
      loop.spawn(ask(*caller, asking ? "ask" : "ping", asking ? "\"me\"" : "\"pong\"", completed));
    }
  });
  loop.run_until([&] { return completed == 10'000; });
  EXPECT_EQ(completed, 10'000);
  caller->close();
}

}  // namespace
}  // namespace fairlead
