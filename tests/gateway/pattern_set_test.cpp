#include "gateway/pattern_set.hpp"

#include <gtest/gtest.h>

namespace fairlead::gateway {
namespace {

TEST(PatternSetTest, MatchesLikeItsPatterns) {
  const std::vector<std::string> patterns = {"a", "b*", "b__x*y", "*end", "long prefix*", "", "c**d"};
  const PatternSet set(patterns);
  for (const std::string text : {"a", "aa", "b", "bb", "b__xzy", "the end", "end", "long", "long prefix", "",
                                 "c", "cd", "c-d", "*", "x"})
    EXPECT_EQ(set.matches(text), any_glob_matches(patterns, text)) << text;
  EXPECT_FALSE(PatternSet().matches(""));
  EXPECT_TRUE(PatternSet().empty());
  EXPECT_FALSE(PatternSet({"*"}).empty());
}

}  // namespace
}  // namespace fairlead::gateway
