// Tests that repeated warnings of a log are collapsed.
#include "base/log_repeats.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::seconds;

constexpr LogRepeats::Time kStart{};

std::vector<std::string> texts(const std::vector<LogRepeats::Summary>& summaries) {
  std::vector<std::string> result;
  for (const LogRepeats::Summary& summary : summaries) result.push_back(summary.text);
  return result;
}

TEST(LogRepeatsTest, RepeatedLineIsCountedUntilTheIntervalEnds) {
  LogRepeats repeats(seconds(30));
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "failed server=a after 3 ms"));
  for (int i = 1; i <= 17; ++i) {
    EXPECT_TRUE(repeats.due(kStart + seconds(i)).empty());
    EXPECT_FALSE(repeats.admit(kStart + seconds(i), LogLevel::warning,
                               "failed server=a after " + std::to_string(i) + " ms"));
  }
  EXPECT_EQ(texts(repeats.due(kStart + seconds(30))),
            std::vector<std::string>{"failed server=a after 17 ms … repeated 17 times in 30s"});
  EXPECT_TRUE(repeats.admit(kStart + seconds(30), LogLevel::warning, "failed server=a after 9 ms"));
  EXPECT_TRUE(repeats.drain(kStart + seconds(31)).empty());
}

TEST(LogRepeatsTest, DifferentLinesAreWritten) {
  LogRepeats repeats;
  for (const std::string text :
       {"failed server=files1", "failed server=files2", "failed url=http://h:1/mcp",
        "failed url=http://h:2/mcp", "dropped=4", "dropped=5", "failed server=files1 (pid 4)"})
    EXPECT_TRUE(repeats.admit(kStart, LogLevel::error, text)) << text;
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "failed server=files1"));
  EXPECT_FALSE(repeats.admit(kStart, LogLevel::error, "failed server=files1 (pid 12345)"));
}

TEST(LogRepeatsTest, TimesAreNotCompared) {
  LogRepeats repeats;
  EXPECT_TRUE(
      repeats.admit(kStart, LogLevel::error, "lost\n  reason: x\n    2026-11-18T22:56:05.123Z no key"));
  EXPECT_FALSE(
      repeats.admit(kStart, LogLevel::error, "lost\n  reason: x\n    2027-01-02T03:04:05.6Z no key"));
}

TEST(LogRepeatsTest, LevelsBelowWarningAreNotCollapsed) {
  LogRepeats repeats;
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::info, "request"));
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::info, "request"));
}

TEST(LogRepeatsTest, SummaryHasFirstLineOfText) {
  LogRepeats repeats;
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "failed\n  reason: a\n    b"));
  EXPECT_FALSE(repeats.admit(kStart, LogLevel::warning, "failed\n  reason: a\n    b"));
  EXPECT_EQ(texts(repeats.drain(kStart + seconds(2))),
            std::vector<std::string>{"failed … repeated 1 time in 2s"});
}

// An attacker who causes ever different warnings does not make the state grow, and no count is lost.
TEST(LogRepeatsTest, NumberOfLinesIsLimited) {
  LogRepeats repeats;
  const std::string large(100'000, 'x');
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "first " + large));
  EXPECT_FALSE(repeats.admit(kStart, LogLevel::warning, "first " + large));
  for (std::size_t i = 0; i < LogRepeats::kMaxLines; ++i)
    EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "other" + std::to_string(i)));
  const std::vector<std::string> summaries = texts(repeats.due(kStart));
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_TRUE(summaries.front().starts_with("first x"));
  EXPECT_LT(summaries.front().size(), 1'100u);
  EXPECT_TRUE(repeats.admit(kStart, LogLevel::warning, "first " + large));
}

}  // namespace
}  // namespace fairlead
