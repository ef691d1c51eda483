// Redaction of secrets in text.
#include "fairlead/base/redactor.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace fairlead {
namespace {

TEST(RedactorTest, SecretsAreReplacedLongestFirst) {
  const Redactor redactor({"abcd", "abcdefgh", "wxyz"});
  EXPECT_EQ(redactor.redact("abcdefgh abcdx wxyzwxyz"), "*** ***x ******");
  EXPECT_EQ(redactor.redact("nothing to see"), "nothing to see");
  EXPECT_EQ(redactor.redact(""), "");
}

TEST(RedactorTest, ValuesShorterThanFourBytesAreNotReplaced) {
  const Redactor redactor({"abc", ""});
  EXPECT_TRUE(redactor.empty());
  EXPECT_EQ(redactor.redact("abc"), "abc");
}

TEST(RedactorTest, NonAsciiSecretsAreReplaced) {
  const Redactor redactor({"\xff\xfe\xfd\xfc", "pässword"});
  EXPECT_EQ(redactor.redact("a\xff\xfe\xfd\xfcz pässword"), "a***z ***");
}

TEST(RedactorTest, PrefixOfSecretAtEndOfExcerptIsReplaced) {
  const Redactor redactor({"hunter2-hunter2", "s3cr3t/abc"});
  EXPECT_EQ(redactor.redact_excerpt("token=hunter2-h"), "token=***");
  EXPECT_EQ(redactor.redact_excerpt("token=hun"), "token=hun");
  EXPECT_EQ(redactor.redact_excerpt("hunter2-h and more"), "hunter2-h and more");
  for (const std::string cut : {"%", "%2", "%2F", "%2Fa", "\\", "\\u", "\\u002", "\\u002f"}) {
    EXPECT_EQ(redactor.redact_excerpt("k=s3cr3t" + cut), "k=***") << cut;
    EXPECT_EQ(redactor.redact_excerpt("nothing" + cut), "nothing" + cut);
  }
  EXPECT_EQ(Redactor({"abc%"}).redact_excerpt("k=abc%"), "k=***") << "no escape, but the end of the secret";
}

// The name of a server is often a prefix of its secret: github and github_pat_….
TEST(RedactorTest, PrefixOfSecretInCompleteTextIsNotReplaced) {
  const Redactor redactor({"github_pat_11ABCDEFG"});
  EXPECT_EQ(redactor.redact("github"), "github");
  EXPECT_EQ(redactor.redact("cannot reach github"), "cannot reach github");
}

TEST(RedactorTest, OverlappingSecretsAreReplacedByOneMark) {
  const Redactor redactor({"abcd", "cdef", "bbbb", "dddd", "abbbbXddddY", "abab"});
  EXPECT_EQ(redactor.redact("-abcdef-"), "-***-");
  EXPECT_EQ(redactor.redact("-abbbbXddddY-"), "-***-") << "the longest is found last, and hides the others";
  EXPECT_EQ(redactor.redact("-abbbbXddddZ-"), "-a***X***Z-");
  EXPECT_EQ(redactor.redact("-ababab-"), "-***-");
}

TEST(RedactorTest, SecretIsFoundAfterPrefixOfAnotherSecret) {
  const Redactor redactor({"aaab", "aabcd", "xyzzy"});
  EXPECT_EQ(redactor.redact("aaaaab"), "aa***");
  EXPECT_EQ(redactor.redact("aaabcd"), "***");
  EXPECT_EQ(redactor.redact("xyzxyzzyx"), "xyz***x");
}

TEST(RedactorTest, EscapedSecretsInUrlsAndJsonAreReplaced) {
  const Redactor redactor({"Pa ss/\"word\""});
  EXPECT_EQ(redactor.redact("http://h/?k=Pa%20ss%2F%22word%22"), "http://h/?k=***");
  EXPECT_EQ(redactor.redact("http://h/?k=Pa%20ss%2f%22word%22"), "http://h/?k=***");
  EXPECT_EQ(redactor.redact("pa ss/\"word\""), "***");
  EXPECT_EQ(redactor.redact(R"({"k":"Pa ss/\"word\""})"), R"({"k":"***"})");
}

TEST(RedactorTest, LinesOfMultiLineSecretInJsonAreReplaced) {
  const Redactor redactor({"a \"b\"\ncdef\nx"});
  EXPECT_EQ(redactor.redact(R"({"k":"a \"b\"\ncdef\nx"})"), R"({"k":"***"})");
  EXPECT_EQ(redactor.redact(R"({"k":"cdef\na \"b\"\nx"})"), R"({"k":"***\n***\nx"})");
  EXPECT_EQ(redactor.redact("a \"b\"\ncdef\nx, x"), "***, x");
}

TEST(RedactorTest, JsonEscapesOfSecretAreReplaced) {
  const Redactor redactor({"Pa ss/\"wörd\"\x01\xF0\x9F\x94\x91"});
  EXPECT_EQ(redactor.redact("a \\u0050\\u0061 ss\\/\\\"w\\u00F6rd\\\"\\u0001\\uD83d\\udD11 z"), "a *** z");
  EXPECT_EQ(redactor.redact(R"({"k":"Pa ss/\\\"w\\u00f6rd\\\"\\u0001\\ud83d\\udd11"})"), R"({"k":"***"})")
      << "JSON text in JSON text";
  EXPECT_EQ(redactor.redact(R"(\u00 \ud83d \x \)"), R"(\u00 \ud83d \x \)");
}

TEST(RedactorTest, SecretThatContainsEscapesIsReplaced) {
  const Redactor redactor({R"(a\nb%41+c)"});
  EXPECT_EQ(redactor.redact(R"(-a\nb%41+c-)"), "-***-");
  EXPECT_EQ(redactor.redact(R"(-a\\nb%41+c-)"), "-***-");
  EXPECT_EQ(redactor.redact("-a%5Cnb%2541%2Bc-"), "-***-");
  EXPECT_EQ(redactor.redact("-a%5Cnb%2541+c-"), "-***-");
}

TEST(RedactorTest, PercentEncodedSecretsAreReplaced) {
  const Redactor redactor({"To ken/äz"});
  for (const std::string text : {"To%20ken%2F%C3%A4z", "to%20ken%2f%c3%a4z", "To+ken%2F%C3%A4z",
                                 "%54o%20%6ben/%c3%A4%7A", R"(To%20ken\/%C3%A4z)"}) {
    EXPECT_EQ(redactor.redact("k=" + text + "&x"), "k=***&x") << text;
  }
  EXPECT_EQ(redactor.redact_excerpt("k=%54o%20k"), "k=***");
  EXPECT_EQ(redactor.redact("100% of%2 %zz + 1"), "100% of%2 %zz + 1");
}

TEST(RedactorTest, ShortSecretIsNotReplacedInAnyEncoding) {
  const Redactor redactor({"a b", "\"\"\""});
  EXPECT_TRUE(redactor.empty());
  EXPECT_EQ(redactor.redact(R"(a%20b \"\"\")"), R"(a%20b \"\"\")");
}

TEST(RedactorTest, ContainsSecretFindsOnlyCompleteSecrets) {
  const Redactor redactor({"hunter2-hunter2"});
  EXPECT_TRUE(redactor.contains_secret("a hunter2-hunter2"));
  EXPECT_FALSE(redactor.contains_secret("a hunter2-h"));
}

// The secret has 4,000 lines with a common prefix, which occurs at many positions of the text.
TEST(RedactorTest, SecretOfManyLinesIsReplacedAmongManyPrefixes) {
  std::string file;
  for (int i = 0; i < 4000; ++i) file += "    " + std::to_string(100'000 + i) + "\n";
  const Redactor redactor({file});
  const std::string spaces(100, ' ');
  EXPECT_EQ(redactor.redact_excerpt(spaces + "100042" + spaces),
            std::string(96, ' ') + "***" + std::string(96, ' ') + "***");
}

TEST(SharedRedactorTest, SecretIsRedactedUntilLastHandleIsReleased) {
  const auto shared = std::make_shared<SharedRedactor>();
  std::shared_ptr<void> first = shared->add({"secret-1", "secret-2"});
  const std::shared_ptr<void> second = shared->add({"secret-2"});
  EXPECT_EQ(shared->redact("secret-1 secret-2"), "*** ***");
  first.reset();
  EXPECT_EQ(shared->redact("secret-1 secret-2"), "secret-1 ***");
}

TEST(SharedRedactorTest, SecretsOfManyHandlesAreRedactedWhileHandlesExist) {
  const auto shared = std::make_shared<SharedRedactor>();
  std::vector<std::shared_ptr<void>> handles;
  for (int i = 0; i < 300; ++i) {
    handles.push_back(shared->add({"secret-" + std::to_string(1000 + i)}));
    EXPECT_EQ(shared->redact("secret-" + std::to_string(1000 + i)), "***");
  }
  for (int i = 0; i < 300; i += 2) handles[static_cast<std::size_t>(i)].reset();
  for (int i = 1; i < 300; i += 2) EXPECT_EQ(shared->redact("secret-" + std::to_string(1000 + i)), "***");
  handles.clear();
  EXPECT_TRUE(shared->snapshot()->empty());
}

std::chrono::nanoseconds cpu_time(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = now();
  work();
  return now() - before;
}

// A gateway with thousands of servers adds their secrets one by one.
TEST(SharedRedactorTest, AddingSecretDoesNotReindexOthers) {
  const auto shared = std::make_shared<SharedRedactor>();
  std::vector<std::string> many;
  for (int i = 0; i < 5000; ++i) many.push_back("secret of a server, number " + std::to_string(10'000 + i));
  const std::shared_ptr<void> others = shared->add(many);
  const auto all = cpu_time([&] { EXPECT_EQ(shared->redact(many.back()), "***"); });
  std::shared_ptr<void> one;
  const auto added = cpu_time([&] {
    one = shared->add({"one more secret"});
    EXPECT_EQ(shared->redact("one more secret " + many.back()), "*** ***");
  });
  EXPECT_LT(added, all / 4);
  const auto released = cpu_time([&] {
    one.reset();
    EXPECT_EQ(shared->redact("one more secret " + many.back()), "one more secret ***");
  });
  EXPECT_LT(released, all / 4);
}

}  // namespace
}  // namespace fairlead
