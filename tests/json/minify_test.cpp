// Tests of minify() and to_one_line(): messages with raw line breaks must be sent as one line (R2.1).
#include <gtest/gtest.h>

#include "cases.hpp"
#include "fairlead/json/scanner.hpp"

namespace fairlead::json {
namespace {

// The reference implementation, which works byte by byte.
std::string minified_slowly(std::string_view text) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\') {
      out += c;
      out += text[++i];
      continue;
    }
    if (c == '"') inside = !inside;
    if (inside || std::string_view(" \t\r\n").find(c) == std::string_view::npos) out += c;
  }
  return out;
}

TEST(MinifyTest, RemovesWhiteSpaceBetweenTokens) {
  EXPECT_EQ(minify(" { \"a\" : [ 1 ,\r\n\t2 ] , \"b\":null }\n"), "{\"a\":[1,2],\"b\":null}");
  EXPECT_EQ(minify(" 1 "), "1");
  EXPECT_EQ(minify("[\n\n]"), "[]");
}

TEST(MinifyTest, LeavesStringsUnchanged) {
  EXPECT_EQ(minify("[ \" a  b \" , \"\\\" \\\\\" , \" \\\\\\\" \" ]"),
            "[\" a  b \",\"\\\" \\\\\",\" \\\\\\\" \"]");
  EXPECT_EQ(minify("{ \" k \" : \"\xc3\xa9 \xe7\xbe\x8a\" }"), "{\" k \":\"\xc3\xa9 \xe7\xbe\x8a\"}");
}

TEST(MinifyTest, AgreesWithReferenceImplementation) {
  for (const auto text : cases::kAccepted) {
    const std::string small = minify(text);
    EXPECT_EQ(small, minified_slowly(text)) << text;
    EXPECT_EQ(validate(small), std::nullopt) << text;
    EXPECT_EQ(minify(small), small) << text;
  }
  EXPECT_EQ(minify(cases::kSample), minified_slowly(cases::kSample));
}

TEST(MinifyTest, WorksAtEveryAlignment) {
  for (std::size_t before = 0; before < 70; ++before) {
    for (std::size_t length = 0; length < 70; ++length) {
      const std::string text = std::string(before, ' ') + "[ \"" + std::string(length, ' ') + "\\\"\" ]";
      ASSERT_EQ(minify(text), minified_slowly(text));
    }
  }
}

TEST(MinifyTest, RemovesLineBreaks) {
  std::string_view value;
  const std::string small = minify("{\r\n \"a\": [\n1,\n2\n]\r\n}");
  Scanner after(small);
  ASSERT_TRUE(after.value(value) && after.finish());
  EXPECT_FALSE(after.saw_line_break());
  EXPECT_EQ(small.find_first_of("\r\n"), std::string::npos);
}

TEST(OneLineTest, ReplacesOnlyLineBreaks) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (std::size_t after = 0; after < 40; ++after) {
      const std::string plain = std::string(before, '1') + "%, \"\\n\",%" + std::string(after, '2');
      std::string broken = plain;
      std::string expected = plain;
      for (const char c : {'\n', '\r'}) {
        broken[broken.find('%')] = c;
        expected[expected.find('%')] = ' ';
      }
      ASSERT_EQ(to_one_line(broken), expected);
    }
  }
}

}  // namespace
}  // namespace fairlead::json
