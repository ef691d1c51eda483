#include "gateway/missing_lists.hpp"

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/view.hpp"
#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

class MissingListsTest : public UnitsTest {
 protected:
  std::string meta(Kind kind) { return std::string(missing.meta(kind, *catalogue->current()).text()); }

  MissingLists missing{servers, log};
};

TEST_F(MissingListsTest, CompleteListHasNoMeta) {
  EXPECT_EQ(meta(Kind::tools), "");
  list(add("a"), Kind::tools, kToolText);
  EXPECT_EQ(meta(Kind::tools), "");
  EXPECT_EQ(meta(Kind::prompts), "") << "a server without prompts lacks none";
}

TEST_F(MissingListsTest, ServersThatHaveNotListedAreNamedUnlessDisabled) {
  list(add("a"), Kind::tools, kToolText);
  add("b");
  add("c");
  add("d");
  ASSERT_TRUE(servers->disable("d"));
  EXPECT_EQ(meta(Kind::tools), R"({"fairlead/incomplete":["b","c"]})");
}

TEST_F(MissingListsTest, ListOfOneKindThatFailedIsMissingInThatListOnly) {
  auto listed = lists_of("a", Kind::tools, kToolText);
  listed->set_missing(Kind::prompts, "prompts/list: timed out");
  catalogue->publish(*add("a"), listed);
  EXPECT_EQ(meta(Kind::tools), "");
  EXPECT_EQ(meta(Kind::prompts), R"({"fairlead/incomplete":["a"]})");
}

TEST_F(MissingListsTest, ReasonsAreLoggedWhenTheyChangeAndNotForEveryList) {
  const auto entry = add("a");
  meta(Kind::tools);
  meta(Kind::tools);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged.back().find("a: has not listed yet"), std::string::npos) << logged.back();
  entry->listing.problem = "no such program";
  meta(Kind::tools);
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged.back().find("a: no such program"), std::string::npos) << logged.back();
  list(entry, Kind::tools, kToolText);
  meta(Kind::tools);
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(MissingListsTest, OnlyTheFirstOfManyAreNamedAndTheOthersCounted) {
  const auto name = [](std::size_t i) { return "s" + std::to_string(1000 + i); };
  for (std::size_t i = 0; i < kMaxNamedMissing; ++i) add(name(i));
  EXPECT_EQ(meta(Kind::tools).find(kIncompleteOthersKey), std::string::npos);
  for (std::size_t i = kMaxNamedMissing; i < kMaxNamedMissing + 17; ++i) add(name(i));
  const std::string many = meta(Kind::tools);
  EXPECT_EQ(json::View(many)[kIncompleteKey].size(), kMaxNamedMissing);
  EXPECT_EQ(json::View(many)[kIncompleteKey][kMaxNamedMissing - 1].as_string(), name(kMaxNamedMissing - 1));
  EXPECT_EQ(json::View(many)[kIncompleteOthersKey].as_int(), 17);
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_NE(logged.back().find("others=17"), std::string::npos) << logged.back();
}

TEST_F(MissingListsTest, ServerThatWasRemovedSinceTheCatalogueIsNotMissing) {
  list(add("a"), Kind::tools, kToolText);
  list(add("b"), Kind::tools, kToolText);
  list(add("c"), Kind::tools, kToolText);
  const auto former = catalogue->current();
  ASSERT_TRUE(servers->remove("b"));
  add("d");
  EXPECT_EQ(missing.meta(Kind::tools, *former).text(), R"({"fairlead/incomplete":["d"]})");
}

}  // namespace
}  // namespace fairlead::gateway
