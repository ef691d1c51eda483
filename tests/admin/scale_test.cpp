// Lists of 10,000 servers.
#include <set>

#include "harness.hpp"
#include "support/turns.hpp"

namespace fairlead::admin::test {
namespace {

class ScaleTest : public AdminTest {
 protected:
  static constexpr std::size_t kServers = 10'000;

  void SetUp() override {
    for (std::size_t i = 0; i < kServers; ++i) {
      registry::Server& server = registry_options_.seed.emplace_back();
      server.name = "server-" + std::to_string(i);
      server.enabled = server.spec.enabled = false;
      server.spec.name = server.name;
      server.spec.transport = pool::Address{"http://127.0.0.1:1/mcp", {}};
      if (i % 1'000 == 7) server.tags = {"rare"};
    }
    AdminTest::SetUp();
  }
};

TEST_F(ScaleTest, PagesCoverAllRowsInShortTurns) {
  on_loop([&] { thread_->loop().turn_meter().reset(); });
  std::set<std::string> seen;
  std::string query = "limit=500";
  while (!query.empty()) {
    const Answer page = get("/mcp/servers?" + query);
    ASSERT_EQ(page.status, 200) << page.body;
    page.json()["items"].each_element([&](json::View item) {
      EXPECT_TRUE(seen.insert(*item["id"].as_string()).second);
      return true;
    });
    const std::string cursor = page.text("nextCursor");
    query = cursor.empty() ? std::string() : "limit=500&cursor=" + cursor;
  }
  EXPECT_EQ(seen.size(), kServers);
  EXPECT_EQ(get("/mcp/servers?tag=rare").json()["items"].size(), 10u);
  EXPECT_EQ(get("/mcp/servers?name=server-9999").json()["items"].size(), 1u);
  EXPECT_EQ(get("/mcp/servers?name=*-99").json()["items"].size(), 1u);
  EXPECT_EQ(get("/tools").json()["items"].size(), 0u);
  EXPECT_EQ(get("/processes").json()["items"].size(), 0u);
  const auto longest = on_loop([&] { return thread_->loop().turn_meter().longest_turn(); });
  RecordProperty("longest_turn_us", static_cast<int>(longest.count() / 1000));
  EXPECT_LT(longest, fairlead::test::kTurnBound);
}

}  // namespace
}  // namespace fairlead::admin::test
