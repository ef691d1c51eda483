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
