#include "process/stderr_tail.hpp"

#include <gtest/gtest.h>

namespace fairlead::process {
namespace {

using Lines = std::vector<std::string>;

TEST(StderrTailTest, RetainsOnlyLastLines) {
  StderrTail tail(2, 100);
  tail.feed("one\ntwo\nthree\n");
  EXPECT_EQ(tail.lines(), (Lines{"two", "three"}));
}

TEST(StderrTailTest, LineMayArriveInPieces) {
  StderrTail tail(3, 100);
  for (const char c : std::string("ab\ncd\n")) tail.feed({&c, 1});
  EXPECT_EQ(tail.lines(), (Lines{"ab", "cd"}));
}

TEST(StderrTailTest, UnterminatedLineIsLastLine) {
  StderrTail tail(2, 100);
  tail.feed("one\ntwo\nthr");
  EXPECT_EQ(tail.lines(), (Lines{"two", "thr"}));
  tail.feed("ee");
  tail.finish();
  EXPECT_EQ(tail.lines(), (Lines{"two", "three"}));
}

TEST(StderrTailTest, CarriageReturnsBeforeNewlinesAreDropped) {
  StderrTail tail(2, 100);
  tail.feed("one\r\ntwo\r\n");
  EXPECT_EQ(tail.lines(), (Lines{"one", "two"}));
}

TEST(StderrTailTest, LongLineIsTruncatedAndNextIsComplete) {
  StderrTail tail(2, 4);
  tail.feed("abcdef");
  tail.feed("ghi\nnext\n");
  EXPECT_EQ(tail.lines(), (Lines{"abcd", "next"}));
}

TEST(StderrTailTest, TruncationDoesNotSplitCharacter) {
  StderrTail tail(2, 4);
  tail.feed("abc\u00e9\nab\u20acx\n");
  EXPECT_EQ(tail.lines(), (Lines{"abc", "ab"}));
  StderrTail fits(1, 5);
  fits.feed("ab\u20acx\n");
  EXPECT_EQ(fits.lines(), (Lines{"ab\u20ac"}));
}

TEST(StderrTailTest, LastLinesOfLargeInputAreRetained) {
  StderrTail tail(2, 100);
  std::string flood = "started ";
  for (int i = 0; i < 1000; ++i) flood += "line " + std::to_string(i) + '\n';
  tail.feed("not ended, ");
  tail.feed(flood + "rest");
  EXPECT_EQ(tail.lines(), (Lines{"line 999", "rest"}));
}

TEST(StderrTailTest, UnterminatedLineIsContinuedByNextPiece) {
  StderrTail tail(2, 100);
  tail.feed("first half, ");
  tail.feed("second half\nlast\n");
  EXPECT_EQ(tail.lines(), (Lines{"first half, second half", "last"}));
}

TEST(StderrTailTest, OnLineIsCalledWithEveryLine) {
  Lines lines;
  StderrTail tail(1, 100, [&](std::string_view line) { lines.emplace_back(line); });
  tail.feed("one\ntwo\n\nthr");
  tail.feed("ee");
  tail.finish();
  EXPECT_EQ(lines, (Lines{"one", "two", "", "three"}));
}

TEST(StderrTailTest, FirstLinesAreRetainedBesidesLastOnes) {
  StderrTail tail(8, 100);
  std::string text;
  for (int i = 1; i <= 8; ++i) text += "line " + std::to_string(i) + '\n';
  tail.feed(text);
  EXPECT_EQ(tail.lines().size(), 8u);
  tail.feed("line 9\n");
  EXPECT_EQ(tail.lines(), (Lines{"line 1", "line 2", "… 1 line omitted …", "line 4", "line 5", "line 6",
                                 "line 7", "line 8", "line 9"}));
  tail.feed("rest");
  EXPECT_EQ(tail.lines()[2], "… 2 lines omitted …");
  EXPECT_EQ(tail.lines().back(), "rest");
}

// Whether a flood is skipped or copied, the number of omitted lines is the same.
TEST(StderrTailTest, OmittedLinesOfFloodAreCounted) {
  std::string flood;
  for (int i = 1; i <= 1000; ++i) flood += "line " + std::to_string(i) + '\n';
  for (const std::size_t piece : {flood.size(), std::size_t{1}, std::size_t{777}}) {
    StderrTail tail(8, 100);
    for (std::size_t at = 0; at < flood.size(); at += piece)
      tail.feed(std::string_view(flood).substr(at, piece));
    tail.feed("line 1001\n" + flood);
    ASSERT_EQ(tail.lines().size(), 9u) << piece;
    EXPECT_EQ(tail.lines()[1], "line 2");
    EXPECT_EQ(tail.lines()[2], "… 1993 lines omitted …") << piece;
    EXPECT_EQ(tail.lines()[3], "line 995");
  }
}

TEST(StderrTailTest, RetainedBytesAreLimited) {
  StderrTail tail(400, 100'000);
  for (int i = 0; i < 1000; ++i) tail.feed(std::string(1000, 'x') + '\n');
  std::size_t bytes = 0;
  for (const std::string& line : tail.lines()) bytes += line.size();
  EXPECT_LE(bytes, 16'500u);
  EXPECT_GE(bytes, 15'000u);
}

TEST(StderrTailTest, NoLinesAreRetainedIfMaxLinesIsZero) {
  StderrTail tail(0, 100);
  tail.feed("one\ntwo");
  EXPECT_EQ(tail.lines(), Lines{});
}

}  // namespace
}  // namespace fairlead::process
