// Tests that every error about a child has a code, the command line and a remedy.
#include "process/child_error_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "fairlead/process/failure.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

ErrorDetail start_failure(ProcessSpec spec) {
  Loop loop;
  return start_error(loop, std::move(spec)).detail();
}

TEST(ChildErrorContextTest, SpawnErrorHasCodeCommandLineAndSearchPath) {
  const TemporaryDirectory dir;
  ProcessSpec missing = spec_of("no-such-program", {"a b"});
  missing.env["PATH"] = "/x:/y";
  const ErrorDetail detail = start_failure(missing);
  EXPECT_EQ(detail.failure_code, failure::command_not_found);
  EXPECT_EQ(detail.command_line, "no-such-program 'a b'");
  EXPECT_EQ(detail.search_path, "/x:/y");
  EXPECT_EQ(detail.remedy, remedy_for(failure::command_not_found));
  EXPECT_EQ(start_failure(spec_of("/no/such/program")).failure_code, failure::command_not_found);
  EXPECT_EQ(start_failure(spec_of("/no/such/program")).search_path, "");
  EXPECT_EQ(start_failure(spec_of(dir.write("plain", "", 0644))).failure_code, failure::not_executable);
  EXPECT_EQ(start_failure(spec_of("")).failure_code, failure::bad_spec);
  ProcessSpec nowhere = spec_of("cat");
  nowhere.cwd = "/nowhere";
  EXPECT_EQ(start_failure(nowhere).failure_code, failure::bad_cwd);
  EXPECT_EQ(start_failure(spec_of("cat", {std::string(300'000, 'x')})).failure_code,
            failure::arguments_too_long);
}

TEST(ChildErrorContextTest, ExitErrorHasCodeCommandLineAndStderrLines) {
  Loop loop;
  ProcessSpec exits = spec_of_fixture("exits", {"3", "one", "two"});
  exits.stderr_mode = StderrMode::discard;
  const RunningChild exited = start(loop, exits);
  wait_for(loop, *exited.child);
  const Error error = exited.child->exit_error();
  EXPECT_EQ(error.detail().failure_code, failure::exited);
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_EQ(error.detail().command_line, fixture("exits") + " 3 one two");
  const std::string text = error.to_string();
  for (const std::string& line :
       {"\ncommand: " + fixture("exits") + " 3 one two\n", std::string("\nits stderr:\n  one\n  two\n"),
        std::string("\ncode: exited\n"), "\nremedy: " + std::string(remedy_for(failure::exited))})
    EXPECT_TRUE(text.contains(line)) << line << "\nis not in\n" << text;

  const RunningChild killed = start(loop, spec_of("cat"));
  ::kill(killed.child->pid(), SIGKILL);
  wait_for(loop, *killed.child);
  EXPECT_EQ(killed.child->exit_error().detail().failure_code, failure::killed_by_signal);
  EXPECT_FALSE(killed.child->exit_error().detail().search_path.empty());
}

// For errors that other layers detect, such as a handshake timeout.
TEST(ChildErrorContextTest, ContextCanBeAddedToOtherErrors) {
  Loop loop;
  const RunningChild running = start(loop, spec_of("cat"));
  const Error error =
      running.child->with_error_context(Error::timeout("the handshake", 30s), failure::handshake_timeout);
  EXPECT_EQ(error.kind(), ErrorKind::timeout);
  EXPECT_EQ(error.detail().failure_code, failure::handshake_timeout);
  EXPECT_EQ(error.detail().waited, 30s);
  EXPECT_TRUE(error.detail().command_line.ends_with("/cat"));
}

TEST(ChildErrorContextTest, EveryCodeHasRemedyAndIsDocumented) {
  const std::string document = read_file(std::string(FAIRLEAD_SOURCE_DIR) + "/docs/errors.md");
  for (const FailureCode& failure : failure_codes()) {
    EXPECT_TRUE(failure.remedy.ends_with('.')) << failure.code;
    EXPECT_TRUE(
        document.contains("| `" + std::string(failure.code) + "` | " + std::string(failure.remedy) + " |"))
        << failure.code;
  }
  EXPECT_EQ(remedy_for("no such code"), "");
}

TEST(ChildErrorContextTest, EveryErrorKindHasCodeWithRemedy) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::validation); ++kind) {
    const Error error = with_failure_code(Error(static_cast<ErrorKind>(kind), "why"));
    EXPECT_FALSE(error.detail().failure_code.empty()) << kind;
    EXPECT_EQ(error.detail().remedy, remedy_for(error.detail().failure_code)) << kind;
    EXPECT_FALSE(error.detail().remedy.empty()) << kind;
  }
}

TEST(ChildErrorContextTest, ErrorKeepsItsCode) {
  const Error error = with_failure_code(with_failure_code(Error(ErrorKind::closed, "why"), failure::draining),
                                        failure::server_stopped);
  EXPECT_EQ(error.detail().failure_code, failure::draining);
  EXPECT_EQ(error.detail().remedy, remedy_for(failure::draining));
}

// The shell reads the quoted command line as the words that were quoted.
TEST(ChildErrorContextTest, CommandLineCanBePastedIntoShell) {
  const std::vector<std::string> words = {"printf", "%s|",       "",      "it's",  "$HOME",    "a b",    "*",
                                          "a\nb",   "\t\x1b[1m", "\\'\n", "\xff",  "~",        "=ls",    "é",
                                          "`id`",   "\"q\"",     "a=b",   "{a,b}", "#comment", "x;y&&z", "!"};
  std::string expected;
  for (std::size_t i = 2; i < words.size(); ++i) expected += words[i] + '|';
  const std::string line = process::quoted_command_line(words);
  EXPECT_EQ(std::ranges::count(line, '\n'), 0) << line;
  Loop loop;
  const RunningChild running = start(loop, spec_of("bash", {"-c", line + "; echo"}));
  std::string printed;
  while (const std::optional<std::string> read = running.read_line()) printed += *read + '\n';
  EXPECT_EQ(printed, expected + '\n') << line;
  EXPECT_EQ(process::quoted_command_line({"A=b", "c"}), "'A=b' c");
  EXPECT_EQ(process::quoted_command_line({"/bin/x", "a", "--b=c"}), "/bin/x a --b=c");
}

TEST(ChildErrorContextTest, LongCommandLineIsTruncated) {
  EXPECT_LT(process::quoted_command_line({"/bin/x", std::string(100'000, 'a')}).size(), 5000u);
}

TEST(ChildErrorContextTest, SecretIsRedactedAlthoughItIsQuoted) {
  const Redactor redactor(std::vector<std::string>{"it's a\nsecret"});
  const std::string line = process::quoted_command_line({"x", "--key=it's a\nsecret", "y"}, redactor);
  EXPECT_EQ(line, "x '--key=***' y");
}

}  // namespace
}  // namespace fairlead::test
