// Who shares a process with whom, and what becomes of servers that are removed, disabled, updated. R10.6.
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

TEST_F(PoolTest, sessions_share_a_server_unless_it_is_said_otherwise) {
  add(spec("a"));
  EXPECT_EQ(pid_of("a", "s1", "u1"), pid_of("a", "s2", "u2"));
}

TEST_F(PoolTest, each_session_has_its_own_process_where_that_is_asked_for) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  const pid_t first = pid_of("a", "s1", "u");
  EXPECT_NE(pid_of("a", "s2", "u"), first);
  EXPECT_EQ(pid_of("a", "s1", "u"), first);
  EXPECT_EQ(pool->processes(), 2u);
}

TEST_F(PoolTest, the_end_of_a_session_is_the_end_of_its_process) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  add(own);
  pid_of("a", "s1");
  const pid_t second = pid_of("a", "s2");
  loop.block_on(pool->end_sessions({"s1"}));
  EXPECT_TRUE(comes_true([&] { return survivors() == 1; }));
  EXPECT_EQ(pid_of("a", "s2"), second);
  EXPECT_TRUE(comes_true([&] { return pool->status().size() == 1; })) << "and it is forgotten";
}

TEST_F(PoolTest, a_session_that_is_never_ended_is_forgotten_when_its_process_was_idle) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_session;
  own.clocks.idle_stop = 1ms;
  add(own);
  pid_of("a", "s1");
  EXPECT_TRUE(comes_true([&] { return pool->status().front().key.empty(); }));
}

TEST_F(PoolTest, who_gives_up_when_its_session_ends_leaves_nothing_behind) {
  ServerSpec own = spec("a", "gated");
  own.sharing = Sharing::per_session;
  add(own);
  std::stop_source stop;
  ForwardOptions how;
  how.stop = stop.get_token();
  const auto waiting = begin("a", "pid", how, "s1");
  ASSERT_TRUE(comes_true([&] { return starts("a") == 1; }));
  stop.request_stop();
  loop.block_on(pool->end_sessions({"s1"}));
  finish(waiting);
  EXPECT_TRUE(comes_true([&] {
    const auto all = pool->status();
    return all.size() == 1 && all.front().key.empty();
  }));
}

TEST_F(PoolTest, each_user_has_its_own_process_where_that_is_asked_for) {
  ServerSpec own = spec("a");
  own.sharing = Sharing::per_user;
  add(own);
  const pid_t first = pid_of("a", "s1", "u1");
  EXPECT_EQ(pid_of("a", "s2", "u1"), first);
  EXPECT_NE(pid_of("a", "s1", "u2"), first);
}

// A handler that answers what a server asks, and remembers whom it was for.
struct Asked {
  std::vector<std::string> sessions;
  static Task<Answer> answer() { co_return test::raw(R"({"role":"assistant"})"); }
  Task<Answer> operator()(const std::shared_ptr<Upstream>& upstream, const Request&) {
    for (const RunningCall& call : upstream->calls()) sessions.push_back(call.session);
    return answer();
  }
};

TEST_F(PoolTest, a_servers_request_reaches_the_handler_with_the_calls_under_way) {
  auto asked = std::make_shared<Asked>();
  options.handlers.request = [asked](std::shared_ptr<Upstream> upstream, Request request) {
    return (*asked)(upstream, request);
  };
  options.handlers.capabilities = [](const Upstream&) { return test::raw(R"({"sampling":{}})"); };
  add(spec("a"));
  const Result<rpc::Message> answer = call("a", "sample", {}, "s1");
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->result_text(), kEcho);
  EXPECT_EQ(asked->sessions, std::vector<std::string>{"s1"});
}

TEST_F(PoolTest, a_server_that_asks_its_client_back_is_no_longer_shared) {
  auto asked = std::make_shared<Asked>();
  options.handlers.request = [asked](std::shared_ptr<Upstream> upstream, Request request) {
    return (*asked)(upstream, request);
  };
  add(spec("a"));
  const pid_t first = pid_of("a", "s1");
  ASSERT_TRUE(call("a", "sample", {}, "s1"));
  EXPECT_EQ(pid_of("a", "s1"), first) << "the only session there was keeps its process";
  EXPECT_NE(pid_of("a", "s2"), first);
  EXPECT_EQ(status("a").sharing, Sharing::per_session);
  EXPECT_EQ(status("a").sharing_evidence, "it sends sampling/createMessage");
}

TEST_F(PoolTest, a_shared_process_that_several_sessions_used_is_let_go_when_sharing_ends) {
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
  EXPECT_EQ(status("a").sharing_evidence, "it is asked for logging/setLevel");
  EXPECT_TRUE(comes_true([&] { return survivors() == 2; }));
}

TEST_F(PoolTest, a_shared_process_is_not_kept_for_a_session_that_has_ended) {
  add(spec("a"));
  const pid_t shared = pid_of("a", "s1");
  loop.block_on(pool->end_sessions({"s1"}));
  EXPECT_TRUE(loop.block_on(pool->call(Target("a", "s2"),
                                       message(R"({"jsonrpc":"2.0","id":1,"method":"logging/setLevel"})"),
                                       ForwardOptions())));
  EXPECT_NE(pid_of("a", "s2"), shared);
  EXPECT_TRUE(comes_true([&] { return survivors() == 1; }));
}

TEST_F(PoolTest, a_server_said_to_be_shared_stays_so_whatever_it_does) {
  ServerSpec shared = spec("a");
  shared.sharing = Sharing::shared;
  add(shared);
  const pid_t first = pid_of("a", "s1");
  ASSERT_TRUE(call("a", "sample", {}, "s1"));
  EXPECT_EQ(pid_of("a", "s2"), first);
}

// ---- draining ----

TEST_F(PoolTest, a_removed_server_finishes_its_calls_and_is_gone) {
  add(spec("a"));
  const auto last = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  ASSERT_TRUE(pool->remove("a"));
  const Result<rpc::Message> late = call("a", "pid");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::validation);
  EXPECT_EQ(status("a").state, State::draining);
  open_gate();
  finish(last);
  EXPECT_TRUE(*last->answer) << finish(last);
  EXPECT_TRUE(comes_true([&] { return survivors() == 0 && pool->status().empty(); }));
}

TEST_F(PoolTest, a_call_that_does_not_end_is_cut_off_when_the_drains_clock_runs_out) {
  ServerSpec hasty = spec("a");
  hasty.clocks.drain = 50ms;
  add(hasty);
  const auto hanging = begin("a", "hang");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  ASSERT_TRUE(pool->remove("a"));
  EXPECT_NE(finish(hanging).find("it was removed"), std::string::npos) << finish(hanging);
  EXPECT_NE(finish(hanging).find("code: draining"), std::string::npos) << finish(hanging);
}

TEST_F(PoolTest, a_disabled_server_finishes_its_calls_and_comes_back_when_enabled) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const auto last = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 2; }));
  ASSERT_TRUE(pool->disable("a"));
  const Result<rpc::Message> late = call("a", "pid");
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message().find("disabled"), std::string::npos);
  open_gate();
  finish(last);
  EXPECT_TRUE(*last->answer) << finish(last);
  ASSERT_TRUE(reaches("a", State::stopped));
  EXPECT_EQ(survivors(), 0u);
  ASSERT_TRUE(pool->enable("a"));
  EXPECT_NE(pid_of("a"), before);
}

TEST_F(PoolTest, an_updated_server_serves_new_calls_at_once_and_finishes_the_old_ones) {
  add(spec("a"));
  const pid_t before = pid_of("a");
  const auto last = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 2; }));
  ASSERT_TRUE(pool->update(spec("a", "banner")));
  EXPECT_NE(pid_of("a"), before);
  EXPECT_FALSE(last->answer);
  open_gate();
  finish(last);
  EXPECT_TRUE(*last->answer) << finish(last);
  EXPECT_TRUE(comes_true([&] { return survivors() == 1; }));
}

TEST_F(PoolTest, a_call_that_waits_for_a_start_is_served_by_the_update_that_comes_between) {
  add(spec("a", "gated"));
  const auto waiting = begin("a", "pid");
  ASSERT_TRUE(comes_true([&] { return starts("a") == 1; }));
  ASSERT_TRUE(pool->update(spec("a")));
  EXPECT_FALSE(finish(waiting).starts_with("<")) << finish(waiting);
}

TEST_F(PoolTest, shutting_down_stops_what_is_starting_what_serves_and_what_hangs) {
  add(spec("serves"));
  add(spec("starts", "gated"));
  add(spec("hangs"));
  pid_of("serves");
  const auto starting = begin("starts", "pid");
  const auto hanging = begin("hangs", "hang");
  ASSERT_TRUE(comes_true([&] { return starts("starts") == 1 && noted("hangs", "got \"tools/call\"") == 1; }));
  loop.block_on(pool->shutdown(20ms));
  EXPECT_EQ(survivors(), 0u);
  EXPECT_TRUE(finish(starting).starts_with("<")) << finish(starting);
  EXPECT_TRUE(finish(hanging).starts_with("<")) << finish(hanging);
  EXPECT_FALSE(call("serves", "pid"));
}

TEST_F(PoolTest, CallsWithoutASessionAtAPerSessionServerAreWarnedAboutOnce) {
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
  const std::size_t warning = logged.find("clients without a session share one process server=a");
  ASSERT_NE(warning, std::string::npos) << logged;
  EXPECT_EQ(logged.find("without a session", warning + 20), std::string::npos) << logged;
}

}  // namespace
}  // namespace fairlead::pool
