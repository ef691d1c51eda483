#include "base/glob.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace fairlead {
namespace {

TEST(GlobTest, PatternWithoutStarMatchesOnlyItself) {
  EXPECT_TRUE(glob_matches("read_file", "read_file"));
  EXPECT_FALSE(glob_matches("read_file", "read_files"));
  EXPECT_FALSE(glob_matches("read_file", "Read_file"));
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("a?c", "abc"));
}

TEST(GlobTest, StarMatchesAnyText) {
  for (const char* pattern : {"*", "**", "read_*", "*_file", "r*e", "*d_f*", "read*_*file", "*read_file*"})
    EXPECT_TRUE(glob_matches(pattern, "read_file")) << pattern;
  for (const char* pattern : {"read_*x", "x*", "*x", "*file_*", "read_file*e", "*f*f*", "a*"})
    EXPECT_FALSE(glob_matches(pattern, "read_file")) << pattern;
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_FALSE(glob_matches("a*a", "a"));
  EXPECT_TRUE(glob_matches("a*a", "aa"));
}

TEST(GlobTest, MatchingTakesLinearTime) {
  const std::string text(200'000, 'a');
  std::string pattern;
  for (int i = 0; i < 5'000; ++i) pattern += "*a";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_matches(pattern + "*b*", text));
  EXPECT_FALSE(glob_matches("*" + std::string(1'000, 'a') + "b*", text));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(GlobTest, AnyOfSeveralPatternsSuffices) {
  const std::vector<std::string> patterns = {"read_*", "list"};
  EXPECT_TRUE(any_glob_matches(patterns, "list"));
  EXPECT_FALSE(any_glob_matches(patterns, "lists"));
  EXPECT_FALSE(any_glob_matches({}, "list"));
}

}  // namespace
}  // namespace fairlead
