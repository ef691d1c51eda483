// Tests that secrets are passed to the child and are redacted everywhere else.
#include "process/secrets.hpp"

#include <gtest/gtest.h>

#include "fairlead/base/redactor.hpp"
#include "fairlead/process/failure.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using process::resolve_secret;

constexpr char kSecret[] = "hunter2-hunter2";

TEST(SecretsTest, VariableReferenceIsReplaced) {
  const TemporaryVariable token("FAIRLEAD_TEST_TOKEN", kSecret);
  std::vector<std::string> secrets;
  EXPECT_EQ(resolve_secret("T", "Bearer ${FAIRLEAD_TEST_TOKEN}!", secrets).value(),
            "Bearer hunter2-hunter2!");
  EXPECT_EQ(Redactor(secrets).redact("sent Bearer hunter2-hunter2 to x"), "sent Bearer *** to x");
}

TEST(SecretsTest, FileReferenceIsReplacedByContentWithoutLastLineBreak) {
  const TemporaryDirectory dir;
  const std::string file = dir.write("key", std::string(kSecret) + "\n", 0600);
  std::vector<std::string> secrets;
  EXPECT_EQ(resolve_secret("T", "file:" + file, secrets).value(), kSecret);
  EXPECT_EQ(resolve_secret("T", "a${file:" + file + "}b", secrets).value(), "ahunter2-hunter2b");
  EXPECT_EQ(Redactor(secrets).redact(kSecret), "***");
}

TEST(SecretsTest, DoubleDollarIsReplacedByDollar) {
  std::vector<std::string> secrets;
  EXPECT_EQ(resolve_secret("T", "$$x$y$${A} $", secrets).value(), "$x$y${A} $");
}

TEST(SecretsTest, ValueWithoutReferenceIsSecretAsAWhole) {
  std::vector<std::string> secrets;
  EXPECT_EQ(resolve_secret("T", kSecret, secrets).value(), kSecret);
  EXPECT_EQ(Redactor(secrets).redact("x" + std::string(kSecret)), "x***");
}

TEST(SecretsTest, ErrorNamesMissingVariableOrFile) {
  const TemporaryVariable unset("FAIRLEAD_TEST_TOKEN", nullptr);
  const TemporaryDirectory dir;
  std::vector<std::string> secrets;
  const Error variable = resolve_secret("T", "${FAIRLEAD_TEST_TOKEN}", secrets).error();
  EXPECT_EQ(variable.detail().failure_code, failure::secret_unavailable);
  EXPECT_EQ(variable.message(),
            "no secret for the variable T: the environment variable FAIRLEAD_TEST_TOKEN is not set");
  EXPECT_EQ(resolve_secret("T", "file:/nowhere", secrets).error().detail().failure_code,
            failure::secret_unavailable);
  const std::string nul = dir.write("nul", std::string("a\0b", 3), 0600);
  EXPECT_EQ(resolve_secret("T", "file:" + nul, secrets).error().detail().failure_code,
            failure::secret_unavailable);
}

// The error has the command line with all secrets redacted, even those that follow the missing one.
TEST(SecretsTest, ErrorAboutMissingSecretRedactsCommandLine) {
  const TemporaryVariable unset("FAIRLEAD_TEST_TOKEN", nullptr);
  Loop loop;
  ProcessSpec spec = spec_of("cat", {"--key", std::string(kSecret)});
  spec.secret_env["A"] = "${FAIRLEAD_TEST_TOKEN}";
  spec.secret_env["B"] = kSecret;
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.detail().failure_code, failure::secret_unavailable);
  EXPECT_EQ(error.detail().command_line, "cat --key '***'");
}

TEST(SecretsTest, EachLineOfMultilineSecretIsRedacted) {
  std::vector<std::string> secrets;
  secrets.push_back("-----BEGIN\nabcdefgh\r\nijklmnop");
  EXPECT_EQ(Redactor(secrets).redact("saw abcdefgh and ijklmnop"), "saw *** and ***");
}

TEST(SecretsTest, TruncatedSecretIsRedacted) {
  std::vector<std::string> secrets;
  secrets.push_back(kSecret);
  EXPECT_EQ(Redactor(secrets).redact_excerpt("token=hunter2-hu"), "token=***");
}

TEST(SecretsTest, LongerOfTwoSecretsIsRedactedAsAWhole) {
  std::vector<std::string> secrets;
  secrets.push_back("abcd");
  secrets.push_back("abcdefgh");
  EXPECT_EQ(Redactor(secrets).redact("abcdefgh abcdx"), "*** ***x");
}

// The child gets the secret; the log, the stderr lines and command line in errors, and the manifest do not
// contain it.
TEST(SecretsTest, SecretIsRedactedInLogErrorNameAndManifest) {
  const TemporaryVariable token("FAIRLEAD_TEST_TOKEN", kSecret);
  const TemporaryDirectory dir;
  std::string logged;
  const Log log(LogLevel::trace, LogFormat::text, [&](std::string_view line) { logged += line; });
  Loop loop;
  // The name and the arguments contain the secret too, as in a careless configuration.
  ProcessSpec spec = spec_of("sh", {"-c", "echo $T; echo \"key $T\" >&2; printf %s $T >&2; exit 3", kSecret});
  spec.secret_env["T"] = "${FAIRLEAD_TEST_TOKEN}";
  spec.stderr_mode = StderrMode::log;
  spec.name = std::string("server ") + kSecret;
  spec.manifest.path = dir.path() + "/manifest";
  const RunningChild running = start(loop, std::move(spec), {}, log);
  EXPECT_EQ(running.read_line(), kSecret);
  wait_for(loop, *running.child);
  const Error error = running.child->exit_error();
  EXPECT_EQ(error.detail().stderr_lines, (std::vector<std::string>{"key ***", "***"}));
  EXPECT_TRUE(error.detail().command_line.ends_with(" '***'")) << error.detail().command_line;
  for (const std::string& text :
       {logged, error.to_string(), running.child->name(), read_file(dir.path() + "/manifest")}) {
    EXPECT_FALSE(text.empty());
    EXPECT_FALSE(text.contains(kSecret)) << text;
  }
}

TEST(SecretsTest, SecretIsRedactedInRelayedStderr) {
  const TemporaryVariable token("FAIRLEAD_TEST_TOKEN", kSecret);
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "echo \"key $T\" >&2"});
  spec.secret_env["T"] = "${FAIRLEAD_TEST_TOKEN}";
  ::testing::internal::CaptureStderr();
  const RunningChild running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "key ***\n");
}

TEST(SecretsTest, SecretIsRedactedWhenStartFails) {
  const TemporaryVariable token("FAIRLEAD_TEST_TOKEN", kSecret);
  Loop loop;
  ProcessSpec spec = spec_of("no-such-program", {"--key", kSecret});
  spec.secret_env["PATH"] = "/nowhere/${FAIRLEAD_TEST_TOKEN}";
  const Error error = start_error(loop, std::move(spec));
  EXPECT_EQ(error.message(), "command not found: no-such-program (looked in PATH=/nowhere/***)");
  EXPECT_FALSE(error.to_string().contains(kSecret)) << error.to_string();
}

}  // namespace
}  // namespace fairlead::test
