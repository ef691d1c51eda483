// Tests of Regex: matching, rejected patterns, and linear time for every pattern.
#include "json/regex.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

namespace fairlead::json {
namespace {

constexpr std::size_t kStates = 10'000;
constexpr std::size_t kPlenty = 100'000'000;

bool finds(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern, kStates);
  EXPECT_TRUE(regex) << pattern << ": " << regex.error().message();
  std::size_t budget = kPlenty;
  const auto match = regex ? regex->search(text, budget) : Regex::Match::undecided;
  EXPECT_NE(match, Regex::Match::undecided) << pattern;
  return match == Regex::Match::yes;
}

std::string refusal_of(std::string_view pattern, std::size_t max_states = kStates) {
  const auto regex = Regex::compile(pattern, max_states);
  return regex ? "none" : regex.error().message();
}

TEST(RegexTest, MatchesAnywhereUnlessAnchored) {
  EXPECT_TRUE(finds("b", "abc"));
  EXPECT_FALSE(finds("d", "abc"));
  EXPECT_TRUE(finds("", ""));
  EXPECT_TRUE(finds("", "abc"));
  EXPECT_TRUE(finds("^ab", "abc"));
  EXPECT_FALSE(finds("^b", "abc"));
  EXPECT_TRUE(finds("bc$", "abc"));
  EXPECT_FALSE(finds("ab$", "abc"));
  EXPECT_TRUE(finds("^$", ""));
  EXPECT_FALSE(finds("^$", "\n"));
  EXPECT_FALSE(finds("^a$", "a\n"));  // $ matches at the end of the text only, not at the end of a line
  EXPECT_TRUE(finds("^a|^b", "bc"));
  EXPECT_FALSE(finds("^a|^b", "cb"));
  EXPECT_TRUE(finds("(^a|b)c", "xbc"));
  EXPECT_FALSE(finds("a^b", "ab"));
}

TEST(RegexTest, QuantifiersBoundRepetitions) {
  EXPECT_TRUE(finds("^a*$", ""));
  EXPECT_TRUE(finds("^a*$", "aaaa"));
  EXPECT_FALSE(finds("^a+$", ""));
  EXPECT_TRUE(finds("^a?b$", "b"));
  EXPECT_FALSE(finds("^a?b$", "aab"));
  EXPECT_TRUE(finds("^a{3}$", "aaa"));
  EXPECT_FALSE(finds("^a{3}$", "aa"));
  EXPECT_FALSE(finds("^a{3}$", "aaaa"));
  EXPECT_TRUE(finds("^a{2,}$", "aaaaa"));
  EXPECT_FALSE(finds("^a{2,}$", "a"));
  EXPECT_TRUE(finds("^a{2,4}$", "aaaa"));
  EXPECT_FALSE(finds("^a{2,4}$", "aaaaa"));
  EXPECT_TRUE(finds("^a{0}$", ""));
  EXPECT_TRUE(finds("^(ab|c)+?d$", "abcabd"));
  EXPECT_TRUE(finds("^(?:a*)*$", "aaa"));
  EXPECT_TRUE(finds("^(a|b*)*c$", "abbac"));
  EXPECT_TRUE(finds("^(){1000}a$", "a"));
}

TEST(RegexTest, MatchesClassesAndEscapes) {
  EXPECT_TRUE(finds(R"(^\d{3}$)", "042"));
  EXPECT_FALSE(finds(R"(^\d$)", "\xd9\xa0"));  // ARABIC-INDIC DIGIT ZERO: \d is ASCII
  EXPECT_TRUE(finds(R"(^\w+$)", "a_Z9"));
  EXPECT_FALSE(finds(R"(^\w$)", "\xc3\xa9"));
  EXPECT_TRUE(finds(R"(^\s+$)", " \t\n\r\f\v\xc2\xa0\xef\xbb\xbf\xe2\x80\xa8\xe3\x80\x80"));
  EXPECT_TRUE(finds(R"(^\S\D\W$)", "xx-"));
  EXPECT_TRUE(finds("^[a-cx]+$", "abcx"));
  EXPECT_FALSE(finds("^[^a-c]$", "b"));
  EXPECT_TRUE(finds("^[^a-c]$", "\xf0\x9f\x98\x80"));  // one code point, not four bytes
  EXPECT_TRUE(finds(R"(^[\d\-x.]+$)", "1-x."));
  EXPECT_TRUE(finds(R"(^[a\-]+$)", "a-"));
  EXPECT_TRUE(finds("^[-a]+[a-]+$", "-a-"));
  EXPECT_TRUE(finds(R"(^[\]]$)", "]"));
  EXPECT_FALSE(finds("[]", "a"));
  EXPECT_TRUE(finds("^[^]$", "\n"));
  EXPECT_TRUE(finds(R"(^\t\n\r\f\v\0$)", std::string_view("\t\n\r\f\v\0", 6)));
  EXPECT_TRUE(finds(R"(^\x41\u0042\u{43}\u{1F600}$)", "ABC\xf0\x9f\x98\x80"));
  EXPECT_TRUE(finds(R"(^\ud83d\ude00$)", "\xf0\x9f\x98\x80"));
  EXPECT_TRUE(finds(R"(^\cJ\/\.\-$)", "\n/.-"));
  EXPECT_TRUE(finds(R"(^[\b]$)", "\b"));
  EXPECT_FALSE(finds("^.$", "\n"));
  EXPECT_FALSE(finds("^.$", "\xe2\x80\xa8"));
  EXPECT_TRUE(finds("^.$", "\xe2\x82\xac"));
  EXPECT_TRUE(finds("^\xc3\xa9+$", "\xc3\xa9\xc3\xa9"));
  EXPECT_TRUE(finds("^{}{a}]$", "{}{a}]"));  // lenient, as browsers are
}

TEST(RegexTest, MatchesGeneralCategories) {
  EXPECT_TRUE(finds(R"(^\p{L}+$)", "\xce\xb1\xd0\x96z\xe6\xbc\xa2"));
  EXPECT_TRUE(finds(R"(^\p{Letter}$)", "\xc3\xa9"));
  EXPECT_FALSE(finds(R"(\p{L})", "12 \xe2\x82\xac"));
  EXPECT_TRUE(finds(R"(^\p{Lu}\p{Ll}$)", "\xc3\x89\xc3\xa9"));
  EXPECT_TRUE(finds(R"(^\p{Nd}+$)", "1\xd9\xa0"));
  EXPECT_TRUE(finds(R"(^\p{General_Category=Decimal_Number}\p{gc=Sc}$)", "7\xe2\x82\xac"));
  EXPECT_TRUE(finds(R"(^\P{L}$)", "1"));
  EXPECT_TRUE(finds(R"(^[\p{L}\p{N}_]+$)", "a\xd9\xa0_"));
  EXPECT_TRUE(finds(R"(^[^\p{L}]$)", "1"));
  EXPECT_TRUE(finds(R"(^\p{ASCII}\p{Any}$)", "a\xf4\x8f\xbf\xbf"));
  EXPECT_EQ(refusal_of(R"(\p{Script=Greek})"),
            "unknown Unicode property (only general categories, Any and ASCII are supported) at byte 0");
}

TEST(RegexTest, MatchesLookarounds) {
  EXPECT_TRUE(finds("a(?=b)", "xab"));
  EXPECT_FALSE(finds("a(?=b)", "xac"));
  EXPECT_TRUE(finds("a(?!b)", "abac"));
  EXPECT_FALSE(finds("a(?!b)", "abab"));
  EXPECT_TRUE(finds("(?<=a)b", "ab"));
  EXPECT_FALSE(finds("(?<=a)b", "cb"));
  EXPECT_TRUE(finds("(?<!a)b", "cb"));
  EXPECT_FALSE(finds("(?<!a)b", "ab"));
  const std::string_view password = R"(^(?=.*[A-Z])(?=.*\d)(?!.*\s).{8,}$)";
  EXPECT_TRUE(finds(password, "Secret123"));
  EXPECT_FALSE(finds(password, "secret123"));
  EXPECT_FALSE(finds(password, "Secret 123"));
  EXPECT_FALSE(finds(password, "Sec1"));
  EXPECT_TRUE(finds("^(?!(?=a)ab)a", "ac"));
  EXPECT_FALSE(finds("^(?!(?=a)ab)a", "ab"));
  EXPECT_TRUE(finds("(?<=\xc3\xa9.)b$",
                    "\xc3\xa9\xe2\x82\xac"
                    "b"));
  EXPECT_TRUE(finds(R"(\bfoo\b)", "a foo."));
  EXPECT_FALSE(finds(R"(\bfoo\b)", "afoo"));
  EXPECT_TRUE(finds(R"(\Boo)", "foo"));
  EXPECT_TRUE(finds("(?<year>\\d{4})", "in 1999"));
}

TEST(RegexTest, CompileErrorNamesProblemAndOffset) {
  EXPECT_EQ(refusal_of("a("), "a group is not closed at byte 2");
  EXPECT_EQ(refusal_of("a)"), "unmatched ) at byte 1");
  EXPECT_EQ(refusal_of("[a"), "a character class is not closed at byte 2");
  EXPECT_EQ(refusal_of("[b-a]"), "a range out of order in a character class at byte 4");
  EXPECT_EQ(refusal_of("*a"), "nothing to repeat at byte 0");
  EXPECT_EQ(refusal_of("a**"), "nothing to repeat at byte 2");
  EXPECT_EQ(refusal_of("a{2}{3}"), "nothing to repeat at byte 7");
  EXPECT_EQ(refusal_of("^*"), "nothing to repeat at byte 1");
  EXPECT_EQ(refusal_of("a{3,2}"), "numbers out of order in {} at byte 6");
  EXPECT_EQ(refusal_of(R"((a)\1)"), "backreferences are not supported at byte 3");
  EXPECT_EQ(refusal_of(R"((?<n>a)\k<n>)"), "backreferences are not supported at byte 7");
  EXPECT_EQ(refusal_of(R"(\a)"), "unknown escape at byte 0");
  EXPECT_EQ(refusal_of(R"(^\S(|(.|\n)*\S)\Z)"), "unknown escape at byte 15");
  EXPECT_EQ(refusal_of("\\"), "the pattern ends in a backslash at byte 0");
  EXPECT_EQ(refusal_of(R"(\x4)"), "hexadecimal digits expected at byte 2");
  EXPECT_EQ(refusal_of(R"(\u{110000})"), "code point over 10FFFF at byte 9");
  EXPECT_EQ(refusal_of(R"(\p{Nope})").substr(0, 24), "unknown Unicode property");
  EXPECT_EQ(refusal_of(R"(\pL)"), "\\p needs a property in braces at byte 0");
  EXPECT_EQ(refusal_of("(?>a)"), "unknown kind of group at byte 2");
}

TEST(RegexTest, RejectsPatternsWithTooManyStates) {
  const std::string too_large = "needs more states than max_pattern_states leaves";
  EXPECT_NE(refusal_of("((a{100}){100}){100}").find(too_large), std::string::npos);
  EXPECT_NE(refusal_of("a{4000000000}").find(too_large), std::string::npos);
  EXPECT_NE(refusal_of("(){99999999999999999999}").find(too_large), std::string::npos);
  EXPECT_NE(refusal_of("(|){1,1000000}").find(too_large), std::string::npos);
  EXPECT_NE(refusal_of(std::string(20'000, 'a')).find(too_large), std::string::npos);
  std::string classes;
  for (int i = 0; i < 1000; ++i) classes += R"([\p{L}\p{N}])";
  EXPECT_NE(refusal_of(classes).find(too_large), std::string::npos);
  EXPECT_EQ(refusal_of(std::string(101, '(') + std::string(101, ')')),
            "groups nested too deeply at byte 100");
  EXPECT_EQ(refusal_of(std::string(100, '(') + std::string(100, ')')), "none");
}

// Each of these takes a backtracking matcher exponential time.
TEST(RegexTest, MatchesInLinearTime) {
  const std::string text = std::string(20'000, 'a') + "!";
  for (const std::string_view pattern :
       {"^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)(.*)(.*)(.*)[0-9]$", "^(([a-z])+.)+[A-Z]([a-z])+$",
        "^(?=(a+)+$)", "(a?){50}a{50}$", "^(?:a|(?:a|a))*$"}) {
    const auto regex = Regex::compile(pattern, kStates);
    ASSERT_TRUE(regex);
    std::size_t budget = kPlenty;
    EXPECT_EQ(regex->search(text, budget), Regex::Match::no) << pattern;
    EXPECT_LT(kPlenty - budget, text.size() * regex->state_count() * 4) << pattern;
  }
}

TEST(RegexTest, IsUndecidedWhenBudgetIsExhausted) {
  const auto regex = Regex::compile("(?=)(x+x+)+y", kStates);
  ASSERT_TRUE(regex);
  std::size_t budget = 100;
  EXPECT_EQ(regex->search(std::string(1000, 'x'), budget), Regex::Match::undecided);
  EXPECT_EQ(budget, 0u);
}

// Generates random patterns over few letters.
class Patterns {
 public:
  explicit Patterns(unsigned seed) : random_(seed) {}
  std::string pattern(int depth) {
    std::string out;
    const int terms = pick(4);
    for (int i = 0; i < terms; ++i) out += term(depth);
    if (depth > 0 && pick(4) == 0) out += "|" + pattern(depth - 1);
    return out;
  }
  std::string text() {
    std::string out;
    for (int left = pick(9); left > 0; --left) out += "abc "[pick(4)];
    return out;
  }

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  std::string term(int depth) {
    switch (pick(depth > 0 ? 12 : 8)) {
      case 0: return looking_ ? "a" : "^";
      case 1: return "$";
      case 2: return looking_ ? "b" : "\\b";
      case 3: return quantified("[ab]");
      case 4: return quantified("[^a]");
      case 5: return quantified(".");
      case 8: return look("(?=", depth);
      case 9: return look("(?!", depth);
      case 10:
      case 11: return quantified("(?:" + pattern(depth - 1) + ")");
      default: return quantified(std::string(1, "abc"[pick(3)]));
    }
  }
  // Generates no anchor inside a lookahead, because std::regex treats every position as the beginning there.
  std::string look(const std::string& open, int depth) {
    const bool around = std::exchange(looking_, true);
    const std::string inside = pattern(depth - 1);
    looking_ = around;
    return open + inside + ")";
  }
  std::string quantified(const std::string& atom) {
    constexpr std::array<std::string_view, 8> kQuantifiers = {"", "", "", "*", "+", "?", "{2}", "{1,2}"};
    return atom + std::string(kQuantifiers[static_cast<std::size_t>(pick(8))]);
  }

  std::mt19937 random_;
  bool looking_ = false;
};

TEST(RegexTest, AgreesWithStandardLibrary) {
  Patterns patterns(20260728);
  for (int i = 0; i < 3000; ++i) {
    const std::string pattern = patterns.pattern(2);
    const std::regex reference(pattern, std::regex::ECMAScript);
    for (int j = 0; j < 8; ++j) {
      const std::string text = patterns.text();
      const bool expected = std::regex_search(text, reference);
      ASSERT_EQ(finds(pattern, text), expected) << pattern << " in \"" << text << '"';
      // The same without a DFA: a pattern with a lookahead has none. This lookahead always holds.
      ASSERT_EQ(finds("(?:" + pattern + ")(?=)", text), expected) << pattern << " in \"" << text << '"';
    }
  }
}

}  // namespace
}  // namespace fairlead::json
