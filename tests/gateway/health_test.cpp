#include "gateway/health.hpp"

#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;

class HealthTest : public UnitsTest {
 protected:
  Health report(bool stopping = false, bool details = true) {
    HealthReport report(*pool, *servers, details);
    while (report.add_slice()) {
    }
    HealthFigures figures;
    figures.sessions = 3;
    figures.uptime = 90s;
    figures.stopping = stopping;
    return std::move(report).finish(figures);
  }
  // Of the first server, its member `key`.
  static std::string server_says(const Health& health, std::string_view key) {
    const std::string text = health.text();
    return json::View(text)["servers"][0][key].as_string().value_or("");
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
  const std::string text = health.text();
  EXPECT_EQ(json::View(text)["uptimeSeconds"].as_int(), 90);
  EXPECT_EQ(json::View(text)["counts"]["sessions"].as_int(), 3);
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
  EXPECT_EQ(terse.text().find("/secret"), std::string::npos);
}

TEST_F(HealthTest, LongErrorOfAServerIsTruncated) {
  const auto broken = add("broken");
  fail(broken);
  broken->listing.problem = std::string(100'000, 'x');
  EXPECT_EQ(server_says(report(), "lists"), std::string(Limits::kMaxLogFieldBytes, 'x') + "...");
}

// Names of the servers in a report, in order.
std::vector<std::string> names_in(const Health& health) {
  const std::string text = health.text();
  std::vector<std::string> names;
  json::View(text)["servers"].each_element([&](json::View server) {
    names.push_back(server["name"].as_string().value_or(""));
    return true;
  });
  return names;
}

TEST_F(HealthTest, ServersThatChangeBetweenSlicesAreReportedOnceOrNotAtAll) {
  constexpr std::size_t kCount = 2000;
  const auto name = [](std::size_t i) { return "s" + std::to_string(10'000 + i); };
  for (std::size_t i = 0; i < kCount; ++i) add(name(i));
  HealthReport report(*pool, *servers, true);
  ASSERT_TRUE(report.add_slice()) << "one slice is not enough for so many";
  pool::ServerSpec changed;
  changed.name = name(0);  // reported already
  changed.max_calls = 7;
  ASSERT_TRUE(servers->update(changed));
  ASSERT_TRUE(servers->remove(name(1)));
  ASSERT_TRUE(servers->remove(name(kCount - 1)));  // not reported yet
  add(name(1));
  add("a");  // before those that are reported
  add("t");
  while (report.add_slice()) {
  }
  const Health health = std::move(report).finish(HealthFigures());
  const std::vector<std::string> names = names_in(health);
  std::vector<std::string> expected;
  for (std::size_t i = 0; i + 1 < kCount; ++i) expected.push_back(name(i));
  expected.emplace_back("t");
  EXPECT_EQ(names, expected);
  const std::string text = health.text();
  EXPECT_EQ(json::View(text)["counts"]["servers"]["starting"].as_int(), static_cast<int>(kCount));
}

TEST_F(HealthTest, NoPartOfALongReportIsMuchLongerThanThePartSize) {
  for (int i = 0; i < 100; ++i) {
    const auto broken = add("s" + std::to_string(i));
    fail(broken);
    broken->listing.problem = std::string(Limits::kMaxLogFieldBytes, 'x');
  }
  const Health health = report();
  EXPECT_EQ(names_in(health).size(), 100u);
  EXPECT_GT(health.report.size(), 100 * Limits::kMaxLogFieldBytes / (2 * HealthReport::kPartBytes));
  for (const Bytes& part : health.report) EXPECT_LT(part.size(), 2 * HealthReport::kPartBytes);
}

}  // namespace
}  // namespace fairlead::gateway
