// Sharing of processes between sessions and users; removal, disabling and update of servers. R10.6.
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

TEST_F(PoolTest, SessionsShareServerByDefault) {
  add(spec("a"));
  EXPECT_EQ(pid_of("a", "s1", "u1"), pid_of("a", "s2", "u2"));
}

TEST_F(PoolTest, PerSessionServerHasOneProcessPerSession) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  const pid_t first = pid_of("a", "s1", "u");
  EXPECT_NE(pid_of("a", "s2", "u"), first);
  EXPECT_EQ(pid_of("a", "s1", "u"), first);
  EXPECT_EQ(pool->process_count(), 2u);
}

TEST_F(PoolTest, UsersWithoutSessionDoNotShareAPerSessionServer) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  const pid_t of_ann = pid_of("a", "", "ann");
  EXPECT_NE(pid_of("a", "", "bob"), of_ann);
  EXPECT_NE(pid_of("a", "s1", "ann"), of_ann);
  EXPECT_NE(pid_of("a"), of_ann) << "no user";
  EXPECT_EQ(pid_of("a", "", "ann"), of_ann);
  EXPECT_EQ(pool->process_count(), 4u);
}

TEST_F(PoolTest, EndOfSessionStopsItsProcess) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  pid_of("a", "s1");
  const pid_t second = pid_of("a", "s2");
  loop.block_on(pool->end_sessions({"s1"}));
  EXPECT_TRUE(wait_until([&] { return surviving_process_count() == 1; }));
  EXPECT_EQ(pid_of("a", "s2"), second);
  EXPECT_TRUE(wait_until([&] { return pool->status().size() == 1; })) << "its upstream is erased";
}

TEST_F(PoolTest, UpstreamOfSessionIsErasedAfterIdleStop) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  own.clocks.idle_stop = 1ms;
  add(own);
  pid_of("a", "s1");
  EXPECT_TRUE(wait_until([&] { return pool->status().front().key.empty(); }));
}

TEST_F(PoolTest, CallCancelledAtEndOfSessionLeavesNoUpstream) {
  ServerSpec own = spec("a", "gated");
  own.sharing = Sharing::per_session;
  add(own);
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  const auto waiting = begin_call("a", "pid", call_options, "s1");
  ASSERT_TRUE(wait_until([&] { return start_count("a") == 1; }));
  stop.request_stop();
  loop.block_on(pool->end_sessions({"s1"}));
  finish_call(waiting);
  EXPECT_TRUE(wait_until([&] {
    const auto all = pool->status();
    return all.size() == 1 && all.front().key.empty();
  }));
}

TEST_F(PoolTest, PerUserServerHasOneProcessPerUser) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_user;
  add(own);
  const pid_t first = pid_of("a", "s1", "u1");
  EXPECT_EQ(pid_of("a", "s2", "u1"), first);
  EXPECT_NE(pid_of("a", "s1", "u2"), first);
}

Task<ConnectResult> fail_later(Loop& loop, std::shared_ptr<int> attempts) {
  ++*attempts;
  co_await sleep_for(loop, 1ms);
  co_return Error(ErrorKind::connection_failed, "unreachable");
}

// The upstream of a session or a user is erased when it is inactive, also after a failed start.
TEST_F(PoolTest, ServerThatFailsToStartIsStartedOnceForACallWhateverItsSharing) {
  for (const Sharing sharing : {Sharing::shared, Sharing::per_session, Sharing::per_user}) {
    const auto attempts = std::make_shared<int>(0);
    ServerSpec failing = spec("a" + std::to_string(static_cast<int>(sharing)));
    failing.sharing = sharing;
    connect_by(failing,
               [attempts](Loop& on, const StreamConnectOptions&) { return fail_later(on, attempts); });
    add(failing);
    EXPECT_FALSE(call(failing.name, "pid", {}, "s", "u"));
    EXPECT_EQ(*attempts, 1) << static_cast<int>(sharing);
  }
}

// A handler that answers the requests of a server and records the sessions of the active calls.
struct RequestRecorder {
  std::vector<std::string> sessions;
  static Task<Answer> respond() { co_return test::raw(R"({"role":"assistant"})"); }
  Task<Answer> operator()(const std::shared_ptr<Upstream>& upstream, const Request&) {
    for (const ActiveCallInfo& call : upstream->active_calls()) sessions.push_back(call.session);
    return respond();
  }
};

TEST_F(PoolTest, RequestOfServerReachesHandlerWithActiveCalls) {
  auto recorder = std::make_shared<RequestRecorder>();
  options.handlers.on_request = [recorder](std::shared_ptr<Upstream> upstream, Request request) {
    return (*recorder)(upstream, request);
  };
  options.handlers.capabilities_for = [](const Upstream&) { return test::raw(R"({"sampling":{}})"); };
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "sample", {}, "s1");
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(), kEcho);
  EXPECT_EQ(recorder->sessions, std::vector<std::string>{"s1"});
}

TEST_F(PoolTest, ServerThatSendsSamplingRequestIsUnshared) {
  auto recorder = std::make_shared<RequestRecorder>();
  options.handlers.on_request = [recorder](std::shared_ptr<Upstream> upstream, Request request) {
    return (*recorder)(upstream, request);
  };
  add(spec("a"));
  const pid_t first = pid_of("a", "s1");
  ASSERT_TRUE(call("a", "sample", {}, "s1"));
  EXPECT_EQ(pid_of("a", "s1"), first) << "the only session keeps its process";
  EXPECT_NE(pid_of("a", "s2"), first);
  EXPECT_EQ(status("a").sharing, Sharing::per_session);
  EXPECT_EQ(status("a").sharing_evidence, "the server sent sampling/createMessage");
}

TEST_F(PoolTest, ProcessUsedBySeveralSessionsIsRetiredWhenServerIsUnshared) {
  add(spec("a"));
  const pid_t shared = pid_of("a", "s1");
  pid_of("a", "s2");
  const Result<rpc::Message> set = loop.block_on(
      pool->call(Target("a", "s1"), message(R"({"jsonrpc":"2.0","id":1,"method":"logging/setLevel"})"),
                 ForwardOptions()));
  EXPECT_TRUE(set);
  EXPECT_NE(pid_of("a", "s1"), shared);
  EXPECT_NE(pid_of("a", "s2"), shared);
  EXPECT_NE(pid_of("a", "s1"), pid_of("a", "s2"));
  EXPECT_EQ(status("a").sharing_evidence, "a client sent logging/setLevel");
  EXPECT_TRUE(wait_until([&] { return surviving_process_count() == 2; }));
}

TEST_F(PoolTest, ProcessOfEndedSessionIsRetiredWhenServerIsUnshared) {
  add(spec("a"));
  const pid_t shared = pid_of("a", "s1");
  loop.block_on(pool->end_sessions({"s1"}));
  EXPECT_TRUE(loop.block_on(pool->call(Target("a", "s2"),
                                       message(R"({"jsonrpc":"2.0","id":1,"method":"logging/setLevel"})"),
                                       ForwardOptions())));
  EXPECT_NE(pid_of("a", "s2"), shared);
  EXPECT_TRUE(wait_until([&] { return surviving_process_count() == 1; }));
}

TEST_F(PoolTest, ServerConfiguredAsSharedIsNeverUnshared) {
  ServerSpec shared = spec("a");
  shared.sharing = Sharing::shared;
  add(shared);
  const pid_t first = pid_of("a", "s1");
  ASSERT_TRUE(call("a", "sample", {}, "s1"));
  EXPECT_EQ(pid_of("a", "s2"), first);
}

// ---- draining ----

TEST_F(PoolTest, RemovedServerFinishesActiveCallsAndStops) {
  add(spec("a"));
  const auto last = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  ASSERT_TRUE(pool->remove("a"));
  const Result<rpc::Message> late = call("a", "pid");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::validation);
  EXPECT_EQ(status("a").state, UpstreamState::draining);
  open_gate();
  finish_call(last);
  EXPECT_TRUE(*last->answer) << finish_call(last);
  EXPECT_TRUE(wait_until([&] { return surviving_process_count() == 0 && pool->status().empty(); }));
}

TEST_F(PoolTest, CallFailsWhenDrainTimeoutOfRemovedServerElapses) {
  ServerSpec hasty = spec("a");
  hasty.clocks.drain = 50ms;
  add(hasty);
  const auto hanging = begin_call("a", "hang");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  ASSERT_TRUE(pool->remove("a"));
  EXPECT_NE(finish_call(hanging).find("it was removed"), std::string::npos) << finish_call(hanging);
  EXPECT_NE(finish_call(hanging).find("code: draining"), std::string::npos) << finish_call(hanging);
}

TEST_F(PoolTest, DisabledServerFinishesActiveCallsAndRestartsWhenEnabled) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const auto last = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 2; }));
  ASSERT_TRUE(pool->disable("a"));
  const Result<rpc::Message> late = call("a", "pid");
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message().find("disabled"), std::string::npos);
  open_gate();
  finish_call(last);
  EXPECT_TRUE(*last->answer) << finish_call(last);
  ASSERT_TRUE(reaches("a", UpstreamState::stopped));
  EXPECT_EQ(surviving_process_count(), 0u);
  ASSERT_TRUE(pool->enable("a"));
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, UpdatedServerServesNewCallsAtOnceAndFinishesActiveCalls) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const auto last = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 2; }));
  ASSERT_TRUE(pool->update(spec("a", "banner")));
  EXPECT_NE(pid_of("a"), before);
  EXPECT_FALSE(last->answer);
  open_gate();
  finish_call(last);
  EXPECT_TRUE(*last->answer) << finish_call(last);
  EXPECT_TRUE(wait_until([&] { return surviving_process_count() == 1; }));
}

TEST_F(PoolTest, CallWaitingForStartIsServedByUpdatedServer) {
  add(spec("a", "gated"));
  const auto waiting = begin_call("a", "pid");
  ASSERT_TRUE(wait_until([&] { return start_count("a") == 1; }));
  ASSERT_TRUE(pool->update(spec("a")));
  EXPECT_FALSE(finish_call(waiting).starts_with("<")) << finish_call(waiting);
}

TEST_F(PoolTest, ShutdownStopsStartingReadyAndHangingServers) {
  add(spec("serves"));
  add(spec("starts", "gated"));
  add(spec("hangs"));
  pid_of("serves");
  const auto starting = begin_call("starts", "pid");
  const auto hanging = begin_call("hangs", "hang");
  ASSERT_TRUE(wait_until(
      [&] { return start_count("starts") == 1 && journal_lines("hangs", "got \"tools/call\"") == 1; }));
  loop.block_on(pool->shutdown(20ms));
  EXPECT_EQ(surviving_process_count(), 0u);
  EXPECT_TRUE(finish_call(starting).starts_with("<")) << finish_call(starting);
  EXPECT_TRUE(finish_call(hanging).starts_with("<")) << finish_call(hanging);
  EXPECT_FALSE(call("serves", "pid"));
}

TEST_F(PoolTest, CallsWithoutSessionToPerSessionServerAreWarnedAboutOnce) {
  std::string logged;
  options.client.connect.log =
      Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { logged += line; });
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  pid_of("a", "session");
  EXPECT_EQ(logged, "");
  const pid_t shared = pid_of("a");
  EXPECT_EQ(pid_of("a"), shared);
  const std::size_t warning =
      logged.find("clients without a session and without a user share one process server=a");
  ASSERT_NE(warning, std::string::npos) << logged;
  EXPECT_EQ(logged.find("without a session", warning + 20), std::string::npos) << logged;
}

}  // namespace
}  // namespace fairlead::pool
