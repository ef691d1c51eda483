// Units of an upstream that are tested without a server.
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

// withheld_from() is called at the start of each process, so its cost must not grow with the number of
// servers.
TEST_F(ReferencedVariablesTest, CostPerStartDoesNotGrowWithNumberOfServers) {
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

TEST_F(ActiveCallsTest, IsUnusedOnlyWithoutCallsAndKeepAlives) {
  EXPECT_TRUE(calls.unused());
  calls.add(call);
  calls.add_keep_alive();
  calls.remove(call);
  EXPECT_TRUE(calls.empty());
  EXPECT_FALSE(calls.unused());
  calls.remove_keep_alive();
  EXPECT_TRUE(calls.unused());
}

TEST_F(ActiveCallsTest, CalledToolsAndInfosListActiveCalls) {
  calls.add(lease);
  EXPECT_TRUE(calls.only_leases());
  EXPECT_TRUE(calls.called_tools().empty());
  calls.add(call);
  EXPECT_FALSE(calls.only_leases());
  EXPECT_EQ(calls.called_tools(), std::set<std::string>{"echo"});
  ASSERT_EQ(calls.infos().size(), 2u);
  EXPECT_EQ(calls.infos().at(1).session, "session");
  EXPECT_EQ(calls.infos().at(1).method, "tools/call");
}

TEST_F(ActiveCallsTest, CallContextIsThatOfLastCallWhileAllCallsBelongToOneSession) {
  const Target other{"server", "other"};
  const auto new_context = [] { return std::make_shared<int>(); };
  std::vector<std::unique_ptr<ActiveCalls::Entry>> entries;
  for (const Target* const of : {&target, &target, &other, &target})
    entries.push_back(std::make_unique<ActiveCalls::Entry>(*of, "tools/call", new_context(), &request));
  calls.add(call);  // has no call context
  EXPECT_EQ(calls.client_call_summary().count, 0u);
  EXPECT_EQ(calls.client_call_summary().call_context, nullptr);
  calls.add(*entries[0]);
  calls.add(lease);
  calls.add(*entries[1]);
  EXPECT_EQ(calls.client_call_summary().count, 2u);
  EXPECT_EQ(calls.client_call_summary().call_context, entries[1]->call_context);
  calls.add(*entries[2]);
  EXPECT_EQ(calls.client_call_summary().call_context, nullptr) << "of two sessions";
  calls.add(*entries[3]);
  calls.remove(*entries[2]);
  EXPECT_EQ(calls.client_call_summary().call_context, entries[3]->call_context) << "of one session again";
  calls.add(*entries[2]);
  for (const std::size_t ended : {0u, 3u, 1u}) calls.remove(*entries[ended]);
  EXPECT_EQ(calls.client_call_summary().count, 1u);
  EXPECT_EQ(calls.client_call_summary().call_context, entries[2]->call_context);
  calls.remove(*entries[2]);
  EXPECT_EQ(calls.client_call_summary().call_context, nullptr);
}

TEST_F(ActiveCallsTest, CallContextOfCallsWithoutSessionIsKnownOnlyIfThereIsOneCall) {
  const Target no_session{"server"};
  ActiveCalls::Entry one(no_session, "tools/call", std::make_shared<int>(1), &request);
  ActiveCalls::Entry two(no_session, "tools/call", std::make_shared<int>(2), &request);
  calls.add(one);
  EXPECT_EQ(calls.client_call_summary().call_context, one.call_context);
  calls.add(two);
  EXPECT_EQ(calls.client_call_summary().count, 2u);
  EXPECT_EQ(calls.client_call_summary().call_context, nullptr);
  calls.remove(one);
  EXPECT_EQ(calls.client_call_summary().call_context, two.call_context);
  calls.remove(two);
}

TEST_F(ActiveCallsTest, AnyUpToIgnoresLaterCalls) {
  calls.add(lease);
  const std::uint64_t before = calls.last_number();
  calls.add(call);
  EXPECT_TRUE(calls.any_up_to(before));
  calls.remove(lease);
  EXPECT_FALSE(calls.any_up_to(before));
}

TEST(ConnectionUseTest, OnlySessionIsResetByAnotherSessionOrItsEnd) {
  ConnectionUse use;
  EXPECT_EQ(use.only_session(), "");
  use.record_call("one");
  EXPECT_EQ(use.only_session(), "one");
  use.on_sessions_ended({"another"});
  EXPECT_EQ(use.only_session(), "one");
  use.record_call("another");
  EXPECT_EQ(use.only_session(), std::nullopt);
  use.reset();
  EXPECT_FALSE(use.has_been_called());
  use.record_call("one");
  use.on_sessions_ended({"one"});
  EXPECT_EQ(use.only_session(), std::nullopt);
}

class HealthMonitorTest : public ActiveCallsTest {
 protected:
  Loop loop;
  ServerSpec spec;
  std::vector<std::string> actions_run;
  std::optional<HealthMonitor> monitor;

  // Starts the monitor. Pings are answered at once if `answers`.
  void start(bool answers) {
    HealthMonitor::Actions actions;
    actions.send_ping = [this, answers] {
      actions_run.emplace_back("ping");
      if (answers) monitor->record_activity();
    };
    actions.on_ping_timeout = [this] { actions_run.emplace_back("ping_timed_out"); };
    actions.on_unresponsive = [this] { actions_run.emplace_back("unresponsive"); };
    actions.on_idle = [this] {
      actions_run.emplace_back("idle");
      monitor->stop();
    };
    monitor.emplace(loop, spec, calls, std::move(actions));
    monitor->start();
  }
  bool wait_for_actions(const std::vector<std::string>& expected) {
    return loop.block_on(eventually(
        loop, [&] { return actions_run == expected; }, kTestTimeout));
  }
  // Simulates a server that is busy with a call and does not answer a ping in time.
  void miss_ping() {
    spec.clocks.ping = 1ms;
    calls.add(call);
    start(false);
    monitor->ping();
    EXPECT_TRUE(wait_for_actions({"ping", "ping_timed_out"}));
  }
};

TEST_F(HealthMonitorTest, ConnectionIsUnresponsiveOnlyAfterEarlierCallsHaveEnded) {
  miss_ping();
  EXPECT_FALSE(monitor->healthy(Clock::now()));
  calls.remove(call);
  monitor->replace_if_unresponsive();
  EXPECT_EQ(actions_run.back(), "unresponsive");
}

TEST_F(HealthMonitorTest, ActivityAfterPingTimeoutKeepsConnection) {
  miss_ping();
  monitor->record_activity();
  calls.remove(call);
  monitor->replace_if_unresponsive();
  EXPECT_EQ(actions_run.back(), "ping_timed_out");
  EXPECT_TRUE(monitor->healthy(Clock::now()));
}

TEST_F(HealthMonitorTest, InactiveConnectionIsPingedAndKeptWhenItAnswers) {
  spec.clocks.health = 1ms;
  spec.clocks.idle_stop = 0ms;
  start(true);
  EXPECT_TRUE(loop.block_on(eventually(
      loop, [&] { return actions_run.size() >= 2; }, kTestTimeout)));
  EXPECT_EQ(std::set<std::string>(actions_run.begin(), actions_run.end()), std::set<std::string>{"ping"});
}

TEST_F(HealthMonitorTest, UnusedConnectionIsReportedIdleAfterIdleStop) {
  spec.clocks.health = 0ms;
  spec.clocks.idle_stop = 1ms;
  calls.mark_idle(Clock::now());
  start(true);
  EXPECT_TRUE(wait_for_actions({"idle"}));
}

}  // namespace
}  // namespace fairlead::pool
