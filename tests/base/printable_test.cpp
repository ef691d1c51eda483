// Escaping of untrusted text for terminals.
#include "base/printable.hpp"

#include <gtest/gtest.h>

#include "fairlead/base/log.hpp"

namespace fairlead {
namespace {

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable_text("a\x1b[2J\x07\x7f\b"), R"(a\x1b[2J\x07\x7f\x08)");
  EXPECT_EQ(printable_text(std::string_view("\0", 1)), R"(\x00)");
  EXPECT_EQ(printable_text("\u009b31m"), R"(\u009b31m)");
  EXPECT_EQ(printable_text("\u202eevil\u2066\u200f"), R"(\u202eevil\u2066\u200f)");
}

TEST(PrintableTest, InvalidUtf8IsEscaped) {
  EXPECT_EQ(printable_text("\xff\x9b\xc3"), R"(\xff\x9b\xc3)");
  EXPECT_EQ(printable_text("\xc0\x80\xed\xa0\x80"), R"(\xc0\x80\xed\xa0\x80)");
}

TEST(PrintableTest, ShortenedTextDoesNotSplitCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("ab\u00e9", 3), "ab...");
  EXPECT_EQ(shortened("ab\u00e9", 4), "ab\u00e9");
  EXPECT_EQ(utf8_prefix("\u20ac", 2), "");
}

TEST(PrintableTest, OrdinaryTextIsUnchanged) {
  const std::string text = "naïve – 日本語 🙂\n\tindented \\x1b";
  EXPECT_EQ(printable_text(text), text);
  EXPECT_EQ(printable_text("a\r\nb\rc"), "a\nb\\x0dc");
}

TEST(PrintableTest, LineFeedsAreEscapedInLine) {
  EXPECT_EQ(printable_line("a\nb\tc\r"), R"(a\nb\tc\x0d)");
}

TEST(PrintableTest, EscapedJsonIsEquivalent) {
  EXPECT_EQ(printable_json("{\n\"a\":\"\x7f\u009b\u202e é\"}"), "{\n\"a\":\"\\u007f\\u009b\\u202e é\"}");
}

TEST(PrintableTest, LogLinesHaveNoControlCharacters) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    std::string line;
    const Log log(LogLevel::info, format, [&](std::string_view text) { line = text; });
    log.info("m", {{"k", "\u009b1m\u202e\x7f"}});
    EXPECT_NE(line.find(R"("\u009b1m\u202e\u007f")"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace fairlead
