// Forwarded calls: content, timeouts (Clocks) and retries. R10.4.
#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"
#include "pool/retry.hpp"
#include "pool/tool_crashes.hpp"
#include "support/hostile_json.hpp"
#include "support/turns.hpp"

namespace fairlead::pool {
namespace {

TEST(ToolCrashesTest, AnsweredCallResetsCountOfItsTool) {
  RestartPolicy policy;
  policy.tool_crash_after = 2;
  ToolCrashes crashes(policy);
  const Clock::time_point now = Clock::now();
  const Error reason(ErrorKind::process_exited, "killed");
  crashes.on_crash("a", reason, now);
  crashes.on_crash("b", reason, now);
  crashes.on_answered("a");
  crashes.on_crash("a", reason, now);
  crashes.on_crash("b", reason, now);
  EXPECT_FALSE(crashes.refusal_error("s", "a", now));
  EXPECT_TRUE(crashes.refusal_error("s", "b", now));
  EXPECT_FALSE(crashes.refusal_error("s", "b", now + policy.tool_crash_pause));
  EXPECT_FALSE(crashes.refusal_error("s", "", now));
}

TEST_F(PoolTest, ResponseIsForwardedByteForByte) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "echo");
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(), kEcho);
}

TEST_F(PoolTest, ErrorOfServerIsReturnedAsResponse) {
  add(spec("a"));
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), message(R"({"jsonrpc":"2.0","id":1,"method":"no/such"})"), ForwardOptions()));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is(rpc::Kind::error));
}

TEST_F(PoolTest, CallToUnknownServerFailsWithValidation) {
  open_pool();
  const Result<rpc::Message> answer = call("unknown", "echo");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::validation);
}

TEST_F(PoolTest, ProgressCarriesTokenOfCaller) {
  add(spec("a"));
  std::vector<std::string> seen;
  ForwardOptions call_options;
  call_options.on_progress = [&](const json::Raw& params) { seen.push_back(std::string(params.text())); };
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), tool_call("progress", R"({"progressToken":"mine \u0021"})"), call_options));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(seen, (std::vector<std::string>{R"({"progressToken":"mine \u0021","progress":1})",
                                            R"({"progressToken":"mine \u0021","progress":2})"}));
}

TEST_F(PoolTest, CallFailsWithStderrWhenServerCrashesAndNextCallSucceeds) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const Result<rpc::Message> answer = call("a", "crash");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().exit_signal, SIGKILL);
  EXPECT_EQ(answer.error().detail().stderr_lines, std::vector<std::string>{"out of cheese"});
  EXPECT_NE(pid_of("a"), before);
  EXPECT_EQ(start_count("a"), 2u);
  EXPECT_EQ(journal_lines("a", "got \"tools/call\""), 3u) << "the call that failed was not retried";
}

TEST_F(PoolTest, RepeatableCallIsRetriedAfterCrashAndResultIsMarked) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "crash_once", repeatable_call());
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(),
            R"({ "content" : [{"type":"text","text":"\u00fc"}], "n": 12345678901234567890.10e0,)"
            R"("_meta":{"fairlead/retried":{"attempts":2,"reason":"process exited"}} })");
  EXPECT_EQ(journal_lines("a", "got \"tools/call\""), 2u);
}

TEST_F(PoolTest, RepeatableCallIsRetriedOnlyOnce) {
  add(spec("a"));
  EXPECT_FALSE(call("a", "crash", repeatable_call()));
  EXPECT_EQ(journal_lines("a", "got \"tools/call\""), 2u);
}

// Every call is sent with a progress token, because progress shows that the server is working on the call.
TEST_F(PoolTest, ProgressRestartsIdleTimeoutOfCallWithoutToken) {
  std::vector<std::string> seen;
  options.handlers.on_notification = [&](const std::shared_ptr<Upstream>&, std::string_view method,
                                         const json::Raw&) { seen.emplace_back(method); };
  add(spec("a"));
  ForwardOptions call_options;
  call_options.idle = 1500ms;
  call_options.on_progress = [&](const json::Raw& params) { seen.push_back(std::string(params.text())); };
  for (const std::string request :
       {R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"ticks"}})",
        R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"ticks","_meta":{}}})"}) {
    const Result<rpc::Message> answer =
        loop.block_on(pool->call(Target("a"), message(request), call_options));
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->result_text(), kEcho);
  }
  EXPECT_EQ(seen, std::vector<std::string>()) << "the caller sent no token";
}

TEST_F(PoolTest, CallWithoutTokenIsRetriedDespiteProgress) {
  add(spec("a"));
  const Result<rpc::Message> answer =
      loop.block_on(pool->call(Target("a"), tool_call("progress_crash"), repeatable_call()));
  EXPECT_FALSE(answer);
  EXPECT_EQ(start_count("a"), 2u);
}

TEST_F(PoolTest, CallWithReportedProgressIsNotRetried) {
  add(spec("a"));
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), tool_call("progress_crash", R"({"progressToken":1})"), repeatable_call()));
  EXPECT_FALSE(answer);
  EXPECT_EQ(journal_lines("a", "got \"tools/call\""), 1u);
}

// The process answers a ping after the timeout, so it is kept.
TEST_F(PoolTest, CallTimeoutCancelsCallAtServerAndKeepsProcess) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  ForwardOptions call_options;
  call_options.idle = 50ms;
  const Result<rpc::Message> answer = call("a", "hang", call_options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().failure_code, failure::call_timeout);
  EXPECT_NE(answer.error().detail().command_line.find("mcp_server"), std::string::npos);
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_EQ(journal_lines("a", "got \"notifications/cancelled\""), 1u);
  EXPECT_EQ(journal_lines("a", "got \"ping\""), 1u);
  EXPECT_EQ(start_count("a"), 1u);
}

TEST_F(PoolTest, StoppedCallIsCancelledAtServer) {
  add(spec("a"));
  pid_of("a");
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  const auto hanging = begin_call("a", "hang", call_options);
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 2; }));
  stop.request_stop();
  EXPECT_TRUE(finish_call(hanging).starts_with("<cancelled"));
  pid_of("a");
  EXPECT_EQ(journal_lines("a", "got \"notifications/cancelled\""), 1u);
}

TEST_F(PoolTest, CallFailsWhenAbsoluteTimeoutElapses) {
  add(spec("a"));
  ForwardOptions call_options;
  call_options.absolute = 50ms;
  const Result<rpc::Message> answer = call("a", "hang", call_options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().waited, 50ms);
}

TEST_F(PoolTest, ProcessIsReplacedWhenPingAfterCallTimeoutFails) {
  ServerSpec mute = spec("a");
  mute.clocks.ping = 50ms;
  add(mute);
  const pid_t before = pid_of("a");
  ForwardOptions call_options;
  call_options.idle = 50ms;
  EXPECT_FALSE(call("a", "mute", call_options));
  ASSERT_TRUE(wait_until([&] { return status("a").state != UpstreamState::ready; }));
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, CallFailsWithNoiseOnStdoutWhenServerWritesMalformedFrames) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "noise");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::parse) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().failure_code, failure::noise_on_stdout);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::noise_on_stdout));
  EXPECT_FALSE(answer.error().detail().command_line.empty());
}

TEST_F(PoolTest, IdleServerIsReplacedWhenHealthPingFails) {
  ServerSpec mute = spec("a", "mute_after_handshake");
  mute.clocks.health = 20ms;
  mute.clocks.ping = 50ms;
  add(mute);
  ASSERT_TRUE(loop.block_on(pool->warm(Target("a"))));
  EXPECT_TRUE(wait_until([&] { return status("a").state != UpstreamState::ready; }));
  EXPECT_FALSE(status("a").healthy);
  ASSERT_TRUE(status("a").last_error);
  EXPECT_EQ(status("a").last_error->kind(), ErrorKind::timeout);
  EXPECT_EQ(status("a").last_error->detail().failure_code, failure::unresponsive);
  EXPECT_FALSE(status("a").last_error->detail().command_line.empty());
}

// A server that is busy with one call cannot answer a ping meanwhile. It is replaced only if that call times
// out too.
TEST_F(PoolTest, BusyServerIsNotReplacedWhenAnotherCallTimesOut) {
  ServerSpec busy = spec("a");
  busy.clocks.ping = 20ms;
  add(busy);
  const pid_t before = pid_of("a");
  const auto working = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 2; }));
  ForwardOptions impatient;
  impatient.idle = 20ms;
  EXPECT_FALSE(call("a", "pid", impatient));
  ASSERT_TRUE(wait_until([&] { return !status("a").healthy; })) << "the ping goes unanswered";
  EXPECT_EQ(status("a").state, UpstreamState::ready);
  open_gate();
  finish_call(working);
  ASSERT_TRUE(*working->answer) << finish_call(working);
  EXPECT_EQ((*working->answer)->result_text(), kEcho);
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_TRUE(status("a").healthy);
}

TEST_F(PoolTest, LeasedUpstreamIsNotStoppedWhenIdle) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  add(brief);
  std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*lease);
  const Result<std::vector<json::Raw>> tools =
      loop.block_on((*lease)->connection()->list("tools/list", "tools"));
  ASSERT_TRUE(tools);
  EXPECT_EQ(tools->size(), 4u);
  EXPECT_TRUE(is_repeatable("tools/call", json::View((*tools)[0])));
  EXPECT_FALSE(is_repeatable("tools/call", json::View((*tools)[1])));
  EXPECT_EQ((*lease)->upstream()->state(), UpstreamState::ready);
  lease.reset();
  EXPECT_TRUE(reaches("a", UpstreamState::idle));
}

TEST_F(PoolTest, KeepAliveLeasePreventsIdleStopButCountsAsNoCallAndDoesNotDelayRemoval) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  brief.max_calls = 1;
  add(brief);
  std::optional<Result<Lease>> first = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*first);
  std::optional<Result<Lease>> hold = pool->keep_alive((*first)->upstream());
  ASSERT_TRUE(*hold);
  first.reset();
  const pid_t before = pid_of("a");
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_EQ(status("a").active_call_count, 0u);
  ASSERT_TRUE(pool->remove("a"));
  EXPECT_TRUE(wait_until([&] { return pool->process_count() == 0; }))
      << "a keep-alive lease does not delay removal";
  EXPECT_FALSE(pool->keep_alive((*hold)->upstream()));
}

TEST_F(PoolTest, UpstreamWithKeepAliveLeaseIsReplacedWhenUnresponsive) {
  ServerSpec mute = spec("a");
  mute.clocks.ping = 50ms;
  add(mute);
  std::optional<Result<Lease>> first = loop.block_on(pool->acquire(Target("a"), {}));
  const Result<Lease> hold = pool->keep_alive((*first)->upstream());
  ASSERT_TRUE(hold);
  first.reset();
  ForwardOptions call_options;
  call_options.idle = 50ms;
  EXPECT_FALSE(call("a", "mute", call_options));
  EXPECT_TRUE(wait_until([&] { return status("a").state != UpstreamState::ready; }));
}

Task<void> forward_in_background(std::shared_ptr<UpstreamConnection> connection,
                                 std::optional<Result<rpc::Message>>& answer) {
  const std::shared_ptr<const mcp::ForwardedRequest> hanging =
      std::make_shared<const mcp::VerbatimRequest>(tool_call("hang"));
  CallOptions unbounded;
  Result<rpc::Message> result = co_await connection->call(hanging, std::move(unbounded));
  answer = std::move(result);
}

// detail().unsent decides whether a call whose connection was lost may be retried.
TEST_F(PoolTest, ErrorSaysWhetherCallWasSent) {
  add(spec("a"));
  for (const bool sent : {false, true}) {
    std::optional<Result<rpc::Message>> answer;
    std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
    ASSERT_TRUE(*lease);
    loop.post([&] {
      loop.spawn(forward_in_background((*lease)->connection(), answer));
      if (!sent) (*lease)->connection()->abort();
    });
    if (sent) {
      ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
      (*lease)->connection()->abort();
    }
    ASSERT_TRUE(wait_until([&] { return answer.has_value(); }));
    ASSERT_FALSE(*answer);
    EXPECT_EQ(answer->error().detail().unsent, !sent);
    lease.reset();
  }
}

TEST(RetryTest, OnlyReadingMethodsAndAnnotatedToolsAreRepeatable) {
  EXPECT_TRUE(is_repeatable("resources/read"));
  EXPECT_TRUE(is_repeatable("tools/list"));
  EXPECT_FALSE(is_repeatable("tools/call"));
  EXPECT_FALSE(is_repeatable("logging/setLevel"));
  EXPECT_TRUE(is_repeatable("tools/call", json::View(R"({"annotations":{"idempotentHint":true}})")));
  EXPECT_FALSE(is_repeatable("tools/call", json::View(R"({"annotations":{"readOnlyHint":false}})")));
}

TEST(RetryTest, MarkLeavesOtherBytesUnchanged) {
  const Error reason(ErrorKind::closed, "gone");
  const auto marked = [&](const std::string& result) {
    return std::string(mark_retried(message(R"({"id":1,"jsonrpc":"2.0","result":)" + result + "}"), 2, reason)
                           .result_text());
  };
  EXPECT_EQ(marked("{}"), R"({"_meta":{"fairlead/retried":{"attempts":2,"reason":"connection closed"}}})");
  EXPECT_EQ(marked(R"({"_meta": {"a":1.0} ,"b":[]})"),
            R"({"_meta": {"a":1.0,"fairlead/retried":{"attempts":2,"reason":"connection closed"}} ,"b":[]})");
  EXPECT_EQ(marked(R"({"_meta":7})"), R"({"_meta":7})");
  EXPECT_EQ(marked("null"), "null");
}

TEST(RetryTest, MarkingLargestResponsesDoesNotBlockLoop) {
  Loop loop;
  const Error reason(ErrorKind::closed, "gone");
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    const rpc::Message answer = message(R"({"id":1,"jsonrpc":"2.0","result":{"a":)" + value + "}}");
    const std::string expected =
        R"({"a":)" + value + R"(,"_meta":{"fairlead/retried":{"attempts":2,"reason":"connection closed"}}})";
    test::expect_short_turns(loop, [&] {
      bool done = false;
      loop.post([&] {
        const rpc::Message marked = mark_retried(answer, 2, reason);
        EXPECT_EQ(marked.members().member_count(), 2u);
        EXPECT_TRUE(marked.result_text() == expected);
        done = true;
      });
      loop.run_until([&] { return done; });
    });
  }
}

}  // namespace
}  // namespace fairlead::pool
