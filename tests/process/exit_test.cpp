// How a child's end is told.
#include <gtest/gtest.h>

#include <csignal>

#include "process/support.hpp"

namespace fairlead::test {
namespace {

using Lines = std::vector<std::string>;

// A cgroup would not let a stray go.
ProcessSpec without_cgroup(ProcessSpec spec) {
  spec.containment.cgroup = Requirement::off;
  return spec;
}

ProcessSpec quiet(ProcessSpec spec) {
  spec.stderr_mode = StderrMode::discard;
  return spec;
}

// R4.4
TEST(Exit, StatusIsKnownAndTheChildNoLongerRuns) {
  Loop loop;
  const Running running = start(loop, spec_of("sh", {"-c", "read x; exit 3"}));
  EXPECT_TRUE(running.child->is_running());
  EXPECT_FALSE(running.child->exit_status());
  running.say("go\n");
  const ExitStatus status = wait_for(loop, *running.child);
  EXPECT_EQ(status.code, 3);
  EXPECT_FALSE(status.signal);
  EXPECT_FALSE(running.child->is_running());
  EXPECT_EQ(running.child->exit_status()->code, 3);
  EXPECT_TRUE(vanishes(running.child->pid()));
}

// R4.4
TEST(Exit, ErrorSaysTheStatusAndShowsTheLastWords) {
  Loop loop;
  auto spec = quiet(spec_of_fixture("exits", {"3", "one", "two"}));
  spec.name = "calc";
  const Running running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  const Error error = running.child->exit_error();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_TRUE(error.message().starts_with("`calc` exited with status 3 after ")) << error.message();
  EXPECT_EQ(error.detail().exit_status, 3);
  EXPECT_FALSE(error.detail().exit_signal);
  EXPECT_EQ(error.detail().stderr_lines, (Lines{"one", "two"}));
}

// R4.4
TEST(Exit, ErrorSaysTheSignal) {
  Loop loop;
  const auto spec = quiet(spec_of_fixture("dies_of_signal", {std::to_string(SIGABRT), "assertion failed"}));
  const Running running = start(loop, spec);
  const ExitStatus status = wait_for(loop, *running.child);
  EXPECT_EQ(status.signal, SIGABRT);
  EXPECT_FALSE(status.code);
  const Error error = running.child->exit_error();
  EXPECT_NE(error.message().find("was killed by signal 6 (SIGABRT) after "), std::string::npos)
      << error.message();
  EXPECT_EQ(error.detail().exit_signal, SIGABRT);
  EXPECT_EQ(error.detail().stderr_lines, Lines{"assertion failed"});
}

TEST(Exit, StatusReadsAsASentence) {
  EXPECT_EQ((ExitStatus{3, {}}).to_string(), "exited with status 3");
  EXPECT_EQ((ExitStatus{{}, 9}).to_string(), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ((ExitStatus{{}, 40}).to_string(), "was killed by signal 40");
}

// R4.4: a child that is gone before anybody asks
TEST(Exit, OneThatExitsAtOnceWasStartedAndHasEnded) {
  Loop loop;
  const Running running = start(loop, quiet(spec_of_fixture("exits", {"1", "cannot work like this"})));
  EXPECT_GT(running.child->pid(), 0);
  EXPECT_EQ(wait_for(loop, *running.child).code, 1);
  EXPECT_EQ(running.child->last_stderr(), Lines{"cannot work like this"});
}

TEST(Exit, EveryWaiterIsToldAlsoTheLate) {
  Loop loop;
  const Running running = start(loop, spec_of_fixture("exits", {"5"}));
  int told = 0;
  const auto count = [&](const ExitStatus& status) { told += status.code == 5; };
  running.child->when_exited(count);
  running.child->when_exited(count);
  wait_for(loop, *running.child);
  EXPECT_EQ(told, 2);
  running.child->when_exited(count);
  EXPECT_EQ(told, 2);  // posted, not called at once
  loop.run_until([&] { return told == 3; });
}

// A callback that lets go of the child must not pull the ground from under it.
TEST(Exit, ACallbackMayDropTheChild) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("exits", {"0"}));
  bool told = false;
  running.child->when_exited([&](const ExitStatus&) {
    running.child.reset();
    told = true;
  });
  loop.run_until([&] { return told; });
  EXPECT_FALSE(running.child);
}

// Destroying a waiting task takes its waiter along.
TEST(Exit, AnAbandonedWaitIsForgotten) {
  const Running running = [] {
    Loop loop;
    Running kept = start(loop, spec_of("cat"));
    loop.spawn([](std::shared_ptr<Child> child) -> Task<void> {
      const ExitStatus ignored = co_await child->exited();
      static_cast<void>(ignored);
    }(kept.child));
    loop.run_until([turns = 0]() mutable { return ++turns > 1; });
    return kept;
  }();
  EXPECT_FALSE(running.child->is_running());
}

// Leaves the session and the environment behind, so the keeper cannot tell whose it is, and holds stderr.
constexpr char kStrayWithStderr[] =
    "setsid env -i /bin/sh -c 'echo stray $$; exec /bin/sleep 60' & read x; exit 0";

// R4.4: such a process must not delay the news
TEST(Exit, AStrayThatHoldsStderrDelaysTheEndOnlyBriefly) {
  std::optional<Watched> stray;
  {
    Loop loop;
    const Running running = start(loop, without_cgroup(quiet(spec_of("sh", {"-c", kStrayWithStderr}))));
    stray.emplace(running.number("stray"));
    running.say("go\n");
    const auto begun = Clock::now();
    EXPECT_EQ(wait_for(loop, *running.child).code, 0);
    EXPECT_LT(Clock::now() - begun, 10s);
    EXPECT_TRUE(stray->alive());
  }
  EXPECT_TRUE(stray->ends_within(0ms));
}

TEST(Exit, AChildThatWaitsForItsStderrMayOutliveItsLoop) {
  const auto loop = std::make_unique<Loop>();
  const Running running = start(*loop, without_cgroup(quiet(spec_of("sh", {"-c", kStrayWithStderr}))));
  running.number("stray");
  running.say("go\n");
  bool told = false;
  running.child->when_exited([&](const ExitStatus&) { told = true; });
  loop->run_until([&] { return running.child->exit_status().has_value(); });
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace fairlead::test
