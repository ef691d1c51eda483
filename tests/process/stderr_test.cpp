// Where a child's stderr goes.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "fairlead/loop/timer.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using Lines = std::vector<std::string>;

// Our own stderr goes to a file for a while.
class CapturedStderr {
 public:
  CapturedStderr() : before_(::fcntl(2, F_DUPFD_CLOEXEC, 10)) {
    const UniqueFd file(::open((dir_.path() + "/stderr").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::dup2(file.get(), 2);
  }
  ~CapturedStderr() { restore(); }
  std::string end() {
    restore();
    return read_file(dir_.path() + "/stderr");
  }

 private:
  void restore() {
    if (before_) ::dup2(before_.get(), 2);
    before_.reset();
  }
  TemporaryDirectory dir_;
  UniqueFd before_;
};

ProcessSpec speaker(StderrMode mode, std::vector<std::string> lines) {
  lines.insert(lines.begin(), "0");
  auto spec = spec_of_fixture("exits", std::move(lines));
  spec.stderr_mode = mode;
  spec.name = "speaker";
  return spec;
}

// R4.1: inherited by default, byte for byte
TEST(Stderr, IsRelayedUnchangedByDefaultAndItsLastLinesAreKept) {
  Loop loop;
  CapturedStderr captured;
  auto spec = spec_of("sh", {"-c", "printf 'one\\r\\n\\001two\\n\\nno newline' >&2"});
  ASSERT_EQ(spec.stderr_mode, StderrMode::relay);
  const Running running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.end(), "one\r\n\001two\n\nno newline");
  EXPECT_EQ(running.child->last_stderr(), (Lines{"one", "\001two", "", "no newline"}));
}

// R4.1
TEST(Stderr, GoesToTheLogLineByLineWithTheChildsName) {
  Loop loop;
  std::string logged;
  const Log log(LogLevel::info, LogFormat::json, [&](std::string_view line) { logged += line; });
  CapturedStderr captured;
  const Running running = start(loop, speaker(StderrMode::log, {"one", "two \"quoted\""}), {}, log);
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.end(), "");
  EXPECT_NE(logged.find(R"("child":"speaker","line":"one")"), std::string::npos) << logged;
  EXPECT_NE(logged.find(R"("child":"speaker","line":"two \"quoted\"")"), std::string::npos) << logged;
  EXPECT_EQ(running.child->last_stderr(), (Lines{"one", "two \"quoted\""}));
}

// R4.1
TEST(Stderr, WhenDiscardedIsNotShownButItsLastLinesAreKept) {
  Loop loop;
  CapturedStderr captured;
  const Running running = start(loop, speaker(StderrMode::discard, {"one"}));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.end(), "");
  EXPECT_EQ(running.child->last_stderr(), Lines{"one"});
}

// R4.1
TEST(Stderr, WhenInheritedIsOurOwnDescriptor) {
  Loop loop;
  CapturedStderr captured;
  const Running running = start(loop, speaker(StderrMode::inherit, {"one"}));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.end(), "one\n");
  EXPECT_EQ(running.child->last_stderr(), Lines{});
}

TEST(Stderr, WhenInheritedFromAProcessWithoutOneIsNowhere) {
  Loop loop;
  const Timer reactor(loop);  // opens descriptors of its own, which must not become number 2
  const UniqueFd before(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  ::close(2);
  ProcessSpec spec = spec_of("cat");
  spec.stderr_mode = StderrMode::inherit;
  auto child = loop.block_on(Child::spawn(loop, std::move(spec)));
  ::dup2(before.get(), 2);
  ASSERT_TRUE(child) << child.error().to_string();
  EXPECT_EQ(descriptors_of((*child)->pid())[2], "/dev/null");
  static_cast<void>((*child)->take_stdin());
  EXPECT_EQ(wait_for(loop, **child).code, 0);
}

// R4.4: limits.stderr_keep_lines, limits.stderr_line_bytes
TEST(Stderr, KeepsAsManyLinesAsTheLimitsSay) {
  Loop loop;
  Limits limits;
  limits.stderr_keep_lines = 2;
  limits.stderr_line_bytes = 3;
  const Running running = start(loop, speaker(StderrMode::discard, {"one", "two", "three", "four"}), limits);
  wait_for(loop, *running.child);
  EXPECT_EQ(running.child->last_stderr(), (Lines{"thr", "fou"}));
}

// R4.1: stderr is always read, or the child would hang in the middle of a call
TEST(Stderr, AHundredMegabytesDoNotBlockTheChild) {
  Loop loop;
  auto spec = spec_of_fixture("floods_stderr", {"100"});
  spec.stderr_mode = StderrMode::discard;
  Running running = start(loop, std::move(spec));
  running.in.reset();
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  EXPECT_EQ(running.number("done"), 1600);
  EXPECT_EQ(running.child->last_stderr().back(), "the last line");
}

// R4.1: nobody reads our own stderr; the child does not care
TEST(Stderr, AStuckStderrOfOursDoesNotBlockTheChildOrTheLoop) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd never_read(ends[0]);
  const UniqueFd full(ends[1]);
  Loop loop;
  const UniqueFd before(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  ::dup2(full.get(), 2);
  Running running = start(loop, spec_of_fixture("floods_stderr", {"2"}));
  running.in.reset();
  const ExitStatus status = wait_for(loop, *running.child);
  ::dup2(before.get(), 2);
  EXPECT_EQ(status.code, 0);
}

// What a child says before it is stopped is not lost.
TEST(Stderr, LastWordsOnTheWayOutAreKept) {
  Loop loop;
  auto spec =
      spec_of("sh", {"-c", "trap 'echo bye >&2; exit 0' TERM; echo ready; while :; do sleep 0.01; done"});
  spec.stderr_mode = StderrMode::discard;
  Running running = start(loop, std::move(spec));
  EXPECT_EQ(running.line(), "ready");
  EXPECT_EQ(loop.block_on(running.child->stop(1s)).code, 0);
  EXPECT_EQ(running.child->last_stderr().back(), "bye");
}

}  // namespace
}  // namespace fairlead::test
