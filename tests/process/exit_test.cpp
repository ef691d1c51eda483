// Tests of how a child's exit is reported.
#include <gtest/gtest.h>

#include <csignal>

#include "process/support.hpp"

namespace fairlead::test {
namespace {

using Lines = std::vector<std::string>;

// Without a cgroup, a descendant can escape from its child.
ProcessSpec without_cgroup(ProcessSpec spec) {
  spec.containment.cgroup = Requirement::off;
  return spec;
}

ProcessSpec with_discarded_stderr(ProcessSpec spec) {
  spec.stderr_mode = StderrMode::discard;
  return spec;
}

// R4.4
TEST(ExitTest, StatusIsKnownAndChildNoLongerRunsAfterExit) {
  Loop loop;
  const RunningChild running = start(loop, spec_of("sh", {"-c", "read x; exit 3"}));
  EXPECT_TRUE(running.child->is_running());
  EXPECT_FALSE(running.child->exit_status());
  running.write("go\n");
  const ExitStatus status = wait_for(loop, *running.child);
  EXPECT_EQ(status.code, 3);
  EXPECT_FALSE(status.signal);
  EXPECT_FALSE(running.child->is_running());
  EXPECT_EQ(running.child->exit_status()->code, 3);
  EXPECT_TRUE(wait_until_reaped(running.child->pid()));
}

// R4.4
TEST(ExitTest, ErrorHasExitStatusAndLastStderrLines) {
  Loop loop;
  auto spec = with_discarded_stderr(spec_of_fixture("exits", {"3", "one", "two"}));
  spec.name = "calc";
  const RunningChild running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  const Error error = running.child->exit_error();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_TRUE(error.message().starts_with("`calc` exited with status 3 after ")) << error.message();
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_FALSE(error.detail().exit_signal);
  EXPECT_EQ(error.detail().stderr_lines, (Lines{"one", "two"}));
}

// R4.4
TEST(ExitTest, ErrorHasSignal) {
  Loop loop;
  const auto spec =
      with_discarded_stderr(spec_of_fixture("dies_of_signal", {std::to_string(SIGABRT), "assertion failed"}));
  const RunningChild running = start(loop, spec);
  const ExitStatus status = wait_for(loop, *running.child);
  EXPECT_EQ(status.signal, SIGABRT);
  EXPECT_FALSE(status.code);
  const Error error = running.child->exit_error();
  EXPECT_NE(error.message().find("was killed by signal 6 (SIGABRT) after "), std::string::npos)
      << error.message();
  EXPECT_EQ(error.detail().exit_signal, SIGABRT);
  EXPECT_EQ(error.detail().stderr_lines, Lines{"assertion failed"});
}

TEST(ExitTest, StatusIsFormattedAsPhrase) {
  EXPECT_EQ((ExitStatus{3, {}}).to_string(), "exited with status 3");
  EXPECT_EQ((ExitStatus{{}, 9}).to_string(), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ((ExitStatus{{}, 40}).to_string(), "was killed by signal 40");
}

// R4.4: the child has exited before its status is requested.
TEST(ExitTest, ChildThatExitsImmediatelyIsReportedAsStartedAndEnded) {
  Loop loop;
  const RunningChild running =
      start(loop, with_discarded_stderr(spec_of_fixture("exits", {"1", "cannot work like this"})));
  EXPECT_GT(running.child->pid(), 0);
  EXPECT_EQ(wait_for(loop, *running.child).code, 1);
  EXPECT_EQ(running.child->last_stderr(), Lines{"cannot work like this"});
}

TEST(ExitTest, EveryWaiterIsCalledEvenAfterExit) {
  Loop loop;
  const RunningChild running = start(loop, spec_of_fixture("exits", {"5"}));
  int notified = 0;
  const auto count = [&](const ExitStatus& status) { notified += status.code == 5; };
  running.child->when_exited(count);
  running.child->when_exited(count);
  wait_for(loop, *running.child);
  EXPECT_EQ(notified, 2);
  running.child->when_exited(count);
  EXPECT_EQ(notified, 2);  // the callback is posted, not called immediately
  loop.run_until([&] { return notified == 3; });
}

// A callback may release the last reference to the child that calls it.
TEST(ExitTest, CallbackMayDestroyChild) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("exits", {"0"}));
  bool notified = false;
  running.child->when_exited([&](const ExitStatus&) {
    running.child.reset();
    notified = true;
  });
  loop.run_until([&] { return notified; });
  EXPECT_FALSE(running.child);
}

// Destroying a waiting task removes its waiter.
TEST(ExitTest, DestroyedWaitIsUnregistered) {
  const RunningChild running = [] {
    Loop loop;
    RunningChild kept = start(loop, spec_of("cat"));
    loop.spawn([](std::shared_ptr<Child> child) -> Task<void> {
      static_cast<void>(co_await child->wait_exited());
    }(kept.child));
    loop.run_until([turns = 0]() mutable { return ++turns > 1; });
    return kept;
  }();
  EXPECT_FALSE(running.child->is_running());
}

// Starts a process that leaves its session, has no cookie and keeps stderr open, so the keeper cannot
// attribute it to a child.
constexpr char kStrayWithStderr[] =
    "setsid env -i /bin/sh -c 'echo stray $$; exec /bin/sleep 60' & read x; exit 0";

// R4.4: a stray that the keeper cannot attribute to a child must not delay the report of the exit.
TEST(ExitTest, StrayThatKeepsStderrOpenDelaysExitOnlyBriefly) {
  std::optional<ProcessWatch> stray;
  {
    Loop loop;
    const RunningChild running =
        start(loop, without_cgroup(with_discarded_stderr(spec_of("sh", {"-c", kStrayWithStderr}))));
    stray.emplace(running.read_number("stray"));
    running.write("go\n");
    const auto started = Clock::now();
    EXPECT_EQ(wait_for(loop, *running.child).code, 0);
    EXPECT_LT(Clock::now() - started, 10s);
    EXPECT_TRUE(stray->alive());
  }
  EXPECT_TRUE(stray->ends_within(0ms));
}

TEST(ExitTest, ChildThatWaitsForStderrMayOutliveItsLoop) {
  const auto loop = std::make_unique<Loop>();
  const RunningChild running =
      start(*loop, without_cgroup(with_discarded_stderr(spec_of("sh", {"-c", kStrayWithStderr}))));
  running.read_number("stray");
  running.write("go\n");
  bool notified = false;
  running.child->when_exited([&](const ExitStatus&) { notified = true; });
  loop->run_until([&] { return running.child->exit_status().has_value(); });
  EXPECT_FALSE(notified);
}

}  // namespace
}  // namespace fairlead::test
