// What travels, what is timed, and what is sent again. R10.4; clocks.
#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"
#include "pool/retry.hpp"
#include "pool/tool_crashes.hpp"
#include "support/hostile_json.hpp"
#include "support/turns.hpp"

namespace fairlead::pool {
namespace {

TEST(ToolCrashes, AnAnsweredCallSetsItsToolBackToZero) {
  RestartPolicy policy;
  policy.tool_crash_after = 2;
  ToolCrashes crashes(policy);
  const Clock::time_point now = Clock::now();
  const Error reason(ErrorKind::process_exited, "killed");
  crashes.crashed("a", reason, now);
  crashes.crashed("b", reason, now);
  crashes.answered("a");
  crashes.crashed("a", reason, now);
  crashes.crashed("b", reason, now);
  EXPECT_FALSE(crashes.refusal("s", "a", now));
  EXPECT_TRUE(crashes.refusal("s", "b", now));
  EXPECT_FALSE(crashes.refusal("s", "b", now + policy.tool_crash_pause));
  EXPECT_FALSE(crashes.refusal("s", "", now));
}

TEST_F(PoolTest, an_answer_is_passed_on_byte_for_byte) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "echo");
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(), kEcho);
}

TEST_F(PoolTest, an_error_of_the_server_is_an_answer_like_any_other) {
  add(spec("a"));
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), message(R"({"jsonrpc":"2.0","id":1,"method":"no/such"})"), ForwardOptions()));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is(rpc::Kind::error));
}

TEST_F(PoolTest, a_server_nobody_knows_is_an_error) {
  open_pool();
  const Result<rpc::Message> answer = call("nobody", "echo");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::validation);
}

TEST_F(PoolTest, progress_comes_with_the_callers_own_token) {
  add(spec("a"));
  std::vector<std::string> seen;
  ForwardOptions how;
  how.on_progress = [&](const json::Raw& params) { seen.push_back(std::string(params.text())); };
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), tool_call("progress", R"({"progressToken":"mine \u0021"})"), how));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(seen, (std::vector<std::string>{R"({"progressToken":"mine \u0021","progress":1})",
                                            R"({"progressToken":"mine \u0021","progress":2})"}));
}

TEST_F(PoolTest, a_call_cut_off_is_an_error_with_last_words_and_the_next_one_works) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const Result<rpc::Message> answer = call("a", "crash");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().exit_signal, SIGKILL);
  EXPECT_EQ(answer.error().detail().stderr_lines, std::vector<std::string>{"out of cheese"});
  EXPECT_NE(pid_of("a"), before);
  EXPECT_EQ(starts("a"), 2u);
  EXPECT_EQ(noted("a", "got \"tools/call\""), 3u) << "and the one cut off was not sent again";
}

TEST_F(PoolTest, a_repeatable_call_cut_off_is_sent_once_more_and_its_result_says_so) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "crash_once", repeatable_call());
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(),
            R"({ "content" : [{"type":"text","text":"\u00fc"}], "n": 12345678901234567890.10e0,)"
            R"("_meta":{"fairlead/retried":{"attempts":2,"reason":"process exited"}} })");
  EXPECT_EQ(noted("a", "got \"tools/call\""), 2u);
}

TEST_F(PoolTest, a_repeatable_call_is_not_sent_a_third_time) {
  add(spec("a"));
  EXPECT_FALSE(call("a", "crash", repeatable_call()));
  EXPECT_EQ(noted("a", "got \"tools/call\""), 2u);
}

// The server is asked for progress in any case: it shows that the call is being worked on.
TEST_F(PoolTest, progress_rearms_the_idle_clock_of_a_call_without_a_token) {
  std::vector<std::string> seen;
  options.handlers.notified = [&](const std::shared_ptr<Upstream>&, std::string_view method,
                                  const json::Raw&) { seen.emplace_back(method); };
  add(spec("a"));
  ForwardOptions how;
  how.idle = 1500ms;
  how.on_progress = [&](const json::Raw& params) { seen.push_back(std::string(params.text())); };
  for (const std::string request :
       {R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"ticks"}})",
        R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"ticks","_meta":{}}})"}) {
    const Result<rpc::Message> answer = loop.block_on(pool->call(Target("a"), message(request), how));
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->result_text(), kEcho);
  }
  EXPECT_EQ(seen, std::vector<std::string>()) << "the caller sent no token";
}

TEST_F(PoolTest, a_call_without_a_token_is_repeated_whatever_progress_there_was) {
  add(spec("a"));
  const Result<rpc::Message> answer =
      loop.block_on(pool->call(Target("a"), tool_call("progress_crash"), repeatable_call()));
  EXPECT_FALSE(answer);
  EXPECT_EQ(starts("a"), 2u);
}

TEST_F(PoolTest, a_call_that_showed_progress_is_not_repeated) {
  add(spec("a"));
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("a"), tool_call("progress_crash", R"({"progressToken":1})"), repeatable_call()));
  EXPECT_FALSE(answer);
  EXPECT_EQ(noted("a", "got \"tools/call\""), 1u);
}

// The child is pinged, found alive, and kept.
TEST_F(PoolTest, a_timeout_cancels_the_call_at_the_server_and_keeps_the_child) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  ForwardOptions how;
  how.idle = 50ms;
  const Result<rpc::Message> answer = call("a", "hang", how);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().code, failure::call_timeout);
  EXPECT_NE(answer.error().detail().command_line.find("mcp_server"), std::string::npos);
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_EQ(noted("a", "got \"notifications/cancelled\""), 1u);
  EXPECT_EQ(noted("a", "got \"ping\""), 1u);
  EXPECT_EQ(starts("a"), 1u);
}

TEST_F(PoolTest, a_call_given_up_is_cancelled_at_the_server) {
  add(spec("a"));
  pid_of("a");
  std::stop_source stop;
  ForwardOptions how;
  how.stop = stop.get_token();
  const auto hanging = begin("a", "hang", how);
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 2; }));
  stop.request_stop();
  EXPECT_TRUE(finish(hanging).starts_with("<cancelled"));
  pid_of("a");
  EXPECT_EQ(noted("a", "got \"notifications/cancelled\""), 1u);
}

TEST_F(PoolTest, the_absolute_clock_ends_a_call_by_itself) {
  add(spec("a"));
  ForwardOptions how;
  how.absolute = 50ms;
  const Result<rpc::Message> answer = call("a", "hang", how);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().after, 50ms);
}

TEST_F(PoolTest, a_child_that_fails_its_ping_after_a_timeout_is_replaced) {
  ServerSpec mute = spec("a");
  mute.clocks.ping = 50ms;
  add(mute);
  const pid_t before = pid_of("a");
  ForwardOptions how;
  how.idle = 50ms;
  EXPECT_FALSE(call("a", "mute", how));
  ASSERT_TRUE(comes_true([&] { return status("a").state != State::ready; }));
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, a_server_that_writes_noise_to_its_stdout_is_told_so_with_its_last_words) {
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "noise");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::parse) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().code, failure::noise_on_stdout);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::noise_on_stdout));
  EXPECT_FALSE(answer.error().detail().command_line.empty());
}

TEST_F(PoolTest, an_idle_server_that_no_longer_answers_is_found_out_and_replaced) {
  ServerSpec mute = spec("a", "mute_after_handshake");
  mute.clocks.health = 20ms;
  mute.clocks.ping = 50ms;
  add(mute);
  ASSERT_TRUE(loop.block_on(pool->warm(Target("a"))));
  EXPECT_TRUE(comes_true([&] { return status("a").state != State::ready; }));
  EXPECT_FALSE(status("a").healthy);
  ASSERT_TRUE(status("a").last_error);
  EXPECT_EQ(status("a").last_error->kind(), ErrorKind::timeout);
  EXPECT_EQ(status("a").last_error->detail().code, failure::unresponsive);
  EXPECT_FALSE(status("a").last_error->detail().command_line.empty());
}

// A server that is busy with one call cannot answer a ping beside it: the call's own clock decides.
TEST_F(PoolTest, a_busy_server_is_not_replaced_for_the_impatience_of_another_caller) {
  ServerSpec busy = spec("a");
  busy.clocks.ping = 20ms;
  add(busy);
  const pid_t before = pid_of("a");
  const auto working = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 2; }));
  ForwardOptions impatient;
  impatient.idle = 20ms;
  EXPECT_FALSE(call("a", "pid", impatient));
  ASSERT_TRUE(comes_true([&] { return !status("a").healthy; })) << "the ping goes unanswered";
  EXPECT_EQ(status("a").state, State::ready);
  open_gate();
  finish(working);
  ASSERT_TRUE(*working->answer) << finish(working);
  EXPECT_EQ((*working->answer)->result_text(), kEcho);
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_TRUE(status("a").healthy);
}

TEST_F(PoolTest, a_lease_holds_a_ready_upstream) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  add(brief);
  std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*lease);
  const Result<std::vector<json::Raw>> tools =
      loop.block_on((*lease)->connection()->list("tools/list", "tools"));
  ASSERT_TRUE(tools);
  EXPECT_EQ(tools->size(), 4u);
  EXPECT_TRUE(repeatable("tools/call", json::View((*tools)[0])));
  EXPECT_FALSE(repeatable("tools/call", json::View((*tools)[1])));
  EXPECT_EQ((*lease)->upstream()->state(), State::ready);
  lease.reset();
  EXPECT_TRUE(reaches("a", State::idle));
}

TEST_F(PoolTest, an_upstream_that_is_held_keeps_running_takes_no_calls_place_and_ends_when_it_must) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  brief.max_calls = 1;
  add(brief);
  std::optional<Result<Lease>> first = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*first);
  std::optional<Result<Lease>> hold = pool->hold((*first)->upstream());
  ASSERT_TRUE(*hold);
  first.reset();
  const pid_t before = pid_of("a");
  EXPECT_EQ(pid_of("a"), before);
  EXPECT_EQ(status("a").calls, 0u);
  ASSERT_TRUE(pool->remove("a"));
  EXPECT_TRUE(comes_true([&] { return pool->processes() == 0; })) << "nobody waits for it";
  EXPECT_FALSE(pool->hold((*hold)->upstream()));
}

TEST_F(PoolTest, an_upstream_that_is_held_and_no_longer_answers_is_replaced) {
  ServerSpec mute = spec("a");
  mute.clocks.ping = 50ms;
  add(mute);
  std::optional<Result<Lease>> first = loop.block_on(pool->acquire(Target("a"), {}));
  const Result<Lease> hold = pool->hold((*first)->upstream());
  ASSERT_TRUE(hold);
  first.reset();
  ForwardOptions how;
  how.idle = 50ms;
  EXPECT_FALSE(call("a", "mute", how));
  EXPECT_TRUE(comes_true([&] { return status("a").state != State::ready; }));
}

Task<void> forward_beside(std::shared_ptr<UpstreamConnection> connection,
                          std::optional<Result<rpc::Message>>& answer) {
  const std::shared_ptr<const mcp::OutgoingRequest> hanging =
      std::make_shared<const mcp::VerbatimRequest>(tool_call("hang"));
  CallOptions unbounded;
  Result<rpc::Message> got = co_await connection->call(hanging, std::move(unbounded));
  answer = std::move(got);
}

// What decides whether a call that met its connection's end may be sent again.
TEST_F(PoolTest, a_call_that_never_left_is_known_from_one_that_did) {
  add(spec("a"));
  for (const bool leaves : {false, true}) {
    std::optional<Result<rpc::Message>> answer;
    std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
    ASSERT_TRUE(*lease);
    loop.post([&] {
      loop.spawn(forward_beside((*lease)->connection(), answer));
      if (!leaves) (*lease)->connection()->abort();
    });
    if (leaves) {
      ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
      (*lease)->connection()->abort();
    }
    ASSERT_TRUE(comes_true([&] { return answer.has_value(); }));
    ASSERT_FALSE(*answer);
    EXPECT_EQ(answer->error().detail().unsent, !leaves);
    lease.reset();
  }
}

TEST(Retry, only_what_reads_or_says_so_is_repeatable) {
  EXPECT_TRUE(repeatable("resources/read"));
  EXPECT_TRUE(repeatable("tools/list"));
  EXPECT_FALSE(repeatable("tools/call"));
  EXPECT_FALSE(repeatable("logging/setLevel"));
  EXPECT_TRUE(repeatable("tools/call", json::View(R"({"annotations":{"idempotentHint":true}})")));
  EXPECT_FALSE(repeatable("tools/call", json::View(R"({"annotations":{"readOnlyHint":false}})")));
}

TEST(Retry, the_mark_disturbs_nothing_else) {
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

TEST(Retry, MarkOfTheLargestAnswersDoesNotHoldTheLoop) {
  Loop loop;
  const Error reason(ErrorKind::closed, "gone");
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const rpc::Message answer = message(R"({"id":1,"jsonrpc":"2.0","result":{"a":)" + value + "}}");
    const std::string expected =
        R"({"a":)" + value + R"(,"_meta":{"fairlead/retried":{"attempts":2,"reason":"connection closed"}}})";
    test::expect_short_turns(loop, [&] {
      bool done = false;
      loop.post([&] {
        const rpc::Message marked = mark_retried(answer, 2, reason);
        EXPECT_EQ(marked.members().count(), 2u);
        EXPECT_TRUE(marked.result_text() == expected);
        done = true;
      });
      loop.run_until([&] { return done; });
    });
  }
}

}  // namespace
}  // namespace fairlead::pool
