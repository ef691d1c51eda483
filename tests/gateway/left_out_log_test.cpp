#include "gateway/left_out_log.hpp"

#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

class LeftOutLogTest : public UnitsTest {
 protected:
  // Lists of server `a` with so many tools that cannot be offered, for as many reasons.
  static std::shared_ptr<Listed> with_problems(std::size_t count) {
    auto listed = std::make_shared<Listed>();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string text = R"({"name":"t)" + std::to_string(i) + R"(","inputSchema":7})";
      listed->add_offer("a", Kind::tools, test::raw(text), mcp::ListLimits());
    }
    return listed;
  }
  // A server that lists these resources. Nothing is logged for it.
  std::shared_ptr<const Listed> add_with_resources(const std::string& server,
                                                   const std::vector<std::string>& uris) {
    auto listed = std::make_shared<Listed>();
    for (const std::string& uri : uris)
      listed->add_offer(server, Kind::resources, test::raw(R"({"uri":")" + uri + R"(","name":"n"})"),
                        mcp::ListLimits());
    add(server)->shared.listed = listed;
    return listed;
  }
};

TEST_F(LeftOutLogTest, ReasonThatIsNewIsLoggedOnce) {
  const auto one = with_problems(1);
  log_left_out(log, Listed(), *one);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged.front().find("one of its tools is left out"), std::string::npos) << logged.front();
  log_left_out(log, *one, *with_problems(1));
  EXPECT_EQ(logged.size(), 1u);
  log_left_out(log, *one, *with_problems(2));
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(LeftOutLogTest, ReasonsBeyondTheLimitAreCounted) {
  log_left_out(log, Listed(), *with_problems(Listed::kMaxProblems + 7));
  ASSERT_EQ(logged.size(), Listed::kMaxProblems + 1);
  EXPECT_NE(logged.back().find("7 more entries are left out"), std::string::npos) << logged.back();
}

TEST_F(LeftOutLogTest, UriThatTwoServersListIsLoggedAsTheFirstOnes) {
  const auto of_b = add_with_resources("b", {"x://1"});
  loop.block_on(log_duplicate_uris(loop, log, servers, of_b, nullptr));
  EXPECT_TRUE(logged.empty()) << "there is no other server";
  const auto of_a = add_with_resources("a", {"x://1", "x://2"});
  for (const auto& listed : {of_a, of_b}) {
    logged.clear();
    loop.block_on(log_duplicate_uris(loop, log, servers, listed, nullptr));
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged.front().find("`x://1` is taken by `a`"), std::string::npos) << logged.front();
    EXPECT_NE(logged.front().find("b: one of its resources"), std::string::npos) << logged.front();
  }
  logged.clear();
  loop.block_on(log_duplicate_uris(loop, log, servers, of_b, of_b));
  EXPECT_TRUE(logged.empty()) << "it listed that before";
}

}  // namespace
}  // namespace fairlead::gateway
