#include "mcp/uri_template.hpp"

#include <gtest/gtest.h>

namespace fairlead::mcp {
namespace {

using Variables = std::map<std::string, std::string>;

Variables match(std::string_view pattern, std::string_view uri) {
  const Result<UriTemplate> parsed = UriTemplate::parse(pattern);
  if (!parsed) return {{"error", parsed.error().message()}};
  MatchBudget budget(ListLimits().max_template_steps);
  return parsed->extract_variables(uri, budget).value_or(Variables{{"no", "match"}});
}

const Variables kNone = {{"no", "match"}};

TEST(UriTemplateTest, SimpleVariablesStopAtReservedCharacters) {
  EXPECT_EQ(match("weather://{city}/now", "weather://bern/now"), (Variables{{"city", "bern"}}));
  EXPECT_EQ(match("weather://{city}/now", "weather://new%20york/now"), (Variables{{"city", "new york"}}));
  EXPECT_EQ(match("weather://{city}/now", "weather://a/b/now"), kNone);
  EXPECT_EQ(match("weather://{city}/now", "weather:///now"), kNone);
  EXPECT_EQ(match("a/{x}/{y}", "a/1/2"), (Variables{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(match("a/{x}{y}", "a/12"), (Variables{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(match("{x,y}", "1,2"), (Variables{{"x", "1"}, {"y", "2"}}));
}

TEST(UriTemplateTest, ReservedExpansionMatchesSlashes) {
  EXPECT_EQ(match("file:///{+path}", "file:///a/b.txt"), (Variables{{"path", "a/b.txt"}}));
  EXPECT_EQ(match("file:///{+path}/end", "file:///a/end/end"), (Variables{{"path", "a/end"}}));
}

TEST(UriTemplateTest, OperatorsMatchPathLabelFragmentAndQuery) {
  EXPECT_EQ(match("x{/a,b}", "x/1/2"), (Variables{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(match("x{.ext}", "x.txt"), (Variables{{"ext", "txt"}}));
  EXPECT_EQ(match("x{#part}", "x#top/y"), (Variables{{"part", "top/y"}}));
  EXPECT_EQ(match("x{?q,lang}", "x?q=a%26b&lang=de"), (Variables{{"q", "a&b"}, {"lang", "de"}}));
  EXPECT_EQ(match("x{?q,lang}", "x?lang=de"), (Variables{{"lang", "de"}}));
  EXPECT_EQ(match("x{?q,lang}", "x"), Variables{});
  EXPECT_EQ(match("x{?q}", "x?other=1"), kNone);
}

TEST(UriTemplateTest, LiteralsMustMatchCompletely) {
  EXPECT_EQ(match("a/b", "a/b"), Variables{});
  EXPECT_EQ(match("a/b", "a/bc"), kNone);
  EXPECT_EQ(match("a/b", "a"), kNone);
}

TEST(UriTemplateTest, MalformedTemplatesAreRejected) {
  for (const char* bad : {"a{", "a}", "{}", "{a,}", "{?}"}) EXPECT_FALSE(UriTemplate::parse(bad)) << bad;
}

TEST(UriTemplateTest, VariablesMatchGreedily) {
  EXPECT_EQ(match("{+a}{+b}x", "aaxbx"), (Variables{{"a", "aaxb"}, {"b", ""}}));
  EXPECT_EQ(match("{+a}-{b}", "1-2-3"), (Variables{{"a", "1-2"}, {"b", "3"}}));
  EXPECT_EQ(match("x{;a,b}", "x;1;2"), (Variables{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(match("x{.a,b}", "x.1.2"), (Variables{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(match("x{#a,b}", "x#1,#2,3"), (Variables{{"a", "1"}, {"b", "#2,3"}}));
  EXPECT_EQ(match("{a}/{a}", "1/2"), (Variables{{"a", "2"}}));
}

TEST(UriTemplateTest, QueryMayBeFollowedByAnotherPart) {
  EXPECT_EQ(match("x{?q}{#part}", "x?q=1#top"), (Variables{{"q", "1"}, {"part", "top"}}));
  EXPECT_EQ(match("x?a=1{&b,c}", "x?a=1&c=3&b=2"), (Variables{{"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(match("x{?q}", "x?"), Variables{});
  EXPECT_EQ(match("x{?q}", "x?q"), (Variables{{"q", ""}}));
  EXPECT_EQ(match("x{?q}", "x?q=1=2&"), (Variables{{"q", "1=2"}}));
  EXPECT_EQ(match("x{?q}", "x?&q=1"), kNone);
}

TEST(UriTemplateTest, UndecodableValueDoesNotMatch) {
  EXPECT_EQ(match("a/{x}", "a/%zz"), kNone);
  EXPECT_EQ(match("a/{x}", "a/%00"), kNone);
}

TEST(UriTemplateTest, TemplateOverLimitsIsRejected) {
  std::string variables;
  for (int i = 0; i < 60'000; ++i) variables += "{a}";
  const Result<UriTemplate> many = UriTemplate::parse(variables.substr(0, 3 * 65));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message().find("max_template_variables (64)"), std::string::npos);
  EXPECT_TRUE(UriTemplate::parse(variables.substr(0, 3 * 64)));
  const Result<UriTemplate> large = UriTemplate::parse(variables);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message().find("max_uri_bytes (8192)"), std::string::npos);
  EXPECT_LT(large.error().message().size(), 400u);
}

TEST(UriTemplateTest, HostileUriIsMatchedInBoundedTime) {
  EXPECT_EQ(match("{+a}{+b}{+c}{+d}{+e}x", std::string(3000, 'a')), kNone);
  std::string deep;
  for (int i = 0; i < 63; ++i) deep += "{+a}b";
  EXPECT_EQ(match(deep + "c{a}", std::string(8192, 'b')), kNone);
  std::string queries;
  for (int i = 0; i < 63; ++i) queries += "{?a}";
  EXPECT_EQ(match(queries + "c{a}", std::string(8192, '?')), kNone);
}

TEST(UriTemplateTest, MatchingStopsWhenBudgetIsExhausted) {
  const Result<UriTemplate> pattern = UriTemplate::parse("{+a}b{+c}");
  MatchBudget budget(1000);
  EXPECT_TRUE(pattern->matches("aba", budget));
  EXPECT_FALSE(pattern->matches(std::string(400, 'b'), budget));
  EXPECT_TRUE(budget.exhausted());
  EXPECT_FALSE(pattern->matches("aba", budget));
}

}  // namespace
}  // namespace fairlead::mcp
