// References in configuration values, durations, and suggestions for misspelled words.
#include "base/references.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/suggestion.hpp"
#include "fairlead/base/duration.hpp"

namespace fairlead {
namespace {

// Returns `text` with each reference replaced by "<source:name>" or "<source:name|fallback>", or the error
// message.
std::string expanded(std::string_view text) {
  const Result<std::string> out = expand_references(text, [](const Reference& reference) {
    const char* const sources[] = {"env", "secret", "file"};
    std::string shown = std::string("<") + sources[static_cast<int>(reference.source)] + ":" + reference.name;
    if (reference.fallback) shown += "|" + *reference.fallback;
    return Result<std::string>(shown + ">");
  });
  return out ? *out : "error: " + out.error().message();
}

TEST(ReferenceParserTest, EachFormIsParsed) {
  EXPECT_EQ(expanded("a ${NAME} b"), "a <env:NAME> b");
  EXPECT_EQ(expanded("${env:NAME}"), "<env:NAME>");
  EXPECT_EQ(expanded("${NAME:-x y}${env:_N1:-}"), "<env:NAME|x y><env:_N1|>");
  EXPECT_EQ(expanded("${secret:team/github.token-2}"), "<secret:team/github.token-2>");
  EXPECT_EQ(expanded("${file:/run/my secrets/a:-b}"), "<file:/run/my secrets/a:-b>");
}

TEST(ReferenceParserTest, DollarThatBeginsNoReferenceIsKept) {
  EXPECT_EQ(expanded("$"), "$");
  EXPECT_EQ(expanded("$HOME costs $5 or 5$"), "$HOME costs $5 or 5$");
  EXPECT_EQ(expanded("$$"), "$");
  EXPECT_EQ(expanded("$${NAME}"), "${NAME}");
  EXPECT_EQ(expanded("$$$${NAME}"), "$${NAME}");
  EXPECT_EQ(expanded("$$${NAME}"), "$<env:NAME>");
  EXPECT_EQ(expanded(""), "");
}

TEST(ReferenceParserTest, MalformedReferenceFailsWithRemedy) {
  for (const char* text : {"${", "${}", "${ NAME}", "${1A}", "${A-B}", "${input:key}", "${secret:}",
                           "${secret:a b}", "${secret:a:-b}", "${file:}", "${file:relative}", "${env:}",
                           "${:-x}", "a${b", "${A:-${B}}", "${${A}}", "${A%.*}"}) {
    const std::string result = expanded(text);
    EXPECT_TRUE(result.starts_with("error: `${")) << text << ": " << result;
    EXPECT_TRUE(result.ends_with("; write $$ for a dollar")) << text << ": " << result;
  }
}

TEST(ReferenceParserTest, HostileMegabyteIsParsedInLinearTime) {
  const std::size_t megabyte = 1u << 20;
  std::string opened;
  while (opened.size() < megabyte) opened += "${";
  const std::string error = expanded(opened);
  EXPECT_TRUE(error.starts_with("error: ")) << error.substr(0, 100);
  EXPECT_LT(error.size(), 300u);
  EXPECT_LT(expanded("${" + std::string(megabyte, 'A')).size(), 300u);
  EXPECT_EQ(expanded(std::string(megabyte, '$')).size(), megabyte / 2);
  EXPECT_EQ(expanded("${" + std::string(megabyte, 'A') + "}").size(), megabyte + 6);
  std::string many;
  while (many.size() < megabyte) many += "${A}";
  EXPECT_EQ(expanded(many).size(), many.size() / 4 * 7);
}

TEST(DurationTest, FormattedDurationsParseBack) {
  for (const std::int64_t ms :
       {0ll, 1ll, 999ll, 1000ll, 1500ll, 60'000ll, 90'000ll, 3'600'000ll, 5'400'000ll}) {
    const std::chrono::milliseconds duration(ms);
    EXPECT_EQ(*parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
  EXPECT_EQ(format_duration(std::chrono::minutes(10)), "10m");
}

TEST(SuggestionTest, ClosestWordIsSuggestedOrNone) {
  const std::vector<std::string> known = {"timeout", "command", "cwd", "args"};
  EXPECT_EQ(closest_word("timeot", known), "timeout");
  EXPECT_EQ(closest_word("comand", known), "command");
  EXPECT_EQ(closest_word("arg", known), "args");
  EXPECT_EQ(closest_word("zzz", known), "");
  EXPECT_EQ(closest_word("", known), "");
  EXPECT_EQ(closest_word(std::string(1u << 20, 'x'), known), "");
}

}  // namespace
}  // namespace fairlead
