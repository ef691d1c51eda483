#include "gateway/omitted_entries_log.hpp"

#include "gateway/store_fixture.hpp"

namespace fairlead::gateway {
namespace {

class OmittedEntriesLogTest : public StoreTest {
 protected:
  // Returns lists of server `a` with `count` invalid tools, each with a problem of its own.
  static std::shared_ptr<ServerLists> with_problems(std::size_t count) {
    auto lists = std::make_shared<ServerLists>();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string text = R"({"name":"t)" + std::to_string(i) + R"(","inputSchema":7})";
      lists->add_entry("a", ListKind::tools, test::raw(text), mcp::ListLimits());
    }
    return lists;
  }
  // Adds a server that lists these resources, without logging.
  std::shared_ptr<const ServerLists> add_with_resources(const std::string& server,
                                                        const std::vector<std::string>& uris) {
    auto lists = std::make_shared<ServerLists>();
    for (const std::string& uri : uris)
      lists->add_entry(server, ListKind::resources, test::raw(R"({"uri":")" + uri + R"(","name":"n"})"),
                       mcp::ListLimits());
    add(server)->shared.lists = lists;
    return lists;
  }
};

TEST_F(OmittedEntriesLogTest, NewProblemIsLoggedOnce) {
  const auto one = with_problems(1);
  log_omitted_entries(log, ServerLists(), *one);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged.front().find("one of its tools is omitted"), std::string::npos) << logged.front();
  log_omitted_entries(log, *one, *with_problems(1));
  EXPECT_EQ(logged.size(), 1u);
  log_omitted_entries(log, *one, *with_problems(2));
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(OmittedEntriesLogTest, ProblemsBeyondLimitAreCounted) {
  log_omitted_entries(log, ServerLists(), *with_problems(ServerLists::kMaxStoredProblems + 7));
  ASSERT_EQ(logged.size(), ServerLists::kMaxStoredProblems + 1);
  EXPECT_NE(logged.back().find("7 more entries are omitted"), std::string::npos) << logged.back();
}

TEST_F(OmittedEntriesLogTest, UriListedByTwoServersIsLoggedAsOwnedByFirst) {
  const auto of_b = add_with_resources("b", {"x://1"});
  loop.block_on(log_duplicate_uris(loop, log, servers, of_b, nullptr));
  EXPECT_TRUE(logged.empty()) << "there is no other server";
  const auto of_a = add_with_resources("a", {"x://1", "x://2"});
  for (const auto& lists : {of_a, of_b}) {
    logged.clear();
    loop.block_on(log_duplicate_uris(loop, log, servers, lists, nullptr));
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged.front().find("`x://1` is used by `a`"), std::string::npos) << logged.front();
    EXPECT_NE(logged.front().find("b: one of its resources"), std::string::npos) << logged.front();
  }
  logged.clear();
  loop.block_on(log_duplicate_uris(loop, log, servers, of_b, of_b));
  EXPECT_TRUE(logged.empty()) << "the URI was lists before";
}

}  // namespace
}  // namespace fairlead::gateway
