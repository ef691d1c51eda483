// Every failure of a child says which it is, what was run, and what to do.
#include "process/last_words.hpp"

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

TEST(LastWords, AStartThatFailsSaysWhichItWas) {
  const TemporaryDirectory dir;
  ProcessSpec missing = spec_of("no-such-program", {"a b"});
  missing.env["PATH"] = "/x:/y";
  const ErrorDetail detail = start_failure(missing);
  EXPECT_EQ(detail.code, failure::command_not_found);
  EXPECT_EQ(detail.command_line, "no-such-program 'a b'");
  EXPECT_EQ(detail.search_path, "/x:/y");
  EXPECT_EQ(detail.remedy, remedy_for(failure::command_not_found));
  EXPECT_EQ(start_failure(spec_of("/no/such/program")).code, failure::command_not_found);
  EXPECT_EQ(start_failure(spec_of("/no/such/program")).search_path, "");
  EXPECT_EQ(start_failure(spec_of(dir.write("plain", "", 0644))).code, failure::not_executable);
  EXPECT_EQ(start_failure(spec_of("")).code, failure::bad_spec);
  ProcessSpec nowhere = spec_of("cat");
  nowhere.cwd = "/nowhere";
  EXPECT_EQ(start_failure(nowhere).code, failure::bad_cwd);
  EXPECT_EQ(start_failure(spec_of("cat", {std::string(300'000, 'x')})).code, failure::arguments_too_long);
}

TEST(LastWords, AnEndSaysHowAndOfWhat) {
  Loop loop;
  ProcessSpec exits = spec_of_fixture("exits", {"3", "one", "two"});
  exits.stderr_mode = StderrMode::discard;
  const Running exited = start(loop, exits);
  wait_for(loop, *exited.child);
  const Error error = exited.child->exit_error();
  EXPECT_EQ(error.detail().code, failure::exited);
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_EQ(error.detail().command_line, fixture("exits") + " 3 one two");
  const std::string text = error.to_string();
  for (const std::string& line :
       {"\ncommand: " + fixture("exits") + " 3 one two\n",
        std::string("\nlast lines of its stderr:\n  one\n  two\n"), std::string("\ncode: exited\n"),
        "\nremedy: " + std::string(remedy_for(failure::exited))})
    EXPECT_TRUE(text.contains(line)) << line << "\nis not in\n" << text;

  const Running killed = start(loop, spec_of("cat"));
  ::kill(killed.child->pid(), SIGKILL);
  wait_for(loop, *killed.child);
  EXPECT_EQ(killed.child->exit_error().detail().code, failure::killed_by_signal);
  EXPECT_FALSE(killed.child->exit_error().detail().search_path.empty());
}

// For those who know more than the process does, as a handshake's clock
TEST(LastWords, OthersErrorsCanCarryThem) {
  Loop loop;
  const Running running = start(loop, spec_of("cat"));
  const Error error =
      running.child->with_last_words(Error::timeout("the handshake", 30s), failure::handshake_timeout);
  EXPECT_EQ(error.kind(), ErrorKind::timeout);
  EXPECT_EQ(error.detail().code, failure::handshake_timeout);
  EXPECT_EQ(error.detail().after, 30s);
  EXPECT_TRUE(error.detail().command_line.ends_with("/cat"));
}

TEST(LastWords, EveryCodeHasARemedyAndStandsInTheDocuments) {
  const std::string document = read_file(std::string(FAIRLEAD_SOURCE_DIR) + "/docs/errors.md");
  for (const FailureCode& one : failure_codes()) {
    EXPECT_TRUE(one.remedy.ends_with('.')) << one.code;
    EXPECT_TRUE(document.contains("| `" + std::string(one.code) + "` | " + std::string(one.remedy) + " |"))
        << one.code;
  }
  EXPECT_EQ(remedy_for("no such code"), "");
}

TEST(LastWords, EveryKindOfErrorHasACodeWithARemedy) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::validation); ++kind) {
    const Error error = with_failure_code(Error(static_cast<ErrorKind>(kind), "why"));
    EXPECT_FALSE(error.detail().code.empty()) << kind;
    EXPECT_EQ(error.detail().remedy, remedy_for(error.detail().code)) << kind;
    EXPECT_FALSE(error.detail().remedy.empty()) << kind;
  }
}

TEST(LastWords, AnErrorKeepsTheCodeThatItHas) {
  const Error error = with_failure_code(with_failure_code(Error(ErrorKind::closed, "why"), failure::draining),
                                        failure::server_stopped);
  EXPECT_EQ(error.detail().code, failure::draining);
  EXPECT_EQ(error.detail().remedy, remedy_for(failure::draining));
}

TEST(LastWords, ACommandLineCanBePastedIntoAShell) {
  EXPECT_EQ(process::quoted_command_line("/bin/x", {"a", "", "it's", "$HOME", "a\nb"}),
            "/bin/x a '' 'it'\\''s' '$HOME' 'a b'");
  EXPECT_LT(process::quoted_command_line("/bin/x", {std::string(100'000, 'a')}).size(), 5000u);
}

}  // namespace
}  // namespace fairlead::test
