// The lists, when servers are slow, broken, or not done. R12.1
#include <ctime>

#include "fairlead/rpc/codes.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

TEST_F(GatewayTest, a_slow_server_does_not_hold_up_first_calls_to_others) {
  add("quick", Sharing::shared);
  add("slow", Sharing::shared);
  config.list_wait = 1h;
  held["slow"];
  const auto one = enter();
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_NE(call(one, "quick__nothing").find("Unknown tool"), std::string::npos);
  EXPECT_NE(call(one, "nobody__nothing").find("Unknown tool"), std::string::npos);
  subscribe(one);
  // And one of its own waits for it.
  std::string answer;
  loop.spawn(call_beside(one->client, "slow__which", &answer));
  EXPECT_EQ(call(one, "quick__which"), "0");
  EXPECT_EQ(answer, "");
  held["slow"].set();
  EXPECT_TRUE(comes_true([&] { return !answer.empty(); }));
  EXPECT_EQ(answer, "0");
}

TEST_F(GatewayTest, ListWithAnInvalidCursorIsRefused) {
  add("a", Sharing::shared);
  const auto one = enter();
  const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", raw(R"({"cursor":"1"})")));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().detail().rpc_code, rpc::kInvalidParams);
  EXPECT_EQ(page.error().message(), "Invalid cursor");
}

class ListingLogTest : public GatewayTest {
 protected:
  ListingLogTest() {
    gateway_log =
        Log(LogLevel::warning, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); });
  }
  long told(std::string_view what) const {
    return std::ranges::count_if(
        logged, [&](const std::string& line) { return line.find(what) != std::string::npos; });
  }
  std::vector<std::string> logged;
};

TEST_F(ListingLogTest, ListThatIsIncompleteAfterListWaitNamesTheMissingServers) {
  add("quick", Sharing::shared);
  add("slow", Sharing::shared);
  add("dead", Sharing::shared);
  config.list_wait = 200ms;
  config.list_retry = 1h;
  held["slow"];
  failures["dead"] = 1000;
  const auto one = enter();
  const auto missing = [&] {
    const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", json::Raw()));
    EXPECT_TRUE(page);
    return page ? std::string(json::View(*page)["_meta"]["fairlead/incomplete"].text()) : "";
  };
  EXPECT_EQ(missing(), R"(["dead","slow"])");
  EXPECT_EQ(missing(), R"(["dead","slow"])");
  EXPECT_EQ(told("list is incomplete"), 1) << "once, as long as the same servers are missing";
  EXPECT_EQ(told("slow: has not listed yet"), 1);
  EXPECT_EQ(told("dead: connection failed: not yet"), 1);
  held["slow"].set();
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(missing(), R"(["dead"])");
}

TEST_F(GatewayTest, ListThatOneServerCannotGiveNamesItAlthoughItsOtherListsAreThere) {
  furnish = [this](Instance& instance) {
    auto broken = std::make_shared<Scripted>(loop);
    broken->results["prompts/list"] = R"({"prompts":[{"name":"p"}]})";
    instance.server.backend(broken);
  };
  add("a", Sharing::shared);
  const auto one = enter();
  const auto list = [&](const std::string& method) {
    const Result<json::Raw> page = loop.block_on(one->client->request(method, json::Raw()));
    return page ? std::string(json::View(*page)["_meta"]["fairlead/incomplete"].text()) : "failed";
  };
  EXPECT_EQ(list("tools/list"), R"(["a"])");
  EXPECT_EQ(list("prompts/list"), "");
}

TEST_F(ListingLogTest, UriThatTwoServersListIsLoggedAsTakenByTheFirstByName) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  held["a"];
  const auto one = enter();
  EXPECT_EQ(call(one, "b__which"), "0");
  EXPECT_EQ(told("is taken"), 0);
  held["a"].set();
  EXPECT_EQ(call(one, "a__which"), "0");
  EXPECT_TRUE(comes_true(
      [&] { return told("b: one of its resources is left out: `memo://one` is taken by `a`") == 1; }));
}

TEST_F(GatewayTest, CompleteListSaysNothingOfMissingServers) {
  add("a", Sharing::shared);
  const auto one = enter();
  const Result<json::Raw> page = loop.block_on(one->client->request("tools/list", json::Raw()));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->text().find("fairlead/incomplete"), std::string_view::npos);
}

TEST_F(GatewayTest, a_list_that_fails_does_not_take_the_others_along) {
  furnish = [this](Instance& instance) {
    auto broken = std::make_shared<Scripted>(loop);
    broken->results["prompts/list"] = R"({"prompts":[{"name":"p"}]})";
    instance.server.backend(broken);
  };
  add("a", Sharing::shared);
  const auto one = enter();
  const Result<std::vector<json::Raw>> prompts = loop.block_on(one->client->prompts());
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(json::View(prompts->front())["name"].as_string(), "a__p");
  const std::string health(gateway->health().text());
  EXPECT_NE(health.find("tools/list: "), std::string::npos) << health;
  EXPECT_NE(health.find("not in the script"), std::string::npos) << health;
}

TEST_F(GatewayTest, a_server_that_does_not_start_or_list_at_first_is_asked_again) {
  config.list_retry = 1ms;
  failures["late"] = 3;
  auto scripted = std::make_shared<Scripted>(loop);
  furnish = [&](Instance& instance) { instance.server.backend(scripted); };
  add("late", Sharing::shared);
  const auto one = enter();
  EXPECT_EQ(tools(one).size(), 0u);
  ASSERT_TRUE(comes_true([&] { return scripted->asked; }));
  scripted->results["tools/list"] = R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}]})";
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_TRUE(has(one, "late__t"));
}

TEST_F(GatewayTest, a_server_that_says_all_the_time_that_it_has_changed_is_asked_now_and_then) {
  auto lists = std::make_shared<int>(0);
  furnish = [this, lists](Instance& made) {
    auto restless = std::make_shared<Scripted>(loop);
    restless->results["tools/list"] = R"({"tools":[]})";
    restless->results["prompts/list"] = R"({"prompts":[]})";
    restless->on_asked = [&made, lists](std::string_view method) {
      if (method != "tools/list") return;
      ++*lists;
      EXPECT_TRUE(made.peer->post_notification("notifications/tools/list_changed", json::Raw()));
    };
    made.server.backend(restless);
  };
  add("a", Sharing::shared);
  const Clock::time_point began = Clock::now();
  enter();
  EXPECT_TRUE(comes_true([&] { return *lists >= 4; }));
  EXPECT_GE(Clock::now() - began, 300ms);
}

TEST_F(GatewayTest, HealthReportsTurnsThatHoldTheLoop) {
  add("s", Sharing::shared);
  const auto client = enter();
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
  EXPECT_TRUE(comes_true([&] { return burnt; }));
  EXPECT_TRUE(comes_true([&] { return loop.turns().slow_turns() > 0; }));
  const json::Raw health = gateway->health();
  const json::View meter = json::View(health)["loop"];
  EXPECT_GE(meter["longest_turn_ms"].as_int().value_or(-1), 50);
  EXPECT_GE(meter["slow_turns"].as_int().value_or(-1), 1);
}

TEST_F(GatewayTest, ReloadAddsAndRemovesServersAndTellsClients) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  const Config both = config;
  config.servers.pop_back();
  const auto one = enter();
  EXPECT_TRUE(has(one, "a__which"));
  Config next = both;
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "b__which"), "0") << "a call waits for the new server";
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 1; }));
  EXPECT_EQ(servers["a"]->size(), 1u) << "what has not changed is not touched";
  next.servers.erase(next.servers.begin());
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_TRUE(comes_true([&] { return one->count(kToolsChanged) == 2; }));
  EXPECT_FALSE(has(one, "a__which"));
  EXPECT_TRUE(call(one, "a__which").starts_with("<Unknown tool"));
  ASSERT_TRUE(loop.block_on(gateway->reload(both)));
  EXPECT_EQ(call(one, "a__which"), "1") << "it is back";
}

TEST_F(GatewayTest, ReloadReplacesAServerThatHasChangedAndLetsItsCallsFinish) {
  add("a", Sharing::shared);
  const auto one = enter();
  EXPECT_EQ(call(one, "a__which"), "0");
  bool over = false;
  loop.spawn(wait_for(one->client, "a__wait", mcp::ToolCallOptions(), &over));
  ASSERT_TRUE(comes_true([&] { return instance("a", 0).waiting; }));
  Config next = config;
  next.servers.front().max_calls += 1;
  ASSERT_TRUE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "a__which"), "1");
  EXPECT_FALSE(over);
  EXPECT_FALSE(instance("a", 0).cancelled);
  loop.block_on(gateway->shutdown(0ms));
  EXPECT_TRUE(comes_true([&] { return over; }));
}

TEST_F(GatewayTest, ReloadWithANameThatCannotBeUsedChangesNothing) {
  add("a", Sharing::shared);
  const auto one = enter();
  EXPECT_EQ(call(one, "a__which"), "0");
  Config next = config;
  next.servers.front().name = "a__b";
  EXPECT_FALSE(loop.block_on(gateway->reload(next)));
  EXPECT_EQ(call(one, "a__which"), "0");
}

TEST_F(GatewayTest, shutting_down_does_not_wait_for_lists) {
  auto silent = std::make_shared<Scripted>(loop);
  silent->results["tools/list"] = "";
  furnish = [&](Instance& instance) { instance.server.backend(silent); };
  add("a", Sharing::shared);
  enter();
  ASSERT_TRUE(comes_true([&] { return silent->asked; }));
  loop.block_on(gateway->shutdown(1h));
}

}  // namespace
}  // namespace fairlead::gateway
