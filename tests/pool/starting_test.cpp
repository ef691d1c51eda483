// Starts and restarts of servers. R10.1, R10.2, R10.4, R10.5.
#include "fairlead/connection/channel.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

TEST_F(PoolTest, ServerIsNotStartedBeforeFirstCall) {
  add(spec("a"));
  EXPECT_EQ(status("a").state, UpstreamState::idle);
  EXPECT_EQ(start_count("a"), 0u);
}

TEST_F(PoolTest, ThousandConcurrentCallsStartOneProcess) {
  add(spec("a", "gated"));
  std::vector<std::shared_ptr<BackgroundCall>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(begin_call("a", "pid"));
  ASSERT_TRUE(wait_until([&] { return status("a").waiting_caller_count == 1000; }));
  open_gate();
  std::set<std::string> answers;
  for (const auto& call : calls) answers.insert(finish_call(call));
  EXPECT_EQ(answers.size(), 1u) << *answers.begin();
  EXPECT_EQ(start_count("a"), 1u);
  EXPECT_EQ(pool->process_count(), 1u);
}

TEST_F(PoolTest, ThousandConcurrentCallsShareOneStartFailure) {
  add(spec("a", "dies_in_handshake"));
  std::vector<std::shared_ptr<BackgroundCall>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(begin_call("a", "pid"));
  for (const auto& call : calls) {
    finish_call(call);
    ASSERT_TRUE(call->answer && !*call->answer);
    const Error& error = call->answer->error();
    ASSERT_EQ(error.kind(), ErrorKind::process_exited) << error.to_string();
    ASSERT_EQ(error.detail().exit_status, 3);
    ASSERT_EQ(error.detail().stderr_lines, std::vector<std::string>{"cannot find my configuration"});
    ASSERT_EQ(error.detail().failure_code, failure::exited_in_handshake);
    ASSERT_EQ(error.detail().remedy, remedy_for(failure::exited_in_handshake));
  }
  EXPECT_EQ(start_count("a"), 1u);
}

TEST_F(PoolTest, CallFailsWithExitedInHandshakeForEveryRevision) {
  for (const std::optional<mcp::Revision> pinned :
       {std::optional<mcp::Revision>(), std::optional(mcp::Revision::r2025_06_18),
        std::optional(mcp::kNewestRevision)}) {
    ServerSpec leaving = spec("a");
    std::get<Program>(leaving.transport).command = "false";
    leaving.pinned_revision = pinned;
    open_pool();
    add(leaving);
    const Result<rpc::Message> answer = call("a", "pid");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited) << answer.error().to_string();
    EXPECT_EQ(answer.error().detail().failure_code, failure::exited_in_handshake);
    EXPECT_EQ(answer.error().detail().exit_status, 1);
  }
}

TEST_F(PoolTest, MissingCommandFailsWithConnectionFailed) {
  ServerSpec missing = spec("a");
  std::get<Program>(missing.transport).command = "no-such-program-anywhere";
  add(missing);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(answer.error().detail().failure_code, failure::command_not_found);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::command_not_found));
  EXPECT_NE(answer.error().message().find("no-such-program-anywhere"), std::string::npos);
  EXPECT_EQ(status("a").state, UpstreamState::backing_off);
  EXPECT_EQ(status("a").last_error->kind(), ErrorKind::connection_failed);
}

TEST_F(PoolTest, AddressWithoutListenerFailsWithCodeAndRemedy) {
  ServerSpec unreachable = spec("a");
  unreachable.transport = Address{"http://127.0.0.1:1/mcp", {}};
  add(unreachable);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::connection_failed) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().failure_code, failure::connection_failed);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::connection_failed));
}

TEST_F(PoolTest, HandshakeTimesOutWhenServerNeverReads) {
  ServerSpec deaf = spec("a", "never_reads");
  deaf.clocks.handshake = 200ms;
  add(deaf);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().failure_code, failure::handshake_timeout);
  EXPECT_EQ(answer.error().detail().waited, 200ms) << "one timeout for all requests of the handshake";
  EXPECT_EQ(surviving_process_count(), 0u) << "it is stopped before the call fails";
}

TEST_F(PoolTest, ProgramThatIsNoServerFailsWithCommandLineAndRemedy) {
  const std::pair<std::string, std::string_view> programs[] = {
      {"cat", failure::handshake_failed},  // echoes its input
      {"yes", failure::noise_on_stdout}};
  for (const auto& [program, code] : programs) {
    ServerSpec wrong = spec(program);
    std::get<Program>(wrong.transport).command = program;
    std::get<Program>(wrong.transport).args.clear();
    add(wrong);
    const Result<rpc::Message> answer = call(program, "pid");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().detail().failure_code, code) << answer.error().to_string();
    EXPECT_EQ(answer.error().detail().remedy, remedy_for(code));
    EXPECT_NE(answer.error().detail().command_line.find(program), std::string::npos);
  }
}

// A connector that does not return before `released` is set.
Task<ConnectResult> connect_when(Loop& on, std::shared_ptr<Event> released) {
  static_cast<void>(co_await released->wait(on, kTestTimeout));
  co_return Error(ErrorKind::connection_failed, "too late");
}

TEST_F(PoolTest, StartFailsWithSpawnTimeoutWhenConnectorNeverConnects) {
  const auto released = std::make_shared<Event>();
  ServerSpec slow = spec("a");
  slow.clocks.spawn = 50ms;
  connect_by(slow, [released](Loop& on, StreamConnectOptions) { return connect_when(on, released); });
  add(slow);
  const Result<rpc::Message> answer = call("a", "pid");
  released->set();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(answer.error().detail().failure_code, failure::spawn_timeout);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::spawn_timeout));
}

TEST_F(PoolTest, BannerOnStdoutIsTolerated) {
  add(spec("a", "banner"));
  EXPECT_GT(pid_of("a"), 0);
}

TEST_F(PoolTest, ModernServerIsUsedWithoutInitialize) {
  add(spec("a", "modern"));
  EXPECT_GT(pid_of("a"), 0);
  EXPECT_EQ(journal_lines("a", "got \"initialize\""), 0u);
}

TEST_F(PoolTest, CancelledCallDoesNotWaitForStart) {
  add(spec("a", "gated"));
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  const auto cancelled = begin_call("a", "pid", call_options);
  const auto patient = begin_call("a", "pid");
  ASSERT_TRUE(wait_until([&] { return status("a").waiting_caller_count == 2; }));
  stop.request_stop();
  EXPECT_TRUE(finish_call(cancelled).starts_with("<cancelled")) << finish_call(cancelled);
  EXPECT_FALSE(patient->answer);
  open_gate();
  EXPECT_FALSE(finish_call(patient).starts_with("<"));
}

TEST_F(PoolTest, IdleProcessThatWasKilledIsRestartedByNextCall) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  ::kill(before, SIGKILL);
  ASSERT_TRUE(wait_until([&] { return status("a").state != UpstreamState::ready; }))
      << "the end was not detected";
  EXPECT_FALSE(status("a").healthy);
  const Result<rpc::Message> answer = call("a", "pid");
  EXPECT_NE(text_of(answer), std::to_string(before));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->frame().view().find(kRetriedKey), std::string::npos) << "it was not retried";
  EXPECT_EQ(start_count("a"), 2u);
  EXPECT_EQ(status("a").generation, 2u);
}

// The call is made before the pool has noticed the end of the process: it must not hang, and is answered by a
// retry.
TEST_F(PoolTest, RepeatableCallIsRetriedWhenProcessIsDying) {
  add(spec("a"));
  for (int i = 0; i < 4; ++i) {
    const pid_t before = pid_of("a");
    ::kill(before, SIGKILL);
    const std::string text = text_of(call("a", "pid", repeatable_call()));
    EXPECT_FALSE(text.starts_with("<")) << text;
    EXPECT_NE(text, std::to_string(before));
    ASSERT_TRUE(pool->remove("a"));  // resets the failure count
    add(spec("a"));
  }
}

TEST_F(PoolTest, ServerThatExitsAfterEachCallHasNotFailed) {
  add(spec("a"));
  for (int i = 0; i < 10; ++i) {
    const std::string text = text_of(call("a", "exit"));
    ASSERT_FALSE(text.starts_with("<")) << text;
    ASSERT_TRUE(reaches("a", UpstreamState::idle)) << to_string(status("a").state);
  }
  EXPECT_EQ(status("a").consecutive_failures, 0u);
  EXPECT_EQ(start_count("a"), 10u);
}

TEST_F(PoolTest, CallInCrashLoopFailsWithRetryAfterAndStartsNothing) {
  ServerSpec bad = spec("a", "dies_in_handshake");
  bad.restart.crash_loop_after = 2;
  add(bad);
  EXPECT_FALSE(call("a", "pid"));
  EXPECT_FALSE(call("a", "pid"));
  EXPECT_EQ(status("a").state, UpstreamState::crash_loop);
  const std::size_t before = start_count("a");
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited);
  EXPECT_NE(answer.error().message().find("2 times in a row"), std::string::npos)
      << answer.error().to_string();
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 50s);
  EXPECT_EQ(answer.error().detail().stderr_lines.size(), 1u) << "the last line of stderr";
  EXPECT_EQ(start_count("a"), before);
}

TEST_F(PoolTest, CrashesWithAnsweredCallsInBetweenAreNoCrashLoop) {
  ServerSpec weak = spec("a");
  weak.restart.tool_crash_after = 0;
  add(weak);
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(call("a", "crash"));
    const std::string text = text_of(call("a", "pid"));
    ASSERT_FALSE(text.starts_with("<")) << text << " after crash " << i + 1;
  }
  EXPECT_EQ(status("a").consecutive_failures, 0u);
}

TEST_F(PoolTest, ToolThatEndsTheProcessRepeatedlyIsRefusedWhileOthersAreServed) {
  add(spec("a"));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(call("a", "crash"));
  const std::size_t before = journal_lines("a", "got \"tools/call\"");
  const Result<rpc::Message> refused = call("a", "crash");
  ASSERT_FALSE(refused);
  EXPECT_EQ(journal_lines("a", "got \"tools/call\""), before) << "the call was sent";
  EXPECT_NE(refused.error().message().find("tool crash ended the process of server a 3 times in a row"),
            std::string::npos)
      << refused.error().to_string();
  EXPECT_EQ(refused.error().detail().failure_code, failure::tool_crashes);
  EXPECT_EQ(refused.error().detail().remedy, remedy_for(failure::tool_crashes));
  EXPECT_GT(refused.error().detail().retry_after.value_or(0ms), 50s);
  EXPECT_EQ(refused.error().detail().stderr_lines, std::vector<std::string>{"out of cheese"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(pid_of("a"), 0);
    EXPECT_FALSE(call("a", "crash"));
  }
  EXPECT_EQ(start_count("a"), 4u);
}

TEST_F(PoolTest, RefusedToolIsCalledAgainAfterPause) {
  ServerSpec brief = spec("a");
  brief.restart.tool_crash_after = 1;
  brief.restart.tool_crash_pause = 1ms;
  add(brief);
  EXPECT_FALSE(call("a", "crash"));
  EXPECT_TRUE(wait_until(
      [&] { return journal_lines("a", "got \"tools/call\"") == 2 || (begin_call("a", "crash"), false); }));
}

TEST_F(PoolTest, CrashWithSeveralActiveToolsCountsForEachOfThem) {
  ServerSpec weak = spec("a");
  weak.restart.tool_crash_after = 2;
  add(weak);
  for (int i = 0; i < 2; ++i) {
    const auto innocent = begin_call("a", "hang");
    ASSERT_TRUE(wait_until([&] { return status("a").active_call_count == 1; }));
    EXPECT_FALSE(call("a", i == 0 ? "crash" : "progress_crash"));
    finish_call(innocent);
    EXPECT_GT(pid_of("a"), 0);
  }
  EXPECT_NE(text_of(call("a", "hang")).find("tool hang ended the process"), std::string::npos)
      << "it is unknown which tool ended the process";
  EXPECT_GT(pid_of("a"), 0);
}

TEST_F(PoolTest, KeepRunningServerStartsAtOnceAndAfterCrash) {
  ServerSpec kept = spec("a");
  kept.keep_running = true;
  add(kept);
  ASSERT_TRUE(reaches("a", UpstreamState::ready));
  const pid_t before = pid_of("a");
  ::kill(before, SIGKILL);
  ASSERT_TRUE(
      wait_until([&] { return status("a").generation == 2 && status("a").state == UpstreamState::ready; }));
  EXPECT_EQ(start_count("a"), 2u);
}

TEST_F(PoolTest, IdleServerIsStoppedAndRestartedByNextCall) {
  ServerSpec brief = spec("a");
  brief.clocks.idle_stop = 1ms;
  add(brief);
  const pid_t before = pid_of("a");
  ASSERT_TRUE(reaches("a", UpstreamState::idle));
  EXPECT_EQ(surviving_process_count(), 0u);
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, WarmStartsServerAndReturnsOutcome) {
  add(spec("a"));
  add(spec("b", "dies_in_handshake"));
  EXPECT_TRUE(loop.block_on(pool->warm(Target("a"))));
  EXPECT_EQ(status("a").state, UpstreamState::ready);
  EXPECT_FALSE(loop.block_on(pool->warm(Target("b"))));
}

// The era of a server is cached: probing a legacy server that does not answer server/discover costs seconds.
TEST_F(PoolTest, LegacyServerIsProbedOnlyAtFirstStart) {
  add(spec("a"));
  pid_of("a");
  EXPECT_EQ(journal_lines("a", "got \"server/discover\""), 1u);
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(start_count("a"), 2u);
  EXPECT_EQ(journal_lines("a", "got \"server/discover\""), 1u);
}

TEST_F(PoolTest, LegacyServerIsProbedAgainWhenEraExpires) {
  options.client.era_max_age = 0ms;
  add(spec("a"));
  pid_of("a");
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(journal_lines("a", "got \"server/discover\""), 2u);
}

TEST_F(PoolTest, LegacyServerIsProbedAgainAfterItsVersionChanged) {
  add(spec("a", "versions"));
  for (const std::size_t probes : {1u, 1u, 2u}) {
    pid_of("a");
    EXPECT_EQ(journal_lines("a", "got \"server/discover\""), probes);
    EXPECT_FALSE(call("a", "crash"));
  }
}

TEST_F(PoolTest, ServerThatRejectsInitializeAfterProbeIsRestartedWithoutProbe) {
  add(spec("a", "one_session"));
  pid_of("a");
  EXPECT_EQ(start_count("a"), 2u);
  EXPECT_EQ(journal_lines("a", "got \"server/discover\""), 1u);
  EXPECT_EQ(status("a").consecutive_failures, 0u);
  EXPECT_FALSE(call("a", "crash"));
  pid_of("a");
  EXPECT_EQ(start_count("a"), 3u);
  EXPECT_EQ(journal_lines("a", "got \"server/discover\""), 1u);
}

TEST_F(PoolTest, EveryTransitionIsReported) {
  add(spec("a"));
  pid_of("a");
  EXPECT_EQ(changes,
            (std::vector<std::string>{"a idle>starting", "a starting>handshaking", "a handshaking>ready"}));
  EXPECT_TRUE(status("a").healthy);
  EXPECT_EQ(status("a").history.size(), 3u);
}

TEST_F(PoolTest, ConnectorIsUsedAndNeedsNoProcess) {
  std::shared_ptr<Connection> server_end;
  ServerSpec own = spec("a");
  own.clocks.handshake = 100ms;
  connect_by(own, [&](Loop& on, StreamConnectOptions) -> Task<ConnectResult> {
    auto [client, server] = make_channel(on, on);
    server_end = server;
    const auto connected = [](std::shared_ptr<Connection> end) -> Task<ConnectResult> { co_return end; };
    return connected(client);
  });
  add(own);
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(pool->process_count(), 0u);
}

// An HTTP server on the same loop.
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

TEST_F(PoolTest, HttpServerIsUsedAndItsEndIsDetected) {
  HttpUpstream http(loop);
  ServerSpec remote = spec("a");
  remote.transport = Address{"http://" + http.listener->address() + "/mcp", {}};
  remote.pinned_revision = mcp::kNewestLegacyRevision;
  add(remote);
  EXPECT_EQ(text_of(call("a", "hello")), "world");
  EXPECT_EQ(pool->process_count(), 0u);
  EXPECT_TRUE(status("a").healthy);
  http.listener->set_drain_grace(10ms);  // for the event stream, which does not end on its own
  loop.block_on(http.listener->drain());
  http.close();
  EXPECT_FALSE(call("a", "hello"));
  EXPECT_TRUE(wait_until([&] { return status("a").state != UpstreamState::ready; }))
      << "the end was not detected";
}

Task<ConnectResult> connect_and_note(Loop& on, ProcessSpec process, StreamConnectOptions call_options,
                                     std::weak_ptr<Connection>* made) {
  const ConnectResult connected = co_await connect_child(on, std::move(process), std::move(call_options));
  if (connected) *made = *connected;
  co_return connected;
}

TEST_F(PoolTest, DestroyedPoolLeavesNoProcess) {
  ServerSpec child = spec("a");
  ProcessSpec process;
  process.command = std::get<Program>(child.transport).command;
  process.args = std::get<Program>(child.transport).args;
  process.env = std::get<Program>(child.transport).env;
  std::weak_ptr<Connection> connection;
  connect_by(child, [&](Loop& on, StreamConnectOptions call_options) {
    return connect_and_note(on, process, std::move(call_options), &connection);
  });
  add(child);
  std::optional<Result<Lease>> lease = loop.block_on(pool->acquire(Target("a"), {}));
  ASSERT_TRUE(*lease);
  EXPECT_FALSE(connection.expired());
  lease.reset();
  pool.reset();
  EXPECT_TRUE(wait_until([&] { return connection.expired(); }));
  EXPECT_EQ(surviving_process_count(), 0u);
}

}  // namespace
}  // namespace fairlead::pool
