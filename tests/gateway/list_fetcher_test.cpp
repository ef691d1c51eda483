// Lists of slow and failing servers. R12.1
#include <ctime>

#include "fairlead/rpc/codes.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

TEST_F(GatewayTest, CallsToOtherServersDoNotWaitForSlowServer) {
  add("quick", Sharing::shared);
  add("slow", Sharing::shared);
  config.list_wait = 1h;
  start_events["slow"];
  const auto one = connect_client();
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_NE(call(one, "quick__nothing").find("Unknown tool"), std::string::npos);
  EXPECT_NE(call(one, "unknown__nothing").find("Unknown tool"), std::string::npos);
  subscribe(one);
  // A call to the slow server waits for it.
  std::string answer;
  loop.spawn(call_for_text(one->client, "slow__which", &answer));
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_EQ(answer, "");
  start_events["slow"].set();
  EXPECT_TRUE(wait_until([&] { return !answer.empty(); }));
  EXPECT_EQ(answer, "0");
}

TEST_F(GatewayTest, ListFailsWithInvalidCursor) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", raw(R"({"cursor":"1"})")));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().detail().rpc_code, rpc::kInvalidParams);
  EXPECT_EQ(page.error().message(), "Invalid cursor");
}

class ListFetcherLogTest : public GatewayTest {
 protected:
  ListFetcherLogTest() {
    gateway_log =
        Log(LogLevel::warning, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); });
  }
  long count_logged(std::string_view text) const {
    return std::ranges::count_if(
        logged, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  std::vector<std::string> logged;
};

TEST_F(ListFetcherLogTest, ListNamesServersMissingAfterListWait) {
  add("quick", Sharing::shared);
  add("slow", Sharing::shared);
  add("dead", Sharing::shared);
  config.list_wait = 200ms;
  config.list_retry = 1h;
  start_events["slow"];
  failing_starts["dead"] = 1000;
  const auto one = connect_client();
  const auto missing = [&] {
    const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", json::Raw()));
    EXPECT_TRUE(page);
    return page ? std::string(json::View(*page)["_meta"]["fairlead/incomplete"].text()) : "";
  };
  EXPECT_EQ(missing(), R"(["dead","slow"])");
  EXPECT_EQ(missing(), R"(["dead","slow"])");
  EXPECT_EQ(count_logged("list is incomplete"), 1) << "logged once while the same servers are missing";
  EXPECT_EQ(count_logged("slow: its lists have not been fetched yet"), 1);
  EXPECT_EQ(count_logged("dead: connection failed: not yet"), 1);
  start_events["slow"].set();
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(missing(), R"(["dead"])");
}

// A gateway with the server "a": its prompts can be listed, its other lists fail.
class PromptsOnlyServerTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    customize = [this](Instance& instance) {
      auto broken = std::make_shared<ScriptedServer>(loop);
      broken->results["prompts/list"] = R"({"prompts":[{"name":"p"}]})";
      instance.server.backend(broken);
    };
    add("a", Sharing::shared);
  }
};

TEST_F(PromptsOnlyServerTest, ListNamesServerWhoseListFailedWhileItsOtherListsSucceeded) {
  const auto one = connect_client();
  const auto list = [&](const std::string& method) {
    const Result<json::Raw> page = loop.block_on(one->client->request(method, json::Raw()));
    return page ? std::string(json::View(*page)["_meta"]["fairlead/incomplete"].text()) : "failed";
  };
  EXPECT_EQ(list("tools/list"), R"(["a"])");
  EXPECT_EQ(list("prompts/list"), "");
}

TEST_F(ListFetcherLogTest, UriListedByTwoServersIsLoggedAsOwnedByFirstByName) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  start_events["a"];
  const auto one = connect_client();
  EXPECT_EQ(call(one, "b__which"), "0");
  EXPECT_EQ(count_logged("is used by"), 0);
  start_events["a"].set();
  EXPECT_EQ(call(one, "a__which"), "0");
  EXPECT_TRUE(wait_until(
      [&] { return count_logged("b: one of its resources is omitted: `memo://one` is used by `a`") == 1; }));
}

TEST_F(GatewayTest, CompleteListHasNoIncompleteMeta) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", json::Raw()));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->text().find("fairlead/incomplete"), std::string_view::npos);
}

TEST_F(PromptsOnlyServerTest, FailedListDoesNotAffectOtherListsOfServer) {
  const auto one = connect_client();
  const Result<std::vector<json::Raw>> prompts = loop.block_on(one->client->prompts());
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(json::View(prompts->front())["name"].as_string(), "a__p");
  const std::string health(gateway->health().text());
  EXPECT_NE(health.find("tools/list: "), std::string::npos) << health;
  EXPECT_NE(health.find("not in the script"), std::string::npos) << health;
}

TEST_F(GatewayTest, ListsAreFetchedAgainWhenServerFailsToStartOrToList) {
  config.list_retry = 1ms;
  failing_starts["late"] = 3;
  auto scripted = std::make_shared<ScriptedServer>(loop);
  customize = [&](Instance& instance) { instance.server.backend(scripted); };
  add("late", Sharing::shared);
  const auto one = connect_client();
  EXPECT_EQ(tools(one).size(), 0u);
  ASSERT_TRUE(wait_until([&] { return scripted->received_request; }));
  scripted->results["tools/list"] = R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}]})";
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_TRUE(has_tool(one, "late__t"));
}

TEST_F(GatewayTest, FetchingIsRateLimitedWhenServerAlwaysNotifiesOfChanges) {
  auto lists = std::make_shared<int>(0);
  customize = [this, lists](Instance& instance) {
    auto restless = std::make_shared<ScriptedServer>(loop);
    restless->results["tools/list"] = R"({"tools":[]})";
    restless->results["prompts/list"] = R"({"prompts":[]})";
    restless->on_request = [&instance, lists](std::string_view method) {
      if (method != "tools/list") return;
      ++*lists;
      EXPECT_TRUE(instance.peer->post_notification("notifications/tools/list_changed", json::Raw()));
    };
    instance.server.backend(restless);
  };
  add("a", Sharing::shared);
  const Clock::time_point began = Clock::now();
  connect_client();
  EXPECT_TRUE(wait_until([&] { return *lists >= 4; }));
  EXPECT_GE(Clock::now() - began, 300ms);
}

TEST_F(GatewayTest, HealthReportsSlowTurns) {
  add("s", Sharing::shared);
  const auto client = connect_client();
  bool burnt = false;
  loop.post([&] {
    timespec now{};
    const auto cpu_ms = [&] {
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
      return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
    };
    for (const auto until = cpu_ms() + 60; cpu_ms() < until;) continue;
    burnt = true;
  });
  EXPECT_TRUE(wait_until([&] { return burnt; }));
  EXPECT_TRUE(wait_until([&] { return loop.turn_meter().slow_turn_count() > 0; }));
  const json::Raw health = gateway->health();
  const json::View meter = json::View(health)["loop"];
  EXPECT_GE(meter["longest_turn_ms"].as_int().value_or(-1), 50);
  EXPECT_GE(meter["slow_turns"].as_int().value_or(-1), 1);
}

TEST_F(GatewayTest, ReloadAddsAndRemovesServersAndNotifiesClients) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  const Config both = config;
  config.servers.pop_back();
  const auto one = connect_client();
  EXPECT_TRUE(has_tool(one, "a__which"));
  Config next = both;
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "b__which"), "0") << "a call waits for the new server";
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(servers["a"]->size(), 1u) << "an unchanged server is not restarted";
  next.servers.erase(next.servers.begin());
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 2; }));
  EXPECT_FALSE(has_tool(one, "a__which"));
  EXPECT_TRUE(call(one, "a__which").starts_with("<Unknown tool"));
  ASSERT_TRUE(loop.block_on(gateway->reload(both)));
  EXPECT_EQ(call(one, "a__which"), "1") << "the server is configured again";
}

TEST_F(GatewayTest, ReloadReplacesChangedServerAndItsCallsFinish) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  EXPECT_EQ(call(one, "a__which"), "0");
  bool over = false;
  loop.spawn(call_until_failure(one->client, "a__wait", mcp::ClientCallOptions(), &over));
  ASSERT_TRUE(wait_until([&] { return instance("a", 0).waiting; }));
  Config next = config;
  next.servers.front().max_calls += 1;
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "a__which"), "1");
  EXPECT_FALSE(over);
  EXPECT_FALSE(instance("a", 0).cancelled);
  loop.block_on(gateway->shutdown(0ms));
  EXPECT_TRUE(wait_until([&] { return over; }));
}

TEST_F(GatewayTest, ReloadWithInvalidNameChangesNothing) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  EXPECT_EQ(call(one, "a__which"), "0");
  Config next = config;
  next.servers.front().name = "a__b";
  EXPECT_FALSE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "a__which"), "0");
}

TEST_F(GatewayTest, ShutdownDoesNotWaitForLists) {
  auto silent = std::make_shared<ScriptedServer>(loop);
  silent->results["tools/list"] = "";
  customize = [&](Instance& instance) { instance.server.backend(silent); };
  add("a", Sharing::shared);
  connect_client();
  ASSERT_TRUE(wait_until([&] { return silent->received_request; }));
  loop.block_on(gateway->shutdown(1h));
}

}  // namespace
}  // namespace fairlead::gateway
