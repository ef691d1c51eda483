// Where a child's stderr goes.
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

// Our own stderr is a pipe for a while.
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
  // Its other end is closed with this, unless a child has it.
  void restore() {
    if (before_) ::dup2(before_.get(), 2);
    before_.reset();
  }
  int fd() const { return read_.get(); }
  bool full() const {
    int bytes = 0;
    return ::ioctl(fd(), FIONREAD, &bytes) == 0 && bytes == 4096;
  }

 private:
  UniqueFd before_;
  UniqueFd read_;
};

TEST(Stderr, RelayLosesNothingWhenOursIsReadSlowly) {
  constexpr std::size_t kBytes = (4u << 20) + std::string_view("\nthe last line\n").size();
  Loop loop;
  PipedStderr ours;
  std::size_t arrived = 0;
  Running running = start(loop, spec_of_fixture("floods_stderr", {"4"}));
  loop.run_until([&] { return ours.full(); });
  std::thread reader([&] {
    char piece[1000];
    for (ssize_t n; (n = ::read(ours.fd(), piece, sizeof piece)) > 0;) arrived += static_cast<std::size_t>(n);
  });
  running.in.reset();
  const ExitStatus status = wait_for(loop, *running.child);
  ours.restore();
  reader.join();
  EXPECT_EQ(status.code, 0);
  EXPECT_EQ(arrived, kBytes);
  EXPECT_EQ(running.child->last_stderr().back(), "the last line");
}

// What is left in the pipe of a child that has ended is relayed as well.
TEST(Stderr, RelayGoesOnAfterTheChildsEnd) {
  Loop loop;
  PipedStderr ours;
  const Running running = start(loop, spec_of("sh", {"-c", "head -c 60000 /dev/zero >&2"}));
  ASSERT_TRUE(vanishes(running.child->pid()));
  loop.run_until([&] { return ours.full() && running.child->exit_status(); });
  std::size_t arrived = 0;
  std::thread reader([&] {
    char piece[1000];
    for (ssize_t n; (n = ::read(ours.fd(), piece, sizeof piece)) > 0;) arrived += static_cast<std::size_t>(n);
  });
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  ours.restore();
  reader.join();
  EXPECT_EQ(arrived, 60'000u);
}

TEST(Stderr, RelayToAStuckStderrBlocksTheChildAndNotTheLoop) {
  Loop loop;
  const PipedStderr never_read;
  Limits limits;
  limits.write_stall = 200ms;
  const Running running = start(loop, spec_of_fixture("floods_stderr", {"2"}), limits);
  loop.run_until([&] { return never_read.full(); });
  EXPECT_EQ(loop.block_on(running.child->stop(50ms)).signal, SIGTERM);
}

TEST(Stderr, RelayToAStderrThatNobodyReadsAnyMoreIsDiscarded) {
  ::signal(SIGPIPE, SIG_IGN);
  Loop loop;
  const UniqueFd before(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  std::optional<PipedStderr> ours(std::in_place);
  Running running = start(loop, spec_of_fixture("floods_stderr", {"2"}));
  loop.run_until([&] { return ours->full(); });
  const UniqueFd write(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  ours.reset();  // closes the end that could be read
  ::dup2(write.get(), 2);
  running.in.reset();
  const ExitStatus status = wait_for(loop, *running.child);
  ::dup2(before.get(), 2);
  EXPECT_EQ(status.code, 0);
}

// stderr_log_lines
TEST(Stderr, AFloodIsLoggedInPartAndTheRestIsCounted) {
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
  const Running running = start(loop, std::move(spec), limits, log);
  wait_for(loop, *running.child);
  EXPECT_EQ(logged + dropped, 5000u);
  EXPECT_LE(logged, 200u);
  EXPECT_EQ(running.child->last_stderr().back(), "5000");
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
