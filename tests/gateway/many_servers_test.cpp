// Thousands of servers are changed, reported and stopped in slices.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/view.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kServerCount = 3000;    // needs more than one slice
constexpr std::size_t kReportedCount = 1000;  // needs more than one slice of a health report

class ThousandsOfServersTest : public testing::Test {
 protected:
  ~ThousandsOfServersTest() override {
    if (gateway) loop.block_on(gateway->shutdown(0ms));
  }

  // Returns servers that cannot be started because their connector does not exist.
  static Config config_of(std::size_t count) {
    Config config;
    for (std::size_t i = 0; i < count; ++i) {
      pool::ServerSpec spec;
      spec.name = "s" + std::to_string(i);
      spec.transport = pool::ConnectorName{"none"};
      config.servers.push_back(std::move(spec));
    }
    return config;
  }

  void start(std::size_t count) { start(config_of(count)); }
  void start(Config config) {
    Result<std::shared_ptr<Gateway>> created = Gateway::create(loop, std::move(config));
    ASSERT_TRUE(created);
    gateway = *created;
  }
  // Disabled servers are reported but never started.
  void start_disabled(std::size_t count) {
    Config config = config_of(count);
    for (pool::ServerSpec& spec : config.servers) spec.enabled = false;
    start(std::move(config));
  }

  std::size_t servers_in(pool::UpstreamState state) const {
    const auto all = gateway->pool().status();
    return static_cast<std::size_t>(std::ranges::count(all, state, &pool::UpstreamStatus::state));
  }

  Loop loop;
  std::shared_ptr<Gateway> gateway;
};

Task<void> store_outcome(Task<Result<void>> task, std::optional<Result<void>>* outcome) {
  const Result<void> result = co_await task;
  outcome->emplace(result);
}

Task<void> store_health(Task<Result<HealthPtr>> task, std::optional<Result<HealthPtr>>* outcome) {
  const Result<HealthPtr> result = co_await task;
  outcome->emplace(result);
}

Task<void> store_end(Task<void> task, bool* ended) {
  co_await task;
  *ended = true;
}

TEST_F(ThousandsOfServersTest, ReloadAddsUpdatesAndRemovesServersInSlices) {
  start(0);
  Config updated = config_of(kServerCount);
  for (pool::ServerSpec& spec : updated.servers) spec.max_calls += 1;
  for (const Config& next : {config_of(kServerCount), updated, Config()}) {
    std::optional<Result<void>> outcome;
    std::optional<bool> done_in_first_turn;
    test::expect_short_turns(loop, [&] {
      loop.spawn(store_outcome(gateway->reload(next), &outcome));
      loop.post([&] { done_in_first_turn = outcome.has_value(); });
      loop.run_until([&] { return outcome && done_in_first_turn; });
    });
    EXPECT_TRUE(*outcome);
    EXPECT_EQ(done_in_first_turn, false);
  }
}

TEST_F(ThousandsOfServersTest, LaterReloadCancelsReloadInProgress) {
  start(0);
  std::optional<Result<void>> first;
  std::optional<Result<void>> second;
  loop.spawn(store_outcome(gateway->reload(config_of(kServerCount)), &first));
  loop.spawn(store_outcome(gateway->reload(config_of(1)), &second));
  loop.run_until([&] { return first && second; });
  ASSERT_FALSE(*first);
  EXPECT_EQ(first->error().kind(), ErrorKind::cancelled);
  EXPECT_TRUE(*second);
  EXPECT_FALSE(gateway->remove_server("s1"));
  EXPECT_TRUE(gateway->remove_server("s0"));
}

TEST_F(ThousandsOfServersTest, RejectedReloadDoesNotCancelReloadInProgress) {
  start(0);
  std::optional<Result<void>> first;
  std::optional<Result<void>> refused;
  Config unusable;
  unusable.servers.emplace_back().name = "a__b";
  loop.spawn(store_outcome(gateway->reload(config_of(kServerCount)), &first));
  loop.spawn(store_outcome(gateway->reload(unusable), &refused));
  loop.run_until([&] { return first && refused; });
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*refused);
  EXPECT_TRUE(gateway->remove_server("s" + std::to_string(kServerCount - 1)));
}

TEST_F(ThousandsOfServersTest, ShutdownCancelsReloadInProgress) {
  start(0);
  std::optional<Result<void>> outcome;
  bool ended = false;
  loop.spawn(store_outcome(gateway->reload(config_of(kServerCount)), &outcome));
  loop.spawn(store_end(gateway->shutdown(0ms), &ended));
  loop.run_until([&] { return outcome && ended; });
  EXPECT_FALSE(gateway->remove_server("s" + std::to_string(kServerCount - 1)));
}

TEST_F(ThousandsOfServersTest, HealthReportIsBuiltInSlices) {
  start_disabled(kReportedCount);
  std::optional<Result<HealthPtr>> outcome;
  std::optional<bool> done_in_first_turn;
  test::expect_short_turns(loop, [&] {
    loop.spawn(store_health(gateway->health_for(Principal(), std::stop_token()), &outcome));
    loop.post([&] { done_in_first_turn = outcome.has_value(); });
    loop.run_until([&] { return outcome && done_in_first_turn; });
  });
  EXPECT_EQ(done_in_first_turn, false);
  ASSERT_TRUE(*outcome);
  const std::string text = (**outcome)->text();
  EXPECT_EQ(json::View(text)["servers"].size(), kReportedCount);
}

TEST_F(ThousandsOfServersTest, HealthRequestsDuringReportShareNextReport) {
  start_disabled(kReportedCount);
  std::vector<std::optional<Result<HealthPtr>>> outcomes(20);
  for (auto& outcome : outcomes)
    loop.post(
        [&] { loop.spawn(store_health(gateway->health_for(Principal(), std::stop_token()), &outcome)); });
  loop.run_until(
      [&] { return std::ranges::all_of(outcomes, [](const auto& one) { return one.has_value(); }); });
  for (const auto& outcome : outcomes) ASSERT_TRUE(*outcome);
  EXPECT_NE(**outcomes[0], **outcomes[1])
      << "a report includes everything that happened before it was requested";
  for (std::size_t i = 2; i < outcomes.size(); ++i) EXPECT_EQ(**outcomes[i], **outcomes[1]);
}

TEST_F(ThousandsOfServersTest, HealthReportIsCancelledWhenAllItsClientsHaveDisconnected) {
  start_disabled(kReportedCount);
  std::stop_source first;
  std::stop_source second;
  std::optional<Result<HealthPtr>> one;
  std::optional<Result<HealthPtr>> two;
  std::optional<Result<HealthPtr>> other;
  loop.post([&] {
    loop.spawn(store_health(gateway->health_for(Principal(), first.get_token()), &one));
    loop.spawn(store_health(gateway->health_for(Principal(), second.get_token()), &two));
    loop.spawn(store_health(gateway->health_for(Principal(), std::stop_token()), &other));
    first.request_stop();
    second.request_stop();
  });
  loop.run_until([&] { return one && two && other; });
  ASSERT_FALSE(*one);
  EXPECT_EQ(one->error().kind(), ErrorKind::cancelled);
  ASSERT_TRUE(*two) << "another client waits for the same report";
  EXPECT_EQ(**two, **other);
}

TEST_F(ThousandsOfServersTest, ShutdownStopsServersInSlices) {
  start(kServerCount);
  std::size_t turns = 0;
  loop.run_until([&] { return ++turns > kServerCount; });  // each has an upstream that waits or has failed
  bool ended = false;
  std::optional<std::size_t> after_first_slice;
  test::expect_short_turns(loop, [&] {
    loop.spawn(store_end(gateway->shutdown(0ms), &ended));
    loop.post([&] { after_first_slice = servers_in(pool::UpstreamState::stopped); });
    loop.run_until([&] { return ended && after_first_slice; });
  });
  EXPECT_LT(*after_first_slice, kServerCount);
  EXPECT_EQ(gateway->pool().process_count(), 0u);
}

TEST_F(ThousandsOfServersTest, MoreThanMaxServersAreRejected) {
  std::string text = R"({"servers":{)";
  for (std::size_t i = 0; i <= kMaxServers; ++i)
    text += (i ? ",\"s" : "\"s") + std::to_string(i) + R"(":{"command":"x"})";
  const Result<Config> config = parse_config(text + "}}", "f");
  ASSERT_FALSE(config);
  // The column is that of the server that is one too many.
  const std::string column = std::to_string(text.find("\"s20000\"") + 1);
  EXPECT_EQ(config.error().message(),
            "f:1:" + column + ": `servers.s20000` exceeds the limit max_servers (20000)");
  start(1);
  const Result<void> reloaded = loop.block_on(gateway->reload(config_of(kMaxServers + 1)));
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().message(), "more servers than max_servers (20000)");
}

}  // namespace
}  // namespace fairlead::gateway
