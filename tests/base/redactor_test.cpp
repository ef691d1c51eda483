// Secrets are replaced in text.
#include "fairlead/base/redactor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fairlead {
namespace {

TEST(Redactor, EverySecretIsReplacedTheLongestFirst) {
  const Redactor redactor({"abcd", "abcdefgh", "wxyz"});
  EXPECT_EQ(redactor.redact("abcdefgh abcdx wxyzwxyz"), "*** ***x ******");
  EXPECT_EQ(redactor.redact("nothing to see"), "nothing to see");
  EXPECT_EQ(redactor.redact(""), "");
}

TEST(Redactor, ValuesOfLessThanFourBytesAreKept) {
  const Redactor redactor({"abc", ""});
  EXPECT_TRUE(redactor.empty());
  EXPECT_EQ(redactor.redact("abc"), "abc");
}

TEST(Redactor, BytesBeyondAsciiAreFoundToo) {
  const Redactor redactor({"\xff\xfe\xfd\xfc", "pässword"});
  EXPECT_EQ(redactor.redact("a\xff\xfe\xfd\xfcz pässword"), "a***z ***");
}

TEST(Redactor, TheBeginningOfASecretAtACutIsReplaced) {
  const Redactor redactor({"hunter2-hunter2"});
  EXPECT_EQ(redactor.redact("token=hunter2-h"), "token=***");
  EXPECT_EQ(redactor.redact("token=hun"), "token=hun");
  EXPECT_EQ(redactor.redact("hunter2-h and more"), "hunter2-h and more");
}

TEST(Redactor, OverlappingSecretsAreReplacedAsOne) {
  const Redactor redactor({"abcd", "cdef", "bbbb", "dddd", "abbbbXddddY", "abab"});
  EXPECT_EQ(redactor.redact("-abcdef-"), "-***-");
  EXPECT_EQ(redactor.redact("-abbbbXddddY-"), "-***-") << "the longest is found last, and hides the others";
  EXPECT_EQ(redactor.redact("-abbbbXddddZ-"), "-a***X***Z-");
  EXPECT_EQ(redactor.redact("-ababab-"), "-***-");
}

TEST(Redactor, SecretIsFoundAfterTheBeginningOfAnother) {
  const Redactor redactor({"aaab", "aabcd", "xyzzy"});
  EXPECT_EQ(redactor.redact("aaaaab"), "aa***");
  EXPECT_EQ(redactor.redact("aaabcd"), "***");
  EXPECT_EQ(redactor.redact("xyzxyzzyx"), "xyz***x");
}

TEST(Redactor, FormsOfASecretInUrlsAndInNestedJsonAreReplaced) {
  const Redactor redactor({"Pa ss/\"word\""});
  EXPECT_EQ(redactor.redact("http://h/?k=Pa%20ss%2F%22word%22"), "http://h/?k=***");
  EXPECT_EQ(redactor.redact("http://h/?k=Pa%20ss%2f%22word%22"), "http://h/?k=***");
  EXPECT_EQ(redactor.redact("pa ss/\"word\""), "***");
  EXPECT_EQ(redactor.redact(R"({"k":"Pa ss/\"word\""})"), R"({"k":"***"})");
}

TEST(Redactor, LinesOfASecretInNestedJsonAreReplaced) {
  const Redactor redactor({"a \"b\"\ncdef\nx"});
  EXPECT_EQ(redactor.redact(R"({"k":"a \"b\"\ncdef\nx"})"), R"({"k":"***\n***\nx"})");
  EXPECT_EQ(redactor.redact("a \"b\"\ncdef\nx, x"), "***, x");
}

TEST(Redactor, ShortSecretIsKeptInEveryForm) {
  const Redactor redactor({"a b", "\"\"\""});
  EXPECT_TRUE(redactor.empty());
  EXPECT_EQ(redactor.redact(R"(a%20b \"\"\")"), R"(a%20b \"\"\")");
}

TEST(Redactor, OnlyACompleteSecretIsFound) {
  const Redactor redactor({"hunter2-hunter2"});
  EXPECT_TRUE(redactor.finds_secret("a hunter2-hunter2"));
  EXPECT_FALSE(redactor.finds_secret("a hunter2-h"));
}

// 4,000 lines with the same beginning, and a text that begins like each of them everywhere.
TEST(Redactor, SecretOfManyLinesIsReplacedAmongManyBeginningsOfIt) {
  std::string file;
  for (int i = 0; i < 4000; ++i) file += "    " + std::to_string(100'000 + i) + "\n";
  const Redactor redactor({file});
  const std::string spaces(100, ' ');
  EXPECT_EQ(redactor.redact(spaces + "100042" + spaces),
            std::string(96, ' ') + "***" + std::string(96, ' ') + "***");
}

TEST(SharedRedactor, ASecretIsRedactedUntilItsLastHandleIsReleased) {
  const auto shared = std::make_shared<SharedRedactor>();
  std::shared_ptr<void> first = shared->add({"secret-1", "secret-2"});
  const std::shared_ptr<void> second = shared->add({"secret-2"});
  EXPECT_EQ(shared->redact("secret-1 secret-2"), "*** ***");
  first.reset();
  EXPECT_EQ(shared->redact("secret-1 secret-2"), "secret-1 ***");
}

}  // namespace
}  // namespace fairlead
