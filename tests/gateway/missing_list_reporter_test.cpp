#include "gateway/missing_list_reporter.hpp"

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/view.hpp"
#include "gateway/store_fixture.hpp"

namespace fairlead::gateway {
namespace {

class MissingListReporterTest : public StoreTest {
 protected:
  std::string meta(ListKind kind) { return std::string(missing.report(kind, *catalogue->current()).text()); }

  MissingListReporter missing{servers, log};
};

TEST_F(MissingListReporterTest, CompleteListHasNoMeta) {
  EXPECT_EQ(meta(ListKind::tools), "");
  publish_list(add("a"), ListKind::tools, kToolText);
  EXPECT_EQ(meta(ListKind::tools), "");
  EXPECT_EQ(meta(ListKind::prompts), "") << "a server without prompts is not missing";
}

TEST_F(MissingListReporterTest, ServersWithoutListsAreNamedUnlessDisabled) {
  publish_list(add("a"), ListKind::tools, kToolText);
  add("b");
  add("c");
  add("d");
  ASSERT_TRUE(servers->disable("d"));
  EXPECT_EQ(meta(ListKind::tools), R"({"fairlead/incomplete":["b","c"]})");
}

TEST_F(MissingListReporterTest, FailedListIsReportedOnlyForItsKind) {
  auto lists = lists_of("a", ListKind::tools, kToolText);
  lists->set_missing_reason(ListKind::prompts, "prompts/list: timed out");
  catalogue->publish_shared(*add("a"), lists);
  EXPECT_EQ(meta(ListKind::tools), "");
  EXPECT_EQ(meta(ListKind::prompts), R"({"fairlead/incomplete":["a"]})");
}

TEST_F(MissingListReporterTest, ReasonsAreLoggedOnlyWhenTheyChange) {
  const auto entry = add("a");
  meta(ListKind::tools);
  meta(ListKind::tools);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged.back().find("a: its lists have not been fetched yet"), std::string::npos) << logged.back();
  entry->fetch_state.problem = "no such program";
  meta(ListKind::tools);
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged.back().find("a: no such program"), std::string::npos) << logged.back();
  publish_list(entry, ListKind::tools, kToolText);
  meta(ListKind::tools);
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(MissingListReporterTest, FirstOfManyMissingServersAreNamedAndOthersCounted) {
  const auto name = [](std::size_t i) { return "s" + std::to_string(1000 + i); };
  for (std::size_t i = 0; i < kMaxNamedMissingServers; ++i) add(name(i));
  EXPECT_EQ(meta(ListKind::tools).find(kIncompleteOthersKey), std::string::npos);
  for (std::size_t i = kMaxNamedMissingServers; i < kMaxNamedMissingServers + 17; ++i) add(name(i));
  const std::string many = meta(ListKind::tools);
  EXPECT_EQ(json::View(many)[kIncompleteKey].size(), kMaxNamedMissingServers);
  EXPECT_EQ(json::View(many)[kIncompleteKey][kMaxNamedMissingServers - 1].as_string(),
            name(kMaxNamedMissingServers - 1));
  EXPECT_EQ(json::View(many)[kIncompleteOthersKey].as_int(), 17);
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged.back().find("others=17"), std::string::npos) << logged.back();
}

TEST_F(MissingListReporterTest, ServerRemovedSinceSnapshotIsNotReported) {
  publish_list(add("a"), ListKind::tools, kToolText);
  publish_list(add("b"), ListKind::tools, kToolText);
  publish_list(add("c"), ListKind::tools, kToolText);
  const auto former = catalogue->current();
  ASSERT_TRUE(servers->remove("b"));
  add("d");
  EXPECT_EQ(missing.report(ListKind::tools, *former).text(), R"({"fairlead/incomplete":["d"]})");
}

}  // namespace
}  // namespace fairlead::gateway
