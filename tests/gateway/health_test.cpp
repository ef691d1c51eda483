#include "gateway/health_report_builder.hpp"

#include "gateway/store_fixture.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class HealthTest : public StoreTest {
 protected:
  Health report(bool draining = false, bool with_details = true) {
    HealthReportBuilder builder(*pool, *servers, HealthReportBuilder::Reader{with_details, nullptr});
    while (builder.add_slice()) {
    }
    GatewayStats stats;
    stats.session_count = 3;
    stats.uptime = 90s;
    stats.gateway_draining = draining;
    return std::move(builder).finish(stats);
  }
  // Returns the member `key` of the first server in the report.
  static std::string server_member(const Health& health, std::string_view key) {
    const std::string text = health.text();
    return json::View(text)["servers"][0][key].as_string().value_or("");
  }
  static void fail(const std::shared_ptr<ServerEntry>& entry) {
    entry->fetch_state.attempted = true;
    entry->fetch_state.attempt_error = Error(ErrorKind::spawn, "no such program");
    entry->fetch_state.problem = "no such program at /secret/path";
  }
};

TEST_F(HealthTest, GatewayWithoutServersIsOk) {
  const Health health = report();
  EXPECT_EQ(health.status, HealthStatus::ok);
  const std::string text = health.text();
  EXPECT_EQ(json::View(text)["uptimeSeconds"].as_int(), 90);
  EXPECT_EQ(json::View(text)["counts"]["sessions"].as_int(), 3);
}

TEST_F(HealthTest, StatusIsFailedOnlyWhenEveryEnabledServerFailed) {
  const auto broken = add("broken");
  EXPECT_EQ(report().status, HealthStatus::ok) << "the server is starting";
  EXPECT_EQ(server_member(report(), "status"), "starting");
  fail(broken);
  EXPECT_EQ(report().status, HealthStatus::failed);
  publish_list(add("works"), ListKind::tools, kToolText);
  EXPECT_EQ(report().status, HealthStatus::degraded);
  ASSERT_TRUE(servers->disable("works"));
  EXPECT_EQ(report().status, HealthStatus::failed) << "a disabled server does not count";
  ASSERT_TRUE(servers->disable("broken"));
  EXPECT_EQ(report().status, HealthStatus::ok);
}

TEST_F(HealthTest, StatusIsDrainingWhileGatewayStopsForAnyServerState) {
  fail(add("broken"));
  EXPECT_EQ(report(true).status, HealthStatus::draining);
}

TEST_F(HealthTest, ServerIsDegradedWhenAllItsEntriesAreOmitted) {
  publish_list(add("a"), ListKind::tools, R"({"name":"t","inputSchema":7})");
  const Health health = report();
  EXPECT_EQ(health.status, HealthStatus::degraded);
  EXPECT_EQ(server_member(health, "lists"), "none of its 1 tools is valid (see the log)");
}

TEST_F(HealthTest, ErrorTextsAreReportedOnlyWithDetails) {
  fail(add("broken"));
  EXPECT_EQ(server_member(report(), "lists"), "no such program at /secret/path");
  const Health terse = report(false, false);
  EXPECT_EQ(server_member(terse, "lists"), "some lists are missing");
  EXPECT_EQ(terse.text().find("/secret"), std::string::npos);
}

TEST_F(HealthTest, LongServerErrorIsTruncated) {
  const auto broken = add("broken");
  fail(broken);
  broken->fetch_state.problem = std::string(100'000, 'x');
  EXPECT_EQ(server_member(report(), "lists"), std::string(Limits::kMaxLogFieldBytes, 'x') + "...");
}

// Returns the names of the servers in a report, in order.
std::vector<std::string> names_in(const Health& health) {
  const std::string text = health.text();
  std::vector<std::string> names;
  json::View(text)["servers"].each_element([&](json::View server) {
    names.push_back(server["name"].as_string().value_or(""));
    return true;
  });
  return names;
}

TEST_F(HealthTest, ServersChangedBetweenSlicesAreReportedAtMostOnce) {
  constexpr std::size_t kCount = 2000;
  const auto name = [](std::size_t i) { return "s" + std::to_string(10'000 + i); };
  for (std::size_t i = 0; i < kCount; ++i) add(name(i));
  HealthReportBuilder builder(*pool, *servers, HealthReportBuilder::Reader{true, nullptr});
  ASSERT_TRUE(builder.add_slice()) << "there are too many servers for one slice";
  pool::ServerSpec changed;
  changed.name = name(0);  // reported already
  changed.max_calls = 7;
  ASSERT_TRUE(servers->update(changed));
  ASSERT_TRUE(servers->remove(name(1)));
  ASSERT_TRUE(servers->remove(name(kCount - 1)));  // not reported yet
  add(name(1));
  add("a");  // before the servers that are already reported
  add("t");
  while (builder.add_slice()) {
  }
  const Health health = std::move(builder).finish(GatewayStats());
  const std::vector<std::string> names = names_in(health);
  std::vector<std::string> expected;
  for (std::size_t i = 0; i + 1 < kCount; ++i) expected.push_back(name(i));
  expected.emplace_back("t");
  EXPECT_EQ(names, expected);
  const std::string text = health.text();
  EXPECT_EQ(json::View(text)["counts"]["servers"]["starting"].as_int(), static_cast<int>(kCount));
}

TEST_F(HealthTest, ChunksOfLongReportAreBoundedByChunkSize) {
  for (int i = 0; i < 100; ++i) {
    const auto broken = add("s" + std::to_string(i));
    fail(broken);
    broken->fetch_state.problem = std::string(Limits::kMaxLogFieldBytes, 'x');
  }
  const Health health = report();
  EXPECT_EQ(names_in(health).size(), 100u);
  EXPECT_GT(health.report.size(), 100 * Limits::kMaxLogFieldBytes / (2 * HealthReportBuilder::kChunkBytes));
  for (const Bytes& chunk : health.report) EXPECT_LT(chunk.size(), 2 * HealthReportBuilder::kChunkBytes);
}

}  // namespace
}  // namespace fairlead::gateway
