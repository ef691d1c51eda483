#include "base/env_file.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using Values = std::map<std::string, std::string>;

TEST(EnvFile, NamesAndValuesAreReadWithQuotesAndComments) {
  EXPECT_EQ(parse_env_file("\xEF\xBB\xBF# comment\r\nA=1\r\n export B = two words # comment\nC='a #$b'\n"
                           "D=\"a\\n\\\"b\\\" \\$c\" # x\nE=\nF=a#b\n\nG=#x"),
            (Values{{"A", "1"},
                    {"B", "two words"},
                    {"C", "a #$b"},
                    {"D", "a\n\"b\" $c"},
                    {"E", ""},
                    {"F", "a#b"},
                    {"G", ""}}));
}

TEST(EnvFile, QuotedValuesMayHaveSeveralLines) {
  EXPECT_EQ(parse_env_file("KEY=\"-----BEGIN\nA=1\n-----END\" # key\nB='x\n y'\nC=3"),
            (Values{{"KEY", "-----BEGIN\nA=1\n-----END"}, {"B", "x\n y"}, {"C", "3"}}));
}

TEST(EnvFile, OtherLinesAreIgnoredAndTheLastValueCounts) {
  EXPECT_EQ(parse_env_file("no value\n=x\n1A=2\nA B=3\nA=1\nA=2\nB='open\nC=\"open\\"),
            (Values{{"A", "2"}, {"B", "'open"}, {"C", "\"open\\"}}));
  EXPECT_EQ(parse_env_file(""), Values());
}

}  // namespace
}  // namespace fairlead
