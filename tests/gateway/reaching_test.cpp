// What servers say reaches the client it is meant for, and nobody else: list changes, log messages,
// questions, cancellation. R12.4.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

const std::string kSaid = "notifications/message said";
const std::string kWhispered = "notifications/message whispered";

// ---- lists ----

TEST_F(GatewayTest, a_change_of_a_shared_server_is_told_to_all_once) {
  for (const mcp::Revision revision : {mcp::kNewestLegacy, mcp::kNewest}) {
    const std::string server = mcp::is_modern(revision) ? "modern" : "legacy";
    add(server, Sharing::shared, revision);
  }
  const auto one = enter();
  const auto other = enter(mcp::kNewest);
  listen(other);
  ASSERT_FALSE(has(one, "legacy__grown"));
  long changes = 0;
  for (const std::string server : {"legacy", "modern"}) {
    call(one, server + "__grow");
    ++changes;
    EXPECT_TRUE(comes_true([&] {
      return one->count(kToolsChanged) == changes && other->count(kToolsChanged) == changes;
    })) << server;
    EXPECT_TRUE(has(one, server + "__grown"));
    EXPECT_TRUE(has(other, server + "__grown"));
    settle(server);
    EXPECT_EQ(one->count(kToolsChanged), changes);
  }
}

TEST_F(GatewayTest, a_change_of_a_sessions_own_upstream_is_told_and_shown_to_that_session) {
  for (const mcp::Revision revision : {mcp::kNewestLegacy, mcp::kNewest}) {
    const std::string server = mcp::is_modern(revision) ? "modern" : "legacy";
    add(server, Sharing::per_session, revision);
  }
  const auto one = enter();
  const auto other = enter();
  ASSERT_FALSE(has(one, "legacy__grown"));
  long changes = 0;
  for (const std::string server : {"legacy", "modern"}) {
    call(other, server + "__which");
    call(one, server + "__grow");
    ++changes;
    EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == changes; })) << server;
    EXPECT_TRUE(has(one, server + "__grown"));
    EXPECT_EQ(call(one, server + "__grown"), "grown");
    EXPECT_FALSE(has(other, server + "__grown"));
    EXPECT_NE(call(other, server + "__grown").find("Unknown tool"), std::string::npos);
    settle(server);
    EXPECT_EQ(other->count(kToolsChanged), 0);
  }
}

TEST_F(GatewayTest, a_sessions_server_is_listened_to_after_it_was_idle_too) {
  add("a", Sharing::per_session, mcp::kNewest);
  config.servers.back().clocks.idle_stop = 200ms;
  const auto one = enter();
  const std::string first = call(one, "a__which");
  ASSERT_TRUE(comes_true([&] { return gateway->pool().status().size() == 1; }));
  settle("a");
  ASSERT_NE(call(one, "a__which"), first);
  call(one, "a__grow");
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 1; }));
}

TEST_F(GatewayTest, a_server_that_lists_anew_after_a_restart_is_told_of) {
  furnish = [](Instance& instance) {
    if (instance.number == 1) mcp::tool(instance.server, "second", "", [](const Nothing&) { return "2"; });
  };
  add("a", Sharing::shared);
  const auto one = enter();
  ASSERT_FALSE(has(one, "a__second"));
  instance("a", 0).connection->close();
  EXPECT_EQ(call(one, "a__which"), "1");
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(call(one, "a__second"), "2");
}

TEST_F(GatewayTest, sessions_of_one_user_share_what_is_kept_per_user) {
  config.authenticated = true;
  add("a", Sharing::per_user);
  const auto one = enter(mcp::kNewestLegacy, "ann");
  const auto again = enter(mcp::kNewestLegacy, "ann");
  const auto other = enter(mcp::kNewestLegacy, "bob");
  tools(one);
  EXPECT_EQ(call(one, "a__which"), call(again, "a__which"));
  EXPECT_NE(call(one, "a__which"), call(other, "a__which"));
  subscribe(again);
  subscribe(other);
  call(one, "a__touch");
  EXPECT_TRUE(comes_true([&] { return again->count(kUpdated) == 1; }));
  call(one, "a__grow");
  EXPECT_TRUE(comes_true([&] { return again->count(kToolsChanged) == 1; }));
  EXPECT_TRUE(has(again, "a__grown"));
  EXPECT_FALSE(has(other, "a__grown"));
  settle("a");
  EXPECT_EQ(other->count(kUpdated) + other->count(kToolsChanged), 0);
}

// ---- log messages ----

TEST_F(GatewayTest, log_messages_go_to_whoever_called_from_the_level_they_want) {
  add("a", Sharing::shared);
  const auto one = enter();
  const auto other = enter();
  call(one, "a__say");
  EXPECT_TRUE(comes_true([&] { return one->count(kSaid) == 1; }));
  settle("a");
  EXPECT_EQ(one->count(kWhispered), 0);
  EXPECT_EQ(other->count(kSaid), 0);
}

TEST_F(GatewayTest, servers_are_asked_for_the_lowest_level_anybody_wants_who_shares_them) {
  add("shared", Sharing::shared);
  add("own", Sharing::per_session);
  const auto one = enter();
  const auto other = enter();
  tools(one);
  call(other, "own__which");
  ASSERT_TRUE(loop.block_on(one->client->set_log_level(mcp::LoggingLevel::debug)));
  call(one, "shared__say");
  call(one, "own__say");
  EXPECT_TRUE(comes_true([&] { return one->count(kWhispered) == 2; }));
  EXPECT_EQ(call(other, "shared__level"), "debug");
  EXPECT_EQ(call(other, "own__level"), "info");
  leave(one);
  std::erase(clients, one);
  // Nobody wants that much any longer. The session ends when the last of it has been told.
  std::string level;
  for (int i = 0; i < 100 && level != "info"; ++i) level = call(other, "shared__level");
  EXPECT_EQ(level, "info");
}

TEST_F(GatewayTest, a_level_that_is_set_while_a_server_starts_counts) {
  add("a", Sharing::shared);
  held["a"];
  const auto one = enter();
  ASSERT_TRUE(loop.block_on(one->client->set_log_level(mcp::LoggingLevel::debug)));
  held["a"].set();
  call(one, "a__which");
  std::string level;
  for (int i = 0; i < 100 && level != "debug"; ++i) level = call(one, "a__level");
  EXPECT_EQ(level, "debug");
}

TEST_F(GatewayTest, a_subscription_does_not_keep_log_messages_and_questions_from_their_caller) {
  add("a", Sharing::shared);
  const auto one = enter();
  const auto other = enter(mcp::kNewestLegacy, "", "another");
  subscribe(one);
  call(other, "a__say");
  EXPECT_TRUE(comes_true([&] { return other->count(kSaid) == 1; }));
  EXPECT_EQ(call(other, "a__ask"), "another");
  settle("a");
  EXPECT_EQ(one->count(kSaid), 0);
}

// ---- questions ----

TEST_F(GatewayTest, a_question_goes_to_the_client_whose_call_it_is_about) {
  add("a", Sharing::per_session);
  const auto one = enter(mcp::kNewestLegacy, "", "the first");
  const auto other = enter(mcp::kNewestLegacy, "", "the second");
  EXPECT_EQ(call(one, "a__ask"), "the first");
  EXPECT_EQ(call(other, "a__ask"), "the second");
}

TEST_F(GatewayTest, what_no_client_can_be_asked_is_an_error_that_names_the_server) {
  furnish = [this](Instance& instance) {
    auto scripted = std::make_shared<Scripted>(loop);
    scripted->results["tools/list"] =
        R"({"tools":[{"name":"odd","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"})";
    scripted->results["tools/call"] =
        R"({"resultType":"input_required","inputRequests":{"q":{"method":"nope/x","params":{}}},"requestState":"s"})";
    instance.server.backend(scripted);
  };
  add("a", Sharing::shared, mcp::kNewest);
  const auto one = enter();
  EXPECT_EQ(call(one, "a__odd"), "<server `a` asks for `nope/x`, which this client cannot be asked>");
}

Task<void> ask_unasked(std::shared_ptr<Peer> peer, std::stop_token stop, std::string* answered) {
  CallOptions options;
  options.stop = std::move(stop);
  const Result<json::Raw> answer = co_await peer->call("roots/list", json::Raw(), std::move(options));
  *answered = answer ? std::string(answer->text()) : answer.error().message();
}
Task<Answer> no_roots(Request) {
  co_return raw(R"({"roots":[]})");
}

TEST_F(GatewayTest, what_a_sessions_own_server_says_of_itself_is_for_that_session) {
  answers = no_roots;
  add("own", Sharing::per_session);
  add("shared", Sharing::shared);
  const auto one = enter();
  const auto other = enter();
  const std::size_t mine = std::stoul(call(one, "own__which"));
  call(other, "own__which");
  const std::size_t ours = std::stoul(call(one, "shared__which"));
  const json::Raw message = raw(R"({"level":"info","data":"said"})");
  for (Instance* const at : {&instance("own", mine), &instance("shared", ours)})
    ASSERT_TRUE(at->peer->post_notification("notifications/message", message));
  EXPECT_TRUE(comes_true([&] { return one->count(kSaid) == 1; }));
  std::string own_answer;
  std::string shared_answer;
  loop.spawn(ask_unasked(instance("own", mine).peer, {}, &own_answer));
  loop.spawn(ask_unasked(instance("shared", ours).peer, {}, &shared_answer));
  EXPECT_TRUE(comes_true([&] { return !own_answer.empty() && !shared_answer.empty(); }));
  EXPECT_EQ(own_answer, R"({"roots":[]})");
  EXPECT_NE(shared_answer.find("cannot be told which client"), std::string::npos) << shared_answer;
  settle("own");
  settle("shared");
  EXPECT_EQ(one->count(kSaid), 1);
  EXPECT_EQ(other->count(kSaid), 0);
}

struct Asked {
  bool asked = false;
  std::stop_token stop;
  Event never;
};
Task<Answer> answer_never(std::shared_ptr<Asked> asked, Loop* loop, Request request) {
  asked->stop = request.stop();
  asked->asked = true;
  const bool answered = co_await asked->never.wait(*loop, Clock::duration::max());
  static_cast<void>(answered);
  co_return Error(ErrorKind::cancelled, "never mind");
}

TEST_F(GatewayTest, a_server_that_takes_its_question_back_takes_it_back_from_the_client) {
  auto asked = std::make_shared<Asked>();
  answers = [this, asked](Request request) { return answer_never(asked, &loop, std::move(request)); };
  add("a", Sharing::per_session);
  const auto one = enter();
  const std::size_t mine = std::stoul(call(one, "a__which"));
  std::stop_source stop;
  std::string answer;
  loop.spawn(ask_unasked(instance("a", mine).peer, stop.get_token(), &answer));
  ASSERT_TRUE(comes_true([&] { return asked->asked; }));
  stop.request_stop();
  EXPECT_TRUE(comes_true([&] { return asked->stop.stop_requested() && !answer.empty(); }));
  asked->never.set();
}

TEST_F(GatewayTest, that_a_url_is_done_with_is_told_to_whoever_was_sent_there) {
  const std::string completed = "notifications/elicitation/complete ";
  answers = no_roots;
  add("a", Sharing::shared);
  const auto one = enter();
  const auto other = enter();
  const Result<json::Raw> refused =
      loop.block_on(one->client->request("tools/call", raw(R"({"name":"a__sign_in","arguments":{}})")));
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().detail().rpc_code, -32042) << refused.error().message();
  instance("a", std::stoul(call(one, "a__which"))).server.elicitation_complete("sign-in");
  EXPECT_TRUE(comes_true([&] { return one->count(completed) == 1; }));
  settle("a");
  EXPECT_EQ(other->count(completed), 0);
}

TEST_F(GatewayTest, processes_of_one_server_may_have_the_same_ids_for_urls) {
  const std::string completed = "notifications/elicitation/complete ";
  answers = no_roots;
  add("a", Sharing::per_session);
  const auto one = enter();
  const auto other = enter();
  std::vector<std::size_t> numbers;
  for (const auto& client : {one, other}) {
    numbers.push_back(std::stoul(call(client, "a__which")));
    EXPECT_FALSE(
        loop.block_on(client->client->request("tools/call", raw(R"({"name":"a__sign_in","arguments":{}})"))));
  }
  instance("a", numbers[0]).server.elicitation_complete("sign-in");
  EXPECT_TRUE(comes_true([&] { return one->count(completed) + other->count(completed) == 1; }));
  EXPECT_EQ(other->count(completed), 0);
  instance("a", numbers[1]).server.elicitation_complete("sign-in");
  EXPECT_TRUE(comes_true([&] { return other->count(completed) == 1; }));
  EXPECT_EQ(one->count(completed), 1);
}

// ---- cancellation ----

TEST_F(GatewayTest, a_client_that_cancels_cancels_at_the_server) {
  for (const mcp::Revision client : {mcp::kNewestLegacy, mcp::kNewest}) {
    add(mcp::is_modern(client) ? "modern" : "legacy", Sharing::shared, client);
  }
  for (const mcp::Revision revision : {mcp::kNewestLegacy, mcp::kNewest}) {
    const auto one = enter(revision);
    for (const std::string server : {"legacy", "modern"}) {
      std::stop_source stop;
      mcp::ToolCallOptions options;
      options.stop = stop.get_token();
      bool over = false;
      loop.spawn(wait_for(one->client, server + "__wait", options, &over));
      const auto waits = [&] { return !servers[server]->empty() && instance(server, 0).waiting; };
      ASSERT_TRUE(comes_true(waits));
      stop.request_stop();
      EXPECT_TRUE(comes_true([&] { return instance(server, 0).cancelled && over; })) << server;
      instance(server, 0).waiting = instance(server, 0).cancelled = false;
    }
  }
}

TEST_F(GatewayTest, PerUserServersAreRefusedWithoutAuthentication) {
  add("a", Sharing::per_user);
  const Result<std::shared_ptr<Gateway>> made = Gateway::create(loop, config, gateway_log);
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().message().starts_with("server a is per_user, but")) << made.error().message();
  const pool::ServerSpec spec = config.servers.front();
  config.servers.clear();
  enter();
  EXPECT_FALSE(gateway->add_server(spec));
  Config next = config;
  next.servers = {spec};
  EXPECT_FALSE(loop.block_on(gateway->reload(next)));
}

}  // namespace
}  // namespace fairlead::gateway
