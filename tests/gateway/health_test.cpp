#include "gateway/health.hpp"

#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class HealthTest : public UnitsTest {
 protected:
  Health report(bool stopping = false, bool details = true) {
    return health_report(
        HealthInputs{*pool, *servers, *catalogue->current(), loop.turns(), 3, 90s, stopping, details});
  }
  // Of the first server, its member `key`.
  static std::string server_says(const Health& health, std::string_view key) {
    return json::View(health.report)["servers"][0][key].as_string().value_or("");
  }
  static void fail(const std::shared_ptr<ServerEntry>& entry) {
    entry->listing.attempted = true;
    entry->listing.failure = Error(ErrorKind::spawn, "no such program");
    entry->listing.problem = "no such program at /secret/path";
  }
};

TEST_F(HealthTest, GatewayWithoutServersIsOk) {
  const Health health = report();
  EXPECT_EQ(health.status, HealthStatus::ok);
  EXPECT_EQ(json::View(health.report)["uptimeSeconds"].as_int(), 90);
  EXPECT_EQ(json::View(health.report)["counts"]["sessions"].as_int(), 3);
}

TEST_F(HealthTest, StatusIsFailedOnlyWhenEveryEnabledServerIs) {
  const auto broken = add("broken");
  EXPECT_EQ(report().status, HealthStatus::ok) << "it is starting";
  EXPECT_EQ(server_says(report(), "status"), "starting");
  fail(broken);
  EXPECT_EQ(report().status, HealthStatus::failed);
  list(add("works"), Kind::tools, kToolText);
  EXPECT_EQ(report().status, HealthStatus::degraded);
  ASSERT_TRUE(servers->disable("works"));
  EXPECT_EQ(report().status, HealthStatus::failed) << "a disabled server does not count";
  ASSERT_TRUE(servers->disable("broken"));
  EXPECT_EQ(report().status, HealthStatus::ok);
}

TEST_F(HealthTest, StoppingGatewayIsDrainingWhateverItsServersAre) {
  fail(add("broken"));
  EXPECT_EQ(report(true).status, HealthStatus::draining);
}

TEST_F(HealthTest, ServerWhoseEntriesCannotBeOfferedIsDegraded) {
  list(add("a"), Kind::tools, R"({"name":"t","inputSchema":7})");
  const Health health = report();
  EXPECT_EQ(health.status, HealthStatus::degraded);
  EXPECT_EQ(server_says(health, "lists"), "none of its 1 tools can be offered (see the log)");
}

TEST_F(HealthTest, ProblemsAreToldInDetailOnlyToThoseWhoMayKnow) {
  fail(add("broken"));
  EXPECT_EQ(server_says(report(), "lists"), "no such program at /secret/path");
  const Health terse = report(false, false);
  EXPECT_EQ(server_says(terse, "lists"), "not all of its lists could be had");
  EXPECT_EQ(terse.report.text().find("/secret"), std::string_view::npos);
}

TEST_F(HealthTest, LongErrorOfAServerIsTruncated) {
  const auto broken = add("broken");
  fail(broken);
  broken->listing.problem = std::string(100'000, 'x');
  EXPECT_EQ(server_says(report(), "lists"), std::string(Limits::kMaxLogFieldBytes, 'x') + "...");
}

}  // namespace
}  // namespace fairlead::gateway
