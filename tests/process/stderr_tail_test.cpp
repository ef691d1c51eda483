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

TEST(StderrTailTest, NoLinesAreRetainedIfMaxLinesIsZero) {
  StderrTail tail(0, 100);
  tail.feed("one\ntwo");
  EXPECT_EQ(tail.lines(), Lines{});
}

}  // namespace
}  // namespace fairlead::process
