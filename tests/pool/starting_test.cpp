// Servers are started once, whoever calls, and come back when they die. R10.1, R10.2, R10.4, R10.5.
#include "fairlead/connection/channel.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

TEST_F(PoolTest, nothing_is_started_before_it_is_wanted) {
  add(spec("a"));
  EXPECT_EQ(status("a").state, State::idle);
  EXPECT_EQ(starts("a"), 0u);
}

TEST_F(PoolTest, a_thousand_first_calls_start_one_process) {
  add(spec("a", "gated"));
  std::vector<std::shared_ptr<Beside>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(begin("a", "pid"));
  ASSERT_TRUE(comes_true([&] { return status("a").waiting == 1000; }));
  open_gate();
  std::set<std::string> answers;
  for (const auto& one : calls) answers.insert(finish(one));
  EXPECT_EQ(answers.size(), 1u) << *answers.begin();
  EXPECT_EQ(starts("a"), 1u);
  EXPECT_EQ(pool->processes(), 1u);
}

TEST_F(PoolTest, a_thousand_first_calls_share_one_failure_with_its_last_words) {
  add(spec("a", "dies_in_handshake"));
  std::vector<std::shared_ptr<Beside>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(begin("a", "pid"));
  for (const auto& one : calls) {
    finish(one);
    ASSERT_TRUE(one->answer && !*one->answer);
    const Error& error = one->answer->error();
    ASSERT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
    ASSERT_EQ(error.detail().exit_status, 3);
    ASSERT_EQ(error.detail().stderr_lines, std::vector<std::string>{"cannot find my configuration"});
    ASSERT_EQ(error.detail().code, failure::exited_in_handshake);
    ASSERT_EQ(error.detail().remedy, remedy_for(failure::exited_in_handshake));
  }
  EXPECT_EQ(starts("a"), 1u);
}

TEST_F(PoolTest, a_server_that_ends_before_it_has_answered_says_so_whatever_it_is_asked) {
  for (const std::optional<mcp::Revision> pinned :
       {std::optional<mcp::Revision>(), std::optional(mcp::Revision::r2025_06_18),
        std::optional(mcp::kNewest)}) {
    ServerSpec leaving = spec("a");
    std::get<Program>(leaving.reach).command = "false";
    leaving.pinned = pinned;
    open_pool();
    add(leaving);
    const Result<rpc::Message> answer = call("a", "pid");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited) << answer.error().to_string();
    EXPECT_EQ(answer.error().detail().code, failure::exited_in_handshake);
    EXPECT_EQ(answer.error().detail().exit_status, 1);
  }
}

TEST_F(PoolTest, a_command_that_is_not_there_is_a_connection_that_failed) {
  ServerSpec missing = spec("a");
  std::get<Program>(missing.reach).command = "no-such-program-anywhere";
  add(missing);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(answer.error().detail().code, failure::command_not_found);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::command_not_found));
  EXPECT_NE(answer.error().message().find("no-such-program-anywhere"), std::string::npos);
  EXPECT_EQ(status("a").state, State::backing_off);
  EXPECT_EQ(status("a").last_error->kind(), ErrorKind::connection_failed);
}

TEST_F(PoolTest, an_address_where_nobody_listens_fails_with_code_and_remedy) {
  ServerSpec nobody = spec("a");
  nobody.reach = Address{"http://127.0.0.1:1/mcp", {}};
  add(nobody);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::connection_failed) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().code, failure::connection_failed);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::connection_failed));
}

TEST_F(PoolTest, a_server_that_never_reads_fails_by_the_handshakes_clock) {
  ServerSpec deaf = spec("a", "never_reads");
  deaf.clocks.handshake = 200ms;
  add(deaf);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().code, failure::handshake_timeout);
  EXPECT_EQ(answer.error().detail().after, 200ms) << "all of it, however many questions it was asked";
  EXPECT_EQ(survivors(), 0u) << "it is stopped before the call fails";
}

TEST_F(PoolTest, a_program_that_is_no_server_is_told_of_with_its_command_and_a_remedy) {
  const std::pair<std::string, std::string_view> programs[] = {
      {"cat", failure::handshake_failed},  // repeats what it is told
      {"yes", failure::noise_on_stdout}};
  for (const auto& [program, code] : programs) {
    ServerSpec wrong = spec(program);
    std::get<Program>(wrong.reach).command = program;
    std::get<Program>(wrong.reach).args.clear();
    add(wrong);
    const Result<rpc::Message> answer = call(program, "pid");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().detail().code, code) << answer.error().to_string();
    EXPECT_EQ(answer.error().detail().remedy, remedy_for(code));
    EXPECT_NE(answer.error().detail().command_line.find(program), std::string::npos);
  }
}

// Somebody who takes his time to connect: until he is told to.
Task<ConnectResult> connect_when(Loop& on, std::shared_ptr<Event> told) {
  const bool woken = co_await told->wait(on, kPatience);
  static_cast<void>(woken);
  co_return Error(ErrorKind::connection_failed, "too late");
}

TEST_F(PoolTest, a_connection_that_is_never_made_fails_by_the_spawns_clock_with_a_remedy) {
  const auto told = std::make_shared<Event>();
  ServerSpec slow = spec("a");
  slow.clocks.spawn = 50ms;
  connect_by(slow, [told](Loop& on, ConnectOptions) { return connect_when(on, told); });
  add(slow);
  const Result<rpc::Message> answer = call("a", "pid");
  told->set();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().code, failure::spawn_timeout);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::spawn_timeout));
}

TEST_F(PoolTest, a_banner_on_stdout_is_borne) {
  add(spec("a", "banner"));
  EXPECT_GT(pid_of("a"), 0);
}

TEST_F(PoolTest, a_modern_server_is_served_like_any_other) {
  add(spec("a", "modern"));
  EXPECT_GT(pid_of("a"), 0);
  EXPECT_EQ(noted("a", "got \"initialize\""), 0u);
}

TEST_F(PoolTest, a_call_that_is_given_up_does_not_wait_for_the_start) {
  add(spec("a", "gated"));
  std::stop_source stop;
  ForwardOptions how;
  how.stop = stop.get_token();
  const auto given_up = begin("a", "pid", how);
  const auto patient = begin("a", "pid");
  ASSERT_TRUE(comes_true([&] { return status("a").waiting == 2; }));
  stop.request_stop();
  EXPECT_TRUE(finish(given_up).starts_with("<cancelled")) << finish(given_up);
  EXPECT_FALSE(patient->answer);
  open_gate();
  EXPECT_FALSE(finish(patient).starts_with("<"));
}

TEST_F(PoolTest, a_child_killed_while_idle_is_started_again_by_the_next_call) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  ::kill(before, SIGKILL);
  ASSERT_TRUE(comes_true([&] { return status("a").state != State::ready; })) << "its health lies";
  EXPECT_FALSE(status("a").healthy);
  const Result<rpc::Message> answer = call("a", "pid");
  EXPECT_NE(text_of(answer), std::to_string(before));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->frame().view().find(kRetriedKey), std::string::npos) << "it was sent only once";
  EXPECT_EQ(starts("a"), 2u);
  EXPECT_EQ(status("a").generation, 2u);
}

// The same without waiting until the death is noticed: nothing may hang, and what may be repeated is
// answered.
TEST_F(PoolTest, a_call_that_meets_a_dying_child_is_sent_once_more) {
  add(spec("a"));
  for (int i = 0; i < 4; ++i) {
    const pid_t before = pid_of("a");
    ::kill(before, SIGKILL);
    const std::string text = text_of(call("a", "pid", repeatable_call()));
    EXPECT_FALSE(text.starts_with("<")) << text;
    EXPECT_NE(text, std::to_string(before));
    ASSERT_TRUE(pool->remove("a"));  // with its failures
    add(spec("a"));
  }
}

TEST_F(PoolTest, a_server_that_exits_after_each_call_serves_on_and_has_not_failed) {
  add(spec("a"));
  for (int i = 0; i < 10; ++i) {
    const std::string text = text_of(call("a", "exit"));
    ASSERT_FALSE(text.starts_with("<")) << text;
    ASSERT_TRUE(reaches("a", State::idle)) << to_string(status("a").state);
  }
  EXPECT_EQ(status("a").failures, 0u);
  EXPECT_EQ(starts("a"), 10u);
}

TEST_F(PoolTest, a_crash_loop_is_refused_without_another_start_and_says_until_when) {
  ServerSpec bad = spec("a", "dies_in_handshake");
  bad.restart.crash_loop_after = 2;
  add(bad);
  EXPECT_FALSE(call("a", "pid"));
  EXPECT_FALSE(call("a", "pid"));
  EXPECT_EQ(status("a").state, State::crash_loop);
  const std::size_t before = starts("a");
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited);
  EXPECT_NE(answer.error().message().find("2 times in a row"), std::string::npos)
      << answer.error().to_string();
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 50s);
  EXPECT_EQ(answer.error().detail().stderr_lines.size(), 1u) << "the last words";
  EXPECT_EQ(starts("a"), before);
}

TEST_F(PoolTest, CrashesWithAnsweredCallsBetweenThemAreNoCrashLoop) {
  ServerSpec weak = spec("a");
  weak.restart.tool_crash_after = 0;
  add(weak);
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(call("a", "crash"));
    const std::string text = text_of(call("a", "pid"));
    ASSERT_FALSE(text.starts_with("<")) << text << " after crash " << i + 1;
  }
  EXPECT_EQ(status("a").failures, 0u);
}

TEST_F(PoolTest, ToolThatEndsTheProcessRepeatedlyIsRefusedWhileOthersAreServed) {
  add(spec("a"));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(call("a", "crash"));
  const std::size_t before = noted("a", "got \"tools/call\"");
  const Result<rpc::Message> refused = call("a", "crash");
  ASSERT_FALSE(refused);
  EXPECT_EQ(noted("a", "got \"tools/call\""), before) << "it was sent";
  EXPECT_NE(refused.error().message().find("tool crash ended the process of server a 3 times in a row"),
            std::string::npos)
      << refused.error().to_string();
  EXPECT_EQ(refused.error().detail().code, failure::tool_crashes);
  EXPECT_EQ(refused.error().detail().remedy, remedy_for(failure::tool_crashes));
  EXPECT_GT(refused.error().detail().retry_after.value_or(0ms), 50s);
  EXPECT_EQ(refused.error().detail().stderr_lines, std::vector<std::string>{"out of cheese"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(pid_of("a"), 0);
    EXPECT_FALSE(call("a", "crash"));
  }
  EXPECT_EQ(starts("a"), 4u);
}

TEST_F(PoolTest, RefusedToolIsTriedAgainAfterThePause) {
  ServerSpec brief = spec("a");
  brief.restart.tool_crash_after = 1;
  brief.restart.tool_crash_pause = 1ms;
  add(brief);
  EXPECT_FALSE(call("a", "crash"));
  EXPECT_TRUE(
      comes_true([&] { return noted("a", "got \"tools/call\"") == 2 || (begin("a", "crash"), false); }));
}

TEST_F(PoolTest, CrashWithSeveralToolsUnderWayCountsForEachOfThem) {
  ServerSpec weak = spec("a");
  weak.restart.tool_crash_after = 2;
  add(weak);
  for (int i = 0; i < 2; ++i) {
    const auto innocent = begin("a", "hang");
    ASSERT_TRUE(comes_true([&] { return status("a").calls == 1; }));
    EXPECT_FALSE(call("a", i == 0 ? "crash" : "progress_crash"));
    finish(innocent);
    EXPECT_GT(pid_of("a"), 0);
  }
  EXPECT_NE(text_of(call("a", "hang")).find("tool hang ended the process"), std::string::npos)
      << "nobody can tell which of them it was";
  EXPECT_GT(pid_of("a"), 0);
}

TEST_F(PoolTest, a_server_to_be_kept_running_starts_by_itself_and_again_after_its_death) {
  ServerSpec kept = spec("a");
  kept.keep_running = true;
  add(kept);
  ASSERT_TRUE(reaches("a", State::ready));
  const pid_t before = pid_of("a");
  ::kill(before, SIGKILL);
  ASSERT_TRUE(comes_true([&] { return status("a").generation == 2 && status("a").state == State::ready; }));
  EXPECT_EQ(starts("a"), 2u);
}

TEST_F(PoolTest, an_idle_server_is_stopped_and_started_again_when_wanted) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  add(brief);
  const pid_t before = pid_of("a");
  ASSERT_TRUE(reaches("a", State::idle));
  EXPECT_EQ(survivors(), 0u);
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, warming_starts_it_and_tells_how_that_went) {
  add(spec("a"));
  add(spec("b", "dies_in_handshake"));
  EXPECT_TRUE(loop.block_on(pool->warm(Target("a"))));
  EXPECT_EQ(status("a").state, State::ready);
  EXPECT_FALSE(loop.block_on(pool->warm(Target("b"))));
}

// What a legacy server spoke is remembered: one that does not answer the modern question costs seconds
// otherwise.
TEST_F(PoolTest, a_legacy_server_is_not_probed_again) {
  add(spec("a"));
  pid_of("a");
  EXPECT_EQ(noted("a", "got \"server/discover\""), 1u);
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(starts("a"), 2u);
  EXPECT_EQ(noted("a", "got \"server/discover\""), 1u);
}

TEST_F(PoolTest, a_legacy_server_is_probed_again_when_the_last_probe_is_too_old) {
  options.client.era_max_age = 0ms;
  add(spec("a"));
  pid_of("a");
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(noted("a", "got \"server/discover\""), 2u);
}

TEST_F(PoolTest, a_legacy_server_is_probed_again_at_the_start_after_its_version_changed) {
  add(spec("a", "versions"));
  for (const std::size_t probes : {1u, 1u, 2u}) {
    pid_of("a");
    EXPECT_EQ(noted("a", "got \"server/discover\""), probes);
    EXPECT_FALSE(call("a", "crash"));
  }
}

TEST_F(PoolTest, a_server_that_refuses_initialize_after_a_probe_is_started_again_and_not_probed_any_more) {
  add(spec("a", "one_session"));
  pid_of("a");
  EXPECT_EQ(starts("a"), 2u);
  EXPECT_EQ(noted("a", "got \"server/discover\""), 1u);
  EXPECT_EQ(status("a").failures, 0u);
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(starts("a"), 3u);
  EXPECT_EQ(noted("a", "got \"server/discover\""), 1u);
}

TEST_F(PoolTest, every_transition_is_told) {
  add(spec("a"));
  pid_of("a");
  EXPECT_EQ(changes,
            (std::vector<std::string>{"a idle>starting", "a starting>handshaking", "a handshaking>ready"}));
  EXPECT_TRUE(status("a").healthy);
  EXPECT_EQ(status("a").history.size(), 3u);
}

TEST_F(PoolTest, a_connector_reaches_what_is_neither_program_nor_address) {
  std::shared_ptr<Connection> far;
  ServerSpec own = spec("a");
  own.clocks.handshake = 100ms;
  connect_by(own, [&](Loop& on, ConnectOptions) -> Task<ConnectResult> {
    auto [near, other] = make_channel(on, on);
    far = other;
    const auto made = [](std::shared_ptr<Connection> end) -> Task<ConnectResult> { co_return end; };
    return made(near);
  });
  add(own);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(pool->processes(), 0u);
}

// An HTTP server of our own, on the same loop.
struct HttpUpstream {
  explicit HttpUpstream(Loop& loop) {
    mcp::ToolSpec tool;
    tool.name = "hello";
    EXPECT_TRUE(server.add_tool(tool, mcp::Server::PlainTool([](const mcp::Context&, json::View) {
                                  return mcp::ToolResult::text("world");
                                })));
    endpoint = transport::Endpoint::create(loop, mcp::http_application(server), transport::EndpointOptions());
    Result<std::shared_ptr<http::Server>> listening = http::Server::listen(loop, "127.0.0.1:0");
    EXPECT_TRUE(listening);
    listener = *listening;
    listener->route("/mcp", endpoint->handler());
  }
  void close() {
    listener->close();
    endpoint->close();
  }

  mcp::Server server{"test", "1"};
  std::shared_ptr<transport::Endpoint> endpoint;
  std::shared_ptr<http::Server> listener;
};

TEST_F(PoolTest, a_server_behind_http_is_an_upstream_like_any_other_and_its_death_is_noticed) {
  HttpUpstream far(loop);
  ServerSpec remote = spec("a");
  remote.reach = Address{"http://" + far.listener->address() + "/mcp", {}};
  remote.pinned = mcp::kNewestLegacy;
  add(remote);
  EXPECT_EQ(text_of(call("a", "hello")), "world");
  EXPECT_EQ(pool->processes(), 0u);
  EXPECT_TRUE(status("a").healthy);
  loop.block_on(far.listener->drain());
  far.close();
  EXPECT_FALSE(call("a", "hello"));
  EXPECT_TRUE(comes_true([&] { return status("a").state != State::ready; })) << "its health lies";
}

Task<ConnectResult> connect_and_note(Loop& on, ProcessSpec process, ConnectOptions how,
                                     std::weak_ptr<Connection>* made) {
  Task<ConnectResult> connecting = connect_child(on, std::move(process), std::move(how));
  const ConnectResult connected = co_await connecting;
  if (connected) *made = *connected;
  co_return connected;
}

TEST_F(PoolTest, a_pool_that_is_dropped_leaves_nothing_running) {
  ServerSpec child = spec("a");
  ProcessSpec process;
  process.command = std::get<Program>(child.reach).command;
  process.args = std::get<Program>(child.reach).args;
  process.env = std::get<Program>(child.reach).env;
  std::weak_ptr<Connection> connection;
  connect_by(child, [&](Loop& on, ConnectOptions how) {
    return connect_and_note(on, process, std::move(how), &connection);
  });
  add(child);
  std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*lease);
  EXPECT_FALSE(connection.expired());
  lease.reset();
  pool.reset();
  EXPECT_TRUE(comes_true([&] { return connection.expired(); }));
  EXPECT_EQ(survivors(), 0u);
}

}  // namespace
}  // namespace fairlead::pool
