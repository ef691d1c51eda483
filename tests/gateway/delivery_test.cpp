// Messages of servers reach the client they are for, and no other client: list changes, log messages, server
// requests, cancellation. R12.4.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

const std::string kSaid = "notifications/message said";
const std::string kWhispered = "notifications/message whispered";

// ---- lists ----

TEST_F(GatewayTest, ListChangeOfSharedServerIsSentToAllClientsOnce) {
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const std::string server = mcp::is_modern(revision) ? "modern" : "legacy";
    add(server, Sharing::shared, revision);
  }
  const auto one = connect_client();
  const auto other = connect_client(mcp::kNewestRevision);
  subscribe_to_tool_list(other);
  ASSERT_FALSE(has_tool(one, "legacy__grown"));
  long changes = 0;
  for (const std::string server : {"legacy", "modern"}) {
    call(one, server + "__grow");
    ++changes;
    EXPECT_TRUE(wait_until([&] {
      return one->count(kToolsChanged) == changes && other->count(kToolsChanged) == changes;
    })) << server;
    EXPECT_TRUE(has_tool(one, server + "__grown"));
    EXPECT_TRUE(has_tool(other, server + "__grown"));
    flush_messages(server);
    EXPECT_EQ(one->count(kToolsChanged), changes);
  }
}

TEST_F(GatewayTest, ListChangeOfPerSessionServerIsSentToAndSeenByItsSessionOnly) {
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const std::string server = mcp::is_modern(revision) ? "modern" : "legacy";
    add(server, Sharing::per_session, revision);
  }
  const auto one = connect_client();
  const auto other = connect_client();
  ASSERT_FALSE(has_tool(one, "legacy__grown"));
  long changes = 0;
  for (const std::string server : {"legacy", "modern"}) {
    call(other, server + "__which");
    call(one, server + "__grow");
    ++changes;
    EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == changes; })) << server;
    EXPECT_TRUE(has_tool(one, server + "__grown"));
    EXPECT_EQ(call(one, server + "__grown"), "grown");
    EXPECT_FALSE(has_tool(other, server + "__grown"));
    EXPECT_NE(call(other, server + "__grown").find("Unknown tool"), std::string::npos);
    flush_messages(server);
    EXPECT_EQ(other->count(kToolsChanged), 0);
  }
}

TEST_F(GatewayTest, ListChangeOfPerSessionServerIsSentAfterIdleStop) {
  add("a", Sharing::per_session, mcp::kNewestRevision);
  config.servers.back().clocks.idle_stop = 200ms;
  const auto one = connect_client();
  const std::string first = call(one, "a__which");
  ASSERT_TRUE(wait_until([&] { return gateway->pool().status().size() == 1; }));
  flush_messages("a");
  ASSERT_NE(call(one, "a__which"), first);
  call(one, "a__grow");
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
}

TEST_F(GatewayTest, ListChangeIsSentWhenRestartedServerHasOtherLists) {
  customize = [](Instance& instance) {
    if (instance.number == 1)
      mcp::tool(instance.server, "second", "", [](const NoArguments&) { return "2"; });
  };
  add("a", Sharing::shared);
  const auto one = connect_client();
  ASSERT_FALSE(has_tool(one, "a__second"));
  instance("a", 0).connection->close();
  EXPECT_EQ(call(one, "a__which"), "1");
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(call(one, "a__second"), "2");
}

TEST_F(GatewayTest, SessionsOfOneUserSharePerUserServer) {
  config.authenticated = true;
  add("a", Sharing::per_user);
  const auto one = connect_client(mcp::kNewestLegacyRevision, "ann");
  const auto again = connect_client(mcp::kNewestLegacyRevision, "ann");
  const auto other = connect_client(mcp::kNewestLegacyRevision, "bob");
  tools(one);
  EXPECT_EQ(call(one, "a__which"), call(again, "a__which"));
  EXPECT_NE(call(one, "a__which"), call(other, "a__which"));
  subscribe(again);
  subscribe(other);
  call(one, "a__touch");
  EXPECT_TRUE(wait_until([&] { return again->count(kUpdated) == 1; }));
  call(one, "a__grow");
  EXPECT_TRUE(wait_until([&] { return again->count(kToolsChanged) == 1; }));
  EXPECT_TRUE(has_tool(again, "a__grown"));
  EXPECT_FALSE(has_tool(other, "a__grown"));
  flush_messages("a");
  EXPECT_EQ(other->count(kUpdated) + other->count(kToolsChanged), 0);
}

// ---- log messages ----

TEST_F(GatewayTest, LogMessageIsSentToCallerAtOrAboveItsLevel) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  const auto other = connect_client();
  call(one, "a__say");
  EXPECT_TRUE(wait_until([&] { return one->count(kSaid) == 1; }));
  flush_messages("a");
  EXPECT_EQ(one->count(kWhispered), 0);
  EXPECT_EQ(other->count(kSaid), 0);
}

TEST_F(GatewayTest, ServerIsSetToLowestLevelOfClientsThatShareIt) {
  add("shared", Sharing::shared);
  add("own", Sharing::per_session);
  const auto one = connect_client();
  const auto other = connect_client();
  tools(one);
  call(other, "own__which");
  ASSERT_TRUE(loop.block_on(one->client->set_log_level(mcp::LoggingLevel::debug)));
  call(one, "shared__say");
  call(one, "own__say");
  EXPECT_TRUE(wait_until([&] { return one->count(kWhispered) == 2; }));
  EXPECT_EQ(call(other, "shared__level"), "debug");
  EXPECT_EQ(call(other, "own__level"), "info");
  disconnect(one);
  std::erase(clients, one);
  // The only session with the level `debug` ends, but only after its last message has been sent.
  std::string level;
  for (int i = 0; i < 100 && level != "info"; ++i) level = call(other, "shared__level");
  EXPECT_EQ(level, "info");
}

TEST_F(GatewayTest, LevelSetWhileServerStartsIsApplied) {
  add("a", Sharing::shared);
  start_events["a"];
  const auto one = connect_client();
  ASSERT_TRUE(loop.block_on(one->client->set_log_level(mcp::LoggingLevel::debug)));
  start_events["a"].set();
  call(one, "a__which");
  std::string level;
  for (int i = 0; i < 100 && level != "debug"; ++i) level = call(one, "a__level");
  EXPECT_EQ(level, "debug");
}

TEST_F(GatewayTest, LogMessagesAndRequestsAreSentToCallerWhenAnotherClientIsSubscribed) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  const auto other = connect_client(mcp::kNewestLegacyRevision, "", "another");
  subscribe(one);
  call(other, "a__say");
  EXPECT_TRUE(wait_until([&] { return other->count(kSaid) == 1; }));
  EXPECT_EQ(call(other, "a__ask"), "another");
  flush_messages("a");
  EXPECT_EQ(one->count(kSaid), 0);
}

// ---- server requests ----

TEST_F(GatewayTest, ServerRequestIsSentToClientWhoseCallIsInProgress) {
  add("a", Sharing::per_session);
  const auto one = connect_client(mcp::kNewestLegacyRevision, "", "the first");
  const auto other = connect_client(mcp::kNewestLegacyRevision, "", "the second");
  EXPECT_EQ(call(one, "a__ask"), "the first");
  EXPECT_EQ(call(other, "a__ask"), "the second");
}

TEST_F(GatewayTest, UnknownInputRequestFailsWithErrorThatNamesServer) {
  customize = [this](Instance& instance) {
    auto scripted = std::make_shared<ScriptedServer>(loop);
    scripted->results["tools/list"] =
        R"({"tools":[{"name":"odd","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"})";
    scripted->results["tools/call"] =
        R"({"resultType":"input_required","inputRequests":{"q":{"method":"nope/x","params":{}}},"requestState":"s"})";
    instance.server.backend(scripted);
  };
  add("a", Sharing::shared, mcp::kNewestRevision);
  const auto one = connect_client();
  EXPECT_EQ(call(one, "a__odd"), "<server `a` requests `nope/x`, which this client does not support>");
}

Task<void> send_unsolicited_request(std::shared_ptr<Peer> peer, std::stop_token stop, std::string* outcome) {
  CallOptions options;
  options.stop = std::move(stop);
  const Result<json::Raw> answer = co_await peer->call("roots/list", json::Raw(), std::move(options));
  *outcome = answer ? std::string(answer->text()) : answer.error().message();
}
Task<Answer> no_roots(Request) {
  co_return raw(R"({"roots":[]})");
}

TEST_F(GatewayTest, UnsolicitedMessagesOfPerSessionServerAreSentToItsSession) {
  client_handler = no_roots;
  add("own", Sharing::per_session);
  add("shared", Sharing::shared);
  const auto one = connect_client();
  const auto other = connect_client();
  const std::size_t mine = std::stoul(call(one, "own__which"));
  call(other, "own__which");
  const std::size_t ours = std::stoul(call(one, "shared__which"));
  const json::Raw message = raw(R"({"level":"info","data":"said"})");
  for (Instance* const at : {&instance("own", mine), &instance("shared", ours)})
    ASSERT_TRUE(at->peer->post_notification("notifications/message", message));
  EXPECT_TRUE(wait_until([&] { return one->count(kSaid) == 1; }));
  std::string own_answer;
  std::string shared_answer;
  loop.spawn(send_unsolicited_request(instance("own", mine).peer, {}, &own_answer));
  loop.spawn(send_unsolicited_request(instance("shared", ours).peer, {}, &shared_answer));
  EXPECT_TRUE(wait_until([&] { return !own_answer.empty() && !shared_answer.empty(); }));
  EXPECT_EQ(own_answer, R"({"roots":[]})");
  EXPECT_NE(shared_answer.find("Cannot determine the client"), std::string::npos) << shared_answer;
  flush_messages("own");
  flush_messages("shared");
  EXPECT_EQ(one->count(kSaid), 1);
  EXPECT_EQ(other->count(kSaid), 0);
}

struct PendingRequest {
  bool received = false;
  std::stop_token stop;
  Event never;
};
Task<Answer> answer_never(std::shared_ptr<PendingRequest> pending, Loop* loop, Request request) {
  pending->stop = request.stop();
  pending->received = true;
  co_await pending->never.wait(*loop);
  co_return Error(ErrorKind::cancelled, "never mind");
}

TEST_F(GatewayTest, RequestIsCancelledAtClientWhenServerCancelsIt) {
  auto pending = std::make_shared<PendingRequest>();
  client_handler = [this, pending](Request request) {
    return answer_never(pending, &loop, std::move(request));
  };
  add("a", Sharing::per_session);
  const auto one = connect_client();
  const std::size_t mine = std::stoul(call(one, "a__which"));
  std::stop_source stop;
  std::string answer;
  loop.spawn(send_unsolicited_request(instance("a", mine).peer, stop.get_token(), &answer));
  ASSERT_TRUE(wait_until([&] { return pending->received; }));
  stop.request_stop();
  EXPECT_TRUE(wait_until([&] { return pending->stop.stop_requested() && !answer.empty(); }));
  pending->never.set();
}

TEST_F(GatewayTest, ElicitationCompleteIsSentToClientThatReceivedUrl) {
  const std::string completed = "notifications/elicitation/complete ";
  client_handler = no_roots;
  add("a", Sharing::shared);
  const auto one = connect_client();
  const auto other = connect_client();
  const Result<json::Raw> refused =
      loop.block_on(one->client->request("tools/call", raw(R"({"name":"a__sign_in","arguments":{}})")));
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().detail().rpc_code, -32042) << refused.error().message();
  instance("a", std::stoul(call(one, "a__which"))).server.notify_elicitation_complete("sign-in");
  EXPECT_TRUE(wait_until([&] { return one->count(completed) == 1; }));
  flush_messages("a");
  EXPECT_EQ(other->count(completed), 0);
}

TEST_F(GatewayTest, ElicitationCompleteIsMatchedPerProcessWhenIdsAreEqual) {
  const std::string completed = "notifications/elicitation/complete ";
  client_handler = no_roots;
  add("a", Sharing::per_session);
  const auto one = connect_client();
  const auto other = connect_client();
  std::vector<std::size_t> numbers;
  for (const auto& client : {one, other}) {
    numbers.push_back(std::stoul(call(client, "a__which")));
    EXPECT_FALSE(
        loop.block_on(client->client->request("tools/call", raw(R"({"name":"a__sign_in","arguments":{}})"))));
  }
  instance("a", numbers[0]).server.notify_elicitation_complete("sign-in");
  EXPECT_TRUE(wait_until([&] { return one->count(completed) + other->count(completed) == 1; }));
  EXPECT_EQ(other->count(completed), 0);
  instance("a", numbers[1]).server.notify_elicitation_complete("sign-in");
  EXPECT_TRUE(wait_until([&] { return other->count(completed) == 1; }));
  EXPECT_EQ(one->count(completed), 1);
}

// ---- cancellation ----

TEST_F(GatewayTest, CallIsCancelledAtServerWhenClientCancels) {
  for (const mcp::Revision client : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    add(mcp::is_modern(client) ? "modern" : "legacy", Sharing::shared, client);
  }
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto one = connect_client(revision);
    for (const std::string server : {"legacy", "modern"}) {
      std::stop_source stop;
      mcp::ClientCallOptions options;
      options.stop = stop.get_token();
      bool over = false;
      loop.spawn(call_until_failure(one->client, server + "__wait", options, &over));
      const auto waiting = [&] { return !servers[server]->empty() && instance(server, 0).waiting; };
      ASSERT_TRUE(wait_until(waiting));
      stop.request_stop();
      EXPECT_TRUE(wait_until([&] { return instance(server, 0).cancelled && over; })) << server;
      instance(server, 0).waiting = instance(server, 0).cancelled = false;
    }
  }
}

TEST_F(GatewayTest, PerUserServerIsRejectedWithoutAuthentication) {
  add("a", Sharing::per_user);
  const Result<std::shared_ptr<Gateway>> created = Gateway::create(loop, config, gateway_log);
  ASSERT_FALSE(created);
  EXPECT_TRUE(created.error().message().starts_with("server a is per_user, but"))
      << created.error().message();
  const pool::ServerSpec spec = config.servers.front();
  config.servers.clear();
  connect_client();
  EXPECT_FALSE(gateway->add_server(spec));
  Config next = config;
  next.servers = {spec};
  EXPECT_FALSE(loop.block_on(gateway->reload(next)));
}

}  // namespace
}  // namespace fairlead::gateway
