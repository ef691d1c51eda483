// Tests of the stderr modes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "fairlead/loop/timer.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using Lines = std::vector<std::string>;

// CapturedStderr: redirects the stderr of this process to a file.
class CapturedStderr {
 public:
  CapturedStderr() : before_(::fcntl(2, F_DUPFD_CLOEXEC, 10)) {
    const UniqueFd file(::open((dir_.path() + "/stderr").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::dup2(file.get(), 2);
  }
  ~CapturedStderr() { restore(); }
  std::string restore_and_read() {
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

ProcessSpec writer_spec(StderrMode mode, std::vector<std::string> lines) {
  lines.insert(lines.begin(), "0");
  auto spec = spec_of_fixture("exits", std::move(lines));
  spec.stderr_mode = mode;
  spec.name = "speaker";
  return spec;
}

// R4.1: stderr is relayed by default, byte for byte.
TEST(StderrTest, IsRelayedUnchangedByDefaultAndLastLinesAreKept) {
  Loop loop;
  CapturedStderr captured;
  auto spec = spec_of("sh", {"-c", "printf 'one\\r\\n\\001two\\n\\nend\\n' >&2"});
  ASSERT_EQ(spec.stderr_mode, StderrMode::relay);
  const RunningChild running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.restore_and_read(), "one\r\n\001two\n\nend\n");
  EXPECT_EQ(running.child->last_stderr(), (Lines{"one", "\001two", "", "end"}));
}

TEST(StderrTest, RelayEndsLineInWhichChildEnded) {
  Loop loop;
  CapturedStderr captured;
  const RunningChild running = start(loop, spec_of("sh", {"-c", "printf 'one\\ntwo' >&2; exit 1"}));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.restore_and_read(), "one\ntwo\n");
  EXPECT_EQ(running.child->last_stderr(), (Lines{"one", "two"}));
  EXPECT_TRUE(running.child->exit_error().detail().stderr_shown);
}

// R4.1
TEST(StderrTest, IsLoggedLineByLineWithNameOfChild) {
  Loop loop;
  std::string logged;
  const Log log(LogLevel::info, LogFormat::json, [&](std::string_view line) { logged += line; });
  CapturedStderr captured;
  const RunningChild running = start(loop, writer_spec(StderrMode::log, {"one", "two \"quoted\""}), {}, log);
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.restore_and_read(), "");
  EXPECT_NE(logged.find(R"("child":"speaker","line":"one")"), std::string::npos) << logged;
  EXPECT_NE(logged.find(R"("child":"speaker","line":"two \"quoted\"")"), std::string::npos) << logged;
  EXPECT_EQ(running.child->last_stderr(), (Lines{"one", "two \"quoted\""}));
}

// R4.1
TEST(StderrTest, IsNotShownButLastLinesAreKeptIfDiscarded) {
  Loop loop;
  CapturedStderr captured;
  const RunningChild running = start(loop, writer_spec(StderrMode::discard, {"one"}));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.restore_and_read(), "");
  EXPECT_EQ(running.child->last_stderr(), Lines{"one"});
}

// R4.1
TEST(StderrTest, IsParentsDescriptorIfInherited) {
  Loop loop;
  CapturedStderr captured;
  const RunningChild running = start(loop, writer_spec(StderrMode::inherit, {"one"}));
  wait_for(loop, *running.child);
  EXPECT_EQ(captured.restore_and_read(), "one\n");
  EXPECT_EQ(running.child->last_stderr(), Lines{});
}

TEST(StderrTest, IsDevNullIfInheritedFromProcessWithoutStderr) {
  Loop loop;
  const Timer reactor(loop);  // opens the descriptors of the event loop, which must not get number 2
  const UniqueFd before(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  ::close(2);
  ProcessSpec spec = spec_of("cat");
  spec.stderr_mode = StderrMode::inherit;
  auto child = loop.block_on(Child::spawn(loop, std::move(spec)));
  ::dup2(before.get(), 2);
  ASSERT_TRUE(child) << child.error().to_string();
  EXPECT_EQ(descriptors_of((*child)->pid())[2], "/dev/null");
  static_cast<void>((*child)->release_stdin());
  EXPECT_EQ(wait_for(loop, **child).code, 0);
}

// R4.4: limits.stderr_keep_lines, limits.stderr_line_bytes
TEST(StderrTest, KeepsLinesWithinLimits) {
  Loop loop;
  Limits limits;
  limits.stderr_keep_lines = 2;
  limits.stderr_line_bytes = 3;
  const RunningChild running =
      start(loop, writer_spec(StderrMode::discard, {"one", "two", "three", "four"}), limits);
  wait_for(loop, *running.child);
  EXPECT_EQ(running.child->last_stderr(), (Lines{"thr", "fou"}));
}

// R4.1: stderr is always read; otherwise the child could block during a call.
TEST(StderrTest, HundredMegabytesDoNotBlockChild) {
  Loop loop;
  auto spec = spec_of_fixture("floods_stderr", {"100"});
  spec.stderr_mode = StderrMode::discard;
  RunningChild running = start(loop, std::move(spec));
  running.in.reset();
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  EXPECT_EQ(running.read_number("done"), 1600);
  EXPECT_EQ(running.child->last_stderr().back(), "the last line");
}

// PipedStderr: redirects the stderr of this process to a pipe.
class PipedStderr {
 public:
  PipedStderr() : before_(::fcntl(2, F_DUPFD_CLOEXEC, 10)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_ = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    ::fcntl(read_.get(), F_SETPIPE_SZ, 4096);
    ::dup2(write.get(), 2);
  }
  ~PipedStderr() { restore(); }
  // Closes the write end of the pipe, unless a child has it.
  void restore() {
    if (before_) ::dup2(before_.get(), 2);
    before_.reset();
  }
  int read_fd() const { return read_.get(); }
  bool full() const {
    int bytes = 0;
    return ::ioctl(read_fd(), FIONREAD, &bytes) == 0 && bytes == 4096;
  }

 private:
  UniqueFd before_;
  UniqueFd read_;
};

TEST(StderrTest, RelayLosesNoTextIfParentsStderrIsReadSlowly) {
  constexpr std::size_t kBytes = (4u << 20) + std::string_view("\nthe last line\n").size();
  Loop loop;
  PipedStderr piped;
  std::size_t arrived = 0;
  RunningChild running = start(loop, spec_of_fixture("floods_stderr", {"4"}));
  loop.run_until([&] { return piped.full(); });
  std::thread reader([&] {
    char piece[1000];
    for (ssize_t n; (n = ::read(piped.read_fd(), piece, sizeof piece)) > 0;)
      arrived += static_cast<std::size_t>(n);
  });
  running.in.reset();
  const ExitStatus status = wait_for(loop, *running.child);
  piped.restore();
  reader.join();
  EXPECT_EQ(status.code, 0);
  EXPECT_EQ(arrived, kBytes);
  EXPECT_EQ(running.child->last_stderr().back(), "the last line");
}

// Bytes that are in the pipe when the child ends are relayed too.
TEST(StderrTest, RelayContinuesAfterChildHasEnded) {
  Loop loop;
  PipedStderr piped;
  const RunningChild running = start(loop, spec_of("sh", {"-c", "head -c 60000 /dev/zero >&2"}));
  ASSERT_TRUE(wait_until_reaped(running.child->pid()));
  loop.run_until([&] { return piped.full() && running.child->exit_status(); });
  std::size_t arrived = 0;
  std::thread reader([&] {
    char piece[1000];
    for (ssize_t n; (n = ::read(piped.read_fd(), piece, sizeof piece)) > 0;)
      arrived += static_cast<std::size_t>(n);
  });
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  piped.restore();
  reader.join();
  EXPECT_EQ(arrived, 60'000u + 1) << "the relay ends the line";
}

TEST(StderrTest, RelayToBlockedStderrBlocksChildButNotLoop) {
  Loop loop;
  const PipedStderr never_read;
  Limits limits;
  limits.write_stall = 200ms;
  const RunningChild running = start(loop, spec_of_fixture("floods_stderr", {"2"}), limits);
  loop.run_until([&] { return never_read.full(); });
  EXPECT_EQ(loop.block_on(running.child->stop(50ms)).signal, SIGTERM);
}

TEST(StderrTest, RelayToClosedPipeIsDiscarded) {
  ::signal(SIGPIPE, SIG_IGN);
  Loop loop;
  const UniqueFd before(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  std::optional<PipedStderr> piped(std::in_place);
  RunningChild running = start(loop, spec_of_fixture("floods_stderr", {"2"}));
  loop.run_until([&] { return piped->full(); });
  const UniqueFd write(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  piped.reset();  // closes the read end
  ::dup2(write.get(), 2);
  running.in.reset();
  const ExitStatus status = wait_for(loop, *running.child);
  ::dup2(before.get(), 2);
  EXPECT_EQ(status.code, 0);
}

// Tests Limits::stderr_log_lines.
TEST(StderrTest, LinesOverStderrLogLinesAreCountedAndDropped) {
  Loop loop;
  std::size_t logged = 0;
  std::size_t dropped = 0;
  const Log log(LogLevel::info, LogFormat::json, [&](std::string_view line) {
    const std::size_t count = line.find(R"("dropped":")");
    if (line.contains(R"("message":"stderr")")) ++logged;
    if (count != std::string_view::npos)
      dropped += static_cast<std::size_t>(std::atol(line.data() + count + 11));
  });
  auto spec = spec_of("sh", {"-c", "seq 5000 >&2"});
  spec.stderr_mode = StderrMode::log;
  Limits limits;
  limits.stderr_log_lines = 10;
  const RunningChild running = start(loop, std::move(spec), limits, log);
  wait_for(loop, *running.child);
  EXPECT_EQ(logged + dropped, 5000u);
  EXPECT_LE(logged, 200u);
  EXPECT_EQ(running.child->last_stderr().back(), "5000");
}

// Lines that a child writes while it is stopped are not lost.
TEST(StderrTest, LinesWrittenWhileChildIsStoppingAreKept) {
  Loop loop;
  auto spec =
      spec_of("sh", {"-c", "trap 'echo bye >&2; exit 0' TERM; echo ready; while :; do sleep 0.01; done"});
  spec.stderr_mode = StderrMode::discard;
  RunningChild running = start(loop, std::move(spec));
  EXPECT_EQ(running.read_line(), "ready");
  EXPECT_EQ(loop.block_on(running.child->stop(1s)).code, 0);
  EXPECT_EQ(running.child->last_stderr().back(), "bye");
}

}  // namespace
}  // namespace fairlead::test
