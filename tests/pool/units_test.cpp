// Units of an upstream that need no server.
#include <cstdlib>

#include "pool/active_calls.hpp"
#include "pool/connection_use.hpp"
#include "pool/harness.hpp"
#include "pool/health_monitor.hpp"
#include "pool/referenced_variables.hpp"
#include "support/turns.hpp"

namespace fairlead::pool {
namespace {

class ReferencedVariablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("POOL_TEST_A", "a", 1);
    ::setenv("POOL_TEST_B", "b", 1);
  }
  void TearDown() override {
    ::unsetenv("POOL_TEST_A");
    ::unsetenv("POOL_TEST_B");
  }

  using Names = std::vector<std::string>;
  ReferencedVariables variables;
};

TEST_F(ReferencedVariablesTest, VariableIsWithheldWhileOnlyOtherServersReferToIt) {
  variables.set("one", {"POOL_TEST_A", "POOL_TEST_UNSET"});
  variables.set("two", {"POOL_TEST_A", "POOL_TEST_B"});
  EXPECT_EQ(variables.withheld_from("one"), Names{"POOL_TEST_B"});
  EXPECT_EQ(variables.withheld_from("two"), Names{});
  EXPECT_EQ(variables.withheld_from("other").size(), 2u);
  variables.set("two", {"POOL_TEST_B"});
  EXPECT_EQ(variables.withheld_from("two"), Names{"POOL_TEST_A"});
  variables.erase("two");
  EXPECT_EQ(variables.withheld_from("other"), Names{"POOL_TEST_A"});
  variables.erase("one");
  variables.erase("one");
  EXPECT_EQ(variables.withheld_from("other"), Names{});
}

// What it takes must not grow with the number of servers: it is done at the start of each process.
TEST_F(ReferencedVariablesTest, CostOfAStartDoesNotGrowWithTheNumberOfServers) {
  const auto add_servers = [this](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      variables.set("s" + std::to_string(i), {"POOL_TEST_REFERENCE_" + std::to_string(i)});
  };
  const auto cost = [this] {
    return test::cpu_time([this] {
      for (int i = 0; i < 20; ++i) variables.withheld_from("s0");
    });
  };
  add_servers(0, 200);
  const auto few = cost();
  add_servers(200, 20'000);
  EXPECT_LT(cost(), 20 * few) << "with 100 times as many servers";
}

class ActiveCallsTest : public ::testing::Test {
 protected:
  const Target target{"server", "session", "user"};
  const mcp::VerbatimRequest request{tool_call("echo")};
  ActiveCalls calls;
  ActiveCalls::Entry call{target, "tools/call", nullptr, &request};
  ActiveCalls::Entry lease{target, "", nullptr, nullptr};

  void TearDown() override {
    if (call.is_linked()) calls.remove(call);
    if (lease.is_linked()) calls.remove(lease);
  }
};

TEST_F(ActiveCallsTest, IsUnusedOnlyWithoutCallsAndHolds) {
  EXPECT_TRUE(calls.unused());
  calls.add(call);
  calls.begin_hold();
  calls.remove(call);
  EXPECT_TRUE(calls.empty());
  EXPECT_FALSE(calls.unused());
  calls.end_hold();
  EXPECT_TRUE(calls.unused());
}

TEST_F(ActiveCallsTest, ToolsAndRunningCallsAreThoseUnderWay) {
  calls.add(lease);
  EXPECT_TRUE(calls.only_leases());
  EXPECT_TRUE(calls.tools().empty());
  calls.add(call);
  EXPECT_FALSE(calls.only_leases());
  EXPECT_EQ(calls.tools(), std::set<std::string>{"echo"});
  ASSERT_EQ(calls.running().size(), 2u);
  EXPECT_EQ(calls.running().at(1).session, "session");
  EXPECT_EQ(calls.running().at(1).method, "tools/call");
}

TEST_F(ActiveCallsTest, CallerOfClientCallsIsTheLastOneWhileAllAreOfOneSession) {
  const Target other{"server", "other"};
  const auto caller = [] { return std::make_shared<int>(); };
  std::vector<std::unique_ptr<ActiveCalls::Entry>> entries;
  for (const Target* const of : {&target, &target, &other, &target})
    entries.push_back(std::make_unique<ActiveCalls::Entry>(*of, "tools/call", caller(), &request));
  calls.add(call);  // has no caller
  EXPECT_EQ(calls.of_clients().count, 0u);
  EXPECT_EQ(calls.of_clients().caller, nullptr);
  calls.add(*entries[0]);
  calls.add(lease);
  calls.add(*entries[1]);
  EXPECT_EQ(calls.of_clients().count, 2u);
  EXPECT_EQ(calls.of_clients().caller, entries[1]->caller);
  calls.add(*entries[2]);
  EXPECT_EQ(calls.of_clients().caller, nullptr) << "of two sessions";
  calls.add(*entries[3]);
  calls.remove(*entries[2]);
  EXPECT_EQ(calls.of_clients().caller, entries[3]->caller) << "of one session again";
  calls.add(*entries[2]);
  for (const std::size_t ended : {0u, 3u, 1u}) calls.remove(*entries[ended]);
  EXPECT_EQ(calls.of_clients().count, 1u);
  EXPECT_EQ(calls.of_clients().caller, entries[2]->caller);
  calls.remove(*entries[2]);
  EXPECT_EQ(calls.of_clients().caller, nullptr);
}

TEST_F(ActiveCallsTest, ClientCallsWithoutASessionHaveACallerOnlyWhileThereIsOne) {
  const Target no_session{"server"};
  ActiveCalls::Entry one(no_session, "tools/call", std::make_shared<int>(1), &request);
  ActiveCalls::Entry two(no_session, "tools/call", std::make_shared<int>(2), &request);
  calls.add(one);
  EXPECT_EQ(calls.of_clients().caller, one.caller);
  calls.add(two);
  EXPECT_EQ(calls.of_clients().count, 2u);
  EXPECT_EQ(calls.of_clients().caller, nullptr);
  calls.remove(one);
  EXPECT_EQ(calls.of_clients().caller, two.caller);
  calls.remove(two);
}

TEST_F(ActiveCallsTest, AnyUntilCountsOnlyCallsThatWereAddedBefore) {
  calls.add(lease);
  const std::uint64_t before = calls.last_number();
  calls.add(call);
  EXPECT_TRUE(calls.any_until(before));
  calls.remove(lease);
  EXPECT_FALSE(calls.any_until(before));
}

TEST(ConnectionUseTest, BelongsToASessionUntilAnotherCallsOrItEnds) {
  ConnectionUse use;
  EXPECT_EQ(use.only_session(), "");
  use.note_call("one");
  EXPECT_EQ(use.only_session(), "one");
  use.sessions_ended({"another"});
  EXPECT_EQ(use.only_session(), "one");
  use.note_call("another");
  EXPECT_EQ(use.only_session(), std::nullopt);
  use.reset();
  EXPECT_FALSE(use.used());
  use.note_call("one");
  use.sessions_ended({"one"});
  EXPECT_EQ(use.only_session(), std::nullopt);
}

class HealthMonitorTest : public ActiveCallsTest {
 protected:
  Loop loop;
  ServerSpec spec;
  std::vector<std::string> done;
  std::optional<HealthMonitor> monitor;

  // `ping` is answered at once if `answers`.
  void start(bool answers) {
    HealthMonitor::Actions actions;
    actions.ping = [this, answers] {
      done.emplace_back("ping");
      if (answers) monitor->sign_of_life();
    };
    actions.silent = [this] { done.emplace_back("silent"); };
    actions.unresponsive = [this] { done.emplace_back("unresponsive"); };
    actions.idle = [this] {
      done.emplace_back("idle");
      monitor->stop();
    };
    monitor.emplace(loop, spec, calls, std::move(actions));
    monitor->start();
  }
  bool comes_to(const std::vector<std::string>& expected) {
    return loop.block_on(eventually(
        loop, [&] { return done == expected; }, kPatience));
  }
  // The server works on a call and does not answer a ping in time.
  void fall_silent() {
    spec.clocks.ping = 1ms;
    calls.add(call);
    start(false);
    monitor->ping();
    EXPECT_TRUE(comes_to({"ping", "silent"}));
  }
};

TEST_F(HealthMonitorTest, SilentConnectionIsUnresponsiveOnlyWhenEarlierCallsHaveEnded) {
  fall_silent();
  EXPECT_FALSE(monitor->healthy(Clock::now()));
  calls.remove(call);
  monitor->replace_if_unresponsive();
  EXPECT_EQ(done.back(), "unresponsive");
}

TEST_F(HealthMonitorTest, SignOfLifeAfterASilentPingKeepsTheConnection) {
  fall_silent();
  monitor->sign_of_life();
  calls.remove(call);
  monitor->replace_if_unresponsive();
  EXPECT_EQ(done.back(), "silent");
  EXPECT_TRUE(monitor->healthy(Clock::now()));
}

TEST_F(HealthMonitorTest, ConnectionWithoutASignOfLifeIsPingedAndStaysWhenItAnswers) {
  spec.clocks.health = 1ms;
  spec.clocks.idle_stop = 0ms;
  start(true);
  EXPECT_TRUE(loop.block_on(eventually(
      loop, [&] { return done.size() >= 2; }, kPatience)));
  EXPECT_EQ(std::set<std::string>(done.begin(), done.end()), std::set<std::string>{"ping"});
}

TEST_F(HealthMonitorTest, UnusedConnectionIsIdleAfterIdleStop) {
  spec.clocks.health = 0ms;
  spec.clocks.idle_stop = 1ms;
  calls.mark_idle(Clock::now());
  start(true);
  EXPECT_TRUE(comes_to({"idle"}));
}

}  // namespace
}  // namespace fairlead::pool
