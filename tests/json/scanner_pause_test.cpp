// Tests of a scanner that pauses (ScanPauses): how often it pauses, and that it reads the complete text.
#include <gtest/gtest.h>

#include <string>

#include "fairlead/json/scanner.hpp"

namespace fairlead::json {
namespace {

TEST(ScannerPauseTest, PausesRepeatedlyInLongValues) {
  const auto repeated = [](std::string_view what) {
    std::string text;
    while (text.size() < 100'000) text += what;
    return text;
  };
  for (const std::string& text :
       {"[" + repeated("[[]],") + "1]", "{" + repeated(R"("a":1,)") + R"("b":2})",
        "[" + repeated("1 \n,") + "1]", "\"" + repeated(R"(\n)") + "\"",
        R"({")" + repeated(R"(\n)") + R"(":1})", R"({"a":")" + repeated(R"(\u1234)") + R"("})"}) {
    ScanPauses pauses(1000);
    Scanner scanner(text);
    scanner.pause_with(pauses);
    std::string_view value;
    int parts = 1;
    while (!scanner.value(value) && scanner.paused()) ++parts;
    EXPECT_FALSE(scanner.failed()) << text.substr(0, 20);
    EXPECT_EQ(value, text);
    EXPECT_GE(parts, 90) << text.substr(0, 20);
    EXPECT_LE(parts, 110) << text.substr(0, 20);
  }
}

TEST(ScannerPauseTest, NextMemberPausesBetweenMembers) {
  std::string text = "{";
  for (int i = 0; i < 10'000; ++i) text += R"("a":1,)";
  text += R"("a":1})";
  ScanPauses pauses(600);
  Scanner scanner(text);
  scanner.pause_with(pauses);
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  int members = 0;
  int parts = 1;
  ASSERT_TRUE(scanner.begin_object());
  while (scanner.next_member(key, escaped) || scanner.paused()) {
    if (scanner.paused()) {
      ++parts;
      continue;
    }
    ASSERT_TRUE(scanner.value(value));
    ++members;
  }
  EXPECT_TRUE(scanner.finish());
  EXPECT_EQ(members, 10'001);
  EXPECT_GE(parts, 90);
  EXPECT_LE(parts, 110);
}

TEST(ScannerPauseTest, NextMemberPausesInsideLongKey) {
  std::string text = R"({"first":1,")";
  for (int i = 0; i < 1000; ++i) text += R"(\")";
  text += R"(":[[2]]})";
  ScanPauses pauses(10);
  Scanner scanner(text);
  scanner.pause_with(pauses);
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  int parts = 0;
  const auto next = [&] {
    bool there = scanner.next_member(key, escaped);
    for (; scanner.paused(); there = scanner.next_member(key, escaped)) ++parts;
    if (!there) return false;
    bool whole = scanner.value(value);
    for (; scanner.paused(); whole = scanner.value(value)) ++parts;
    return whole;
  };
  ASSERT_TRUE(scanner.begin_object());
  ASSERT_TRUE(next());
  EXPECT_EQ(key, "first");
  EXPECT_FALSE(escaped);
  ASSERT_TRUE(next());
  EXPECT_EQ(key.size(), 2000u);
  EXPECT_TRUE(escaped);
  EXPECT_EQ(value, "[[2]]");
  EXPECT_FALSE(next());
  EXPECT_TRUE(scanner.finish());
  EXPECT_GE(parts, 150);
}

}  // namespace
}  // namespace fairlead::json
