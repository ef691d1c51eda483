#include "gateway/missing_lists.hpp"

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

}  // namespace
}  // namespace fairlead::gateway
