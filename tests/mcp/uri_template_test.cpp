#include "mcp/uri_template.hpp"

#include <gtest/gtest.h>

namespace fairlead::mcp {
namespace {

using Variables = std::map<std::string, std::string>;

Variables match(std::string_view pattern, std::string_view uri) {
  const Result<UriTemplate> parsed = UriTemplate::parse(pattern);
  if (!parsed) return {{"error", parsed.error().message()}};
  return parsed->match(uri).value_or(Variables{{"no", "match"}});
}

const Variables kNone = {{"no", "match"}};

TEST(UriTemplate, SimpleVariablesStopAtReservedCharacters) {
  EXPECT_EQ(match("weather://{city}/now", "weather://bern/now"), (Variables{{"city", "bern"}}));
  EXPECT_EQ(match("weather://{city}/now", "weather://new%20york/now"), (Variables{{"city", "new york"}}));
  EXPECT_EQ(match("weather://{city}/now", "weather://a/b/now"), kNone);
  EXPECT_EQ(match("weather://{city}/now", "weather:///now"), kNone);
  EXPECT_EQ(match("a/{x}/{y}", "a/1/2"), (Variables{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(match("a/{x}{y}", "a/12"), (Variables{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(match("{x,y}", "1,2"), (Variables{{"x", "1"}, {"y", "2"}}));
}

TEST(UriTemplate, ReservedExpansionTakesSlashes) {
  EXPECT_EQ(match("file:///{+path}", "file:///a/b.txt"), (Variables{{"path", "a/b.txt"}}));
  EXPECT_EQ(match("file:///{+path}/end", "file:///a/end/end"), (Variables{{"path", "a/end"}}));
}

TEST(UriTemplate, PathLabelFragmentAndQuery) {
  EXPECT_EQ(match("x{/a,b}", "x/1/2"), (Variables{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(match("x{.ext}", "x.txt"), (Variables{{"ext", "txt"}}));
  EXPECT_EQ(match("x{#part}", "x#top/y"), (Variables{{"part", "top/y"}}));
  EXPECT_EQ(match("x{?q,lang}", "x?q=a%26b&lang=de"), (Variables{{"q", "a&b"}, {"lang", "de"}}));
  EXPECT_EQ(match("x{?q,lang}", "x?lang=de"), (Variables{{"lang", "de"}}));
  EXPECT_EQ(match("x{?q,lang}", "x"), Variables{});
  EXPECT_EQ(match("x{?q}", "x?other=1"), kNone);
}

TEST(UriTemplate, LiteralsMustMatchWhole) {
  EXPECT_EQ(match("a/b", "a/b"), Variables{});
  EXPECT_EQ(match("a/b", "a/bc"), kNone);
  EXPECT_EQ(match("a/b", "a"), kNone);
}

TEST(UriTemplate, MalformedTemplatesAreRefused) {
  for (const char* bad : {"a{", "a}", "{}", "{a,}", "{?}"}) EXPECT_FALSE(UriTemplate::parse(bad)) << bad;
}

TEST(UriTemplate, HostileUriEndsQuickly) {
  EXPECT_EQ(match("{+a}{+b}{+c}{+d}{+e}x", std::string(3000, 'a')), kNone);
}

}  // namespace
}  // namespace fairlead::mcp
