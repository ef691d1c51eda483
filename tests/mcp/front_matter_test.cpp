// Conversion of the front matter of a SKILL.md to JSON: supported YAML is converted, all other YAML is
// rejected with the line of the error.
#include "mcp/front_matter.hpp"

#include <gtest/gtest.h>

namespace fairlead::mcp {
namespace {

std::string read(const std::string& yaml) {
  const Result<json::Raw> got = read_front_matter("---\n" + yaml + "\n---\nBody.\n");
  return got ? std::string(got->text()) : got.error().message();
}

TEST(FrontMatterTest, ReadsFrontMatterOfTypicalSkill) {
  EXPECT_EQ(
      read("name: pdf-processing\n"
           "description: Extract, fill, and assemble PDF documents\n"
           "license: Apache-2.0  # see LICENSE\n"
           "\n"
           "# a comment\n"
           "allowed-tools: [Read, \"Bash(git:*)\", 'it''s']\n"
           "metadata:\n"
           "  author: example-org\n"
           "  version: \"1.0\"\n"
           "tags:\n"
           "- a\n"
           "- b: 1\n"
           "  c: [x]\n"
           "-\n"
           "  - deep\n"
           "  -\n"
           "empty:"),
      R"({"name":"pdf-processing","description":"Extract, fill, and assemble PDF documents","license":"Apache-2.0",)"
      R"x("allowed-tools":["Read","Bash(git:*)","it's"],"metadata":{"author":"example-org","version":"1.0"},)x"
      R"("tags":["a",{"b":1,"c":["x"]},["deep",null]],"empty":null})");
}

TEST(FrontMatterTest, ScalarsAreResolvedByCoreSchema) {
  const std::pair<const char*, const char*> kCases[] = {
      {"~", "null"},
      {"null", "null"},
      {"", "null"},
      {"true", "true"},
      {"FALSE", "false"},
      {"yes", "\"yes\""},
      {"12", "12"},
      {"-7", "-7"},
      {"+7", "7"},
      {"007", "7"},
      {"0x1F", "31"},
      {"0o17", "15"},
      {"1.50", "1.50"},
      {".5", "0.5"},
      {"1.", "1"},
      {"1e3", "1e3"},
      {"-1.5E-3", "-1.5e-3"},
      {"1.2.3", "\"1.2.3\""},
      {"2026-07-28", "\"2026-07-28\""},
      {"1e", "\"1e\""},
      {"0x", "\"0x\""},
      {".", "\".\""},
      {"-", nullptr},
      {"-x", "\"-x\""},
      {"a#b", "\"a#b\""},
      {"a: b", nullptr},
      {"http://x/y:z", "\"http://x/y:z\""},
      {"\"\"", "\"\""},
      {"'12'", "\"12\""},
      {"\"true\"", "\"true\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {"{a: 1, 'b': [2,3], c, \"d\":4}", R"({"a":1,"b":[2,3],"c":null,"d":4})"},
      {"[[1],{}]", "[[1],{}]"},
      {"é", "\"é\""},
      {"18446744073709551616", "18446744073709551616"}};
  for (const auto& [yaml, json] : kCases) {
    const std::string got = read("k: " + std::string(yaml));
    if (json) {
      EXPECT_EQ(got, "{\"k\":" + std::string(json) + "}") << yaml;
    } else {
      EXPECT_TRUE(got.starts_with("front matter: line 2: ")) << yaml << ": " << got;
    }
  }
}

TEST(FrontMatterTest, QuotedScalarsAreUnescapedAndFolded) {
  EXPECT_EQ(read(R"(k: "a\tb\n\"\\\/\x41\u00e9\U0001F600\0\e")"), R"({"k":"a\tb\n\"\\/Aé😀\u0000\u001b"})");
  EXPECT_EQ(read("k: \"one\n  two\n\n  three \\\n  four\""), R"({"k":"one two\nthree four"})");
  EXPECT_EQ(read("k: 'one\n  two\n\n\n  three'"), R"({"k":"one two\n\nthree"})");
  EXPECT_EQ(read("\"a b\": 1\n'c''d' : 2"), R"({"a b":1,"c'd":2})");
  EXPECT_EQ(read("k: one\n  two\n\n  three # end\nl: 1"), R"({"k":"one two\nthree","l":1})");
  EXPECT_EQ(read("k:\n  one\n  two"), R"({"k":"one two"})");
  EXPECT_EQ(read("k: [a,\n  b c\n  d, # x\n  e]\nl: {a: 1,\n b: \"x\n  y\"}"),
            R"({"k":["a","b c d","e"],"l":{"a":1,"b":"x y"}})");
}

TEST(FrontMatterTest, BlockScalarsKeepOrFoldLines) {
  EXPECT_EQ(read("k: |\n  one\n    two\n\n  three\n\nl: 1"), R"({"k":"one\n  two\n\nthree\n","l":1})");
  EXPECT_EQ(read("k: |-\n  one\n  two\n\n"), R"({"k":"one\ntwo"})");
  EXPECT_EQ(read("k: |+\n  one\n\n\nl: 1"), R"({"k":"one\n\n\n","l":1})");
  EXPECT_EQ(read("k: >\n  one\n  two\n\n  three\n    four\n  five\n"),
            R"({"k":"one two\nthree\n  four\nfive\n"})");
  EXPECT_EQ(read("k: >-\n\n  one: \"x\" # not a comment\n  two"),
            R"({"k":"\none: \"x\" # not a comment two"})");
  EXPECT_EQ(read("k: |2-\n    one\n  two"), R"({"k":"  one\ntwo"})");
  EXPECT_EQ(read("k: |\nl: >-\nm:\n  - |\n   x\n  - y"), R"({"k":"","l":"","m":["x\n","y"]})");
}

TEST(FrontMatterTest, CrLfLinesAndByteOrderMarkAreAccepted) {
  const Result<json::Raw> got =
      read_front_matter("\xef\xbb\xbf---\r\nname: x\r\ntext: |\r\n  a\r\n  b\r\n--- \r\nBody");
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->text(), R"({"name":"x","text":"a\nb\n"})");
}

TEST(FrontMatterTest, InvalidYamlIsRejectedWithLine) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a: &x 1", "line 2: anchors are not supported"},
      {"a: 1\nb: *x", "line 3: aliases are not supported"},
      {"a: !!str 1", "line 2: tags are not supported"},
      {"<<: {a: 1}", "line 2: merge keys"},
      {"? [a]\n: b", "line 2: a key must be text"},
      {"%YAML 1.2", "line 3: did not find expected <document start>"},
      {"a: 1\n... \nb: 1", "line 4: did not find expected <document start>"},
      {"a: 1\na: 2", "line 3: duplicate key `a`"},
      {"a: {b: 1, b: 2}", "line 2: duplicate key `b`"},
      {"- a\n- b", "line 2: `key: value` is expected"},
      {"just text", "line 2: `key: value` is expected"},
      {"", "the document is empty"},
      {"# nothing", "the document is empty"},
      {"a: 1\n  b: 2", "line 3: mapping values are not allowed in this context"},
      {"a:\n  b: 1\n c: 2",
       "line 4: did not find expected key while parsing a block mapping that begins on line 2"},
      {"a:\n\tb: 1", "line 3: found character that cannot start any token"},
      {" a: 1\nb: 2", "line 3: did not find expected <document start>"},
      {"a: \"x",
       "line 3: found unexpected end of stream while scanning a quoted scalar that begins on line 2"},
      {"a: 'x\nb: 1", "found unexpected end of stream while scanning a quoted scalar that begins on line 2"},
      {"a: [1, 2\nb: 1",
       "line 3: did not find expected ',' or ']' while parsing a flow sequence that begins on line 2"},
      {"a: [1 2] x", "line 2: did not find expected key"},
      {"a: \"x\" y", "line 2: did not find expected key"},
      {"a: \"\\q\"", "line 2: found unknown escape character"},
      {"a: \"\\ud800\"", "line 2: found invalid Unicode character escape code"},
      {"a: [1,,2]", "line 2: did not find expected node content"},
      {"a: {b: 1]", "line 2: did not find expected ',' or '}'"},
      {"a: .inf", "line 2: JSON cannot represent `.inf`"},
      {"a: |x\n  y", "line 2: did not find expected comment or line break while scanning a block scalar"},
      {"a: - b", "line 2: block sequence entries are not allowed in this context"},
      {"@a: b", "line 2: found character that cannot start any token"},
      {"a: @b", "line 2: found character that cannot start any token"},
      {"a: \x01", "it is not UTF-8 text"},
      {"a: \xff", "it is not UTF-8 text"}};
  for (const auto& [yaml, message] : kCases) {
    const std::string got = read(yaml);
    EXPECT_NE(got.find(message), std::string::npos) << yaml << "\n -> " << got;
    EXPECT_TRUE(got.starts_with("front matter: ")) << got;
  }
}

TEST(FrontMatterTest, ReadsPairsInFlowSequencesAndExplicitKeys) {
  EXPECT_EQ(read("a: [b: c]"), R"({"a":[{"b":"c"}]})");
  EXPECT_EQ(read("? a\n: b"), R"({"a":"b"})");
}

// Each line refers ten times to the line before it: nine lines would expand to 10^9 values.
TEST(FrontMatterTest, AliasBombIsRejectedAtFirstAnchor) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const std::string before = std::string("*") + static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [" + before;
    for (int i = 0; i < 9; ++i) bomb += "," + before;
    bomb += "]\n";
  }
  EXPECT_EQ(read(bomb), "front matter: line 2: anchors are not supported");
}

TEST(FrontMatterTest, MissingUnclosedOrOversizeFrontMatterIsRejected) {
  EXPECT_NE(read_front_matter("no front matter").error().message().find("does not begin"), std::string::npos);
  EXPECT_FALSE(read_front_matter(""));
  EXPECT_FALSE(read_front_matter("----\na: 1\n---\n"));
  EXPECT_NE(read_front_matter("---\na: 1\n").error().message().find("it is not closed by a line `---`"),
            std::string::npos);
  EXPECT_NE(read("a: " + std::string(70'000, 'x')).find("longer than 65536 bytes"), std::string::npos);
  EXPECT_NE(read("a: " + std::string(40, '[')).find("nested more than 32 deep"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(read(deep).find("nested more than 32 deep"), std::string::npos);
  std::string dashes = "a:\n  ";
  for (int i = 0; i < 40; ++i) dashes += "- ";
  EXPECT_NE(read(dashes + "x").find("nested more than 32 deep"), std::string::npos);
}

TEST(FrontMatterTest, ValuesAreComparedByMeaning) {
  const auto same = [](const char* a, const char* b) { return same_value(json::View(a), json::View(b)); };
  EXPECT_TRUE(same(R"({"a":1,"b":[1,"x"]})", R"({ "b" : [1.0, "\u0078"], "\u0061":1e0 })"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":null})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"b":1})"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("[1]", "[1,2]"));
  EXPECT_FALSE(same("\"1\"", "1"));
  EXPECT_FALSE(same("true", "false"));
  EXPECT_FALSE(same("9007199254740993", "9007199254740992"));
}

}  // namespace
}  // namespace fairlead::mcp
