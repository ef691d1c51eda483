// Tests of the steps of Child::stop().
#include <gtest/gtest.h>

#include <csignal>

#include "process/support.hpp"

namespace fairlead::test {
namespace {

struct StopResult {
  ExitStatus status;
  Clock::duration duration;
};

StopResult stop(Loop& loop, RunningChild& running, std::chrono::milliseconds grace) {
  running.in.reset();
  const auto started = Clock::now();
  const ExitStatus status = loop.block_on(running.child->stop(grace));
  return {status, Clock::now() - started};
}

// R4.3
TEST(StopTest, ChildEndsByItselfAtEndOfInput) {
  Loop loop;
  RunningChild running = start(loop, spec_of("cat"));
  const StopResult stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.duration, 15s);
}

TEST(StopTest, UnreleasedStdinIsClosed) {
  Loop loop;
  auto child = loop.block_on(Child::spawn(loop, spec_of("cat")));
  ASSERT_TRUE(child);
  EXPECT_EQ(loop.block_on((*child)->stop(20s)).code, 0);
}

// R4.3
TEST(StopTest, ChildThatIgnoresEofGetsSigterm) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("ignores_eof"));
  running.read_number("ready");
  const StopResult stopped = stop(loop, running, 50ms);
  EXPECT_EQ(stopped.status.signal, SIGTERM);
  EXPECT_GE(stopped.duration, 50ms);
}

// R4.3
TEST(StopTest, ChildThatIgnoresEofAndSigtermIsKilled) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.read_number("ready");
  const StopResult stopped = stop(loop, running, 50ms);
  EXPECT_EQ(stopped.status.signal, SIGKILL);
  EXPECT_GE(stopped.duration, 100ms);
  EXPECT_FALSE(running.child->is_running());
}

// R4.3: `npx` starts `sh`, `sh` starts `node`
TEST(StopTest, SignalReachesServerBehindShell) {
  Loop loop;
  RunningChild running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof") + "; exit 7"}));
  const ProcessWatch server(running.read_number("ready"));
  ASSERT_NE(server.pid(), running.child->pid());
  stop(loop, running, 50ms);
  EXPECT_TRUE(server.ends_within(kTimeout));
}

// R4.3
TEST(StopTest, ServerBehindShellThatIgnoresSigtermIsKilled) {
  Loop loop;
  RunningChild running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof_and_term") + "; exit 7"}));
  const ProcessWatch server(running.read_number("ready"));
  stop(loop, running, 50ms);
  EXPECT_TRUE(server.ends_within(0ms));
}

// R4.3: in a stopped process SIGTERM stays pending until SIGCONT.
TEST(StopTest, StoppedChildIsContinuedAndTerminated) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("ignores_eof"));
  running.read_number("ready");
  ::kill(running.child->pid(), SIGSTOP);
  EXPECT_EQ(stop(loop, running, 50ms).status.signal, SIGTERM);
}

TEST(StopTest, StoppedChildThatIgnoresSigtermIsKilled) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.read_number("ready");
  ::kill(running.child->pid(), SIGSTOP);
  EXPECT_EQ(stop(loop, running, 50ms).status.signal, SIGKILL);
}

// R4.3: the stop completes although the grandchild keeps the pipes open, and the grandchild is killed.
TEST(StopTest, GrandchildThatKeepsPipesOpenIsKilled) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("leaves_grandchild"));
  const ProcessWatch stray(running.read_number("stray"));
  const StopResult stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.duration, 15s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_EQ(running.read_line(), std::nullopt);  // EOF: no process has the pipe open
}

// R4.3
TEST(StopTest, DoubleForkedProcessIsKilledAfterLeaderEnds) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("double_forks"));
  const ProcessWatch stray(running.read_number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(wait_until_reaped(stray.pid()));
}

// R4.3
TEST(StopTest, ProcessThatLeftSessionIsKilledAfterLeaderEnds) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("escapes_session"));
  const ProcessWatch stray(running.read_number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(wait_until_reaped(stray.pid()));
}

// R4.3: the process has left its process group and has no cookie, so only the session identifies it.
TEST(StopTest, ProcessThatLeftGroupAndEnvironmentIsKilledAfterLeaderEnds) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("changes_group"));
  const ProcessWatch stray(running.read_number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(wait_until_reaped(stray.pid()));
}

// The exit is reported when no descendant is left, or after a short delay.
TEST(StopTest, ProcessGroupThatNeverEndsDelaysExitOnlyBriefly) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("keeps_zombie");
  spec.containment.cgroup = Requirement::off;  // with a cgroup the descendant could not escape
  RunningChild running = start(loop, std::move(spec));
  const ProcessWatch stray(running.read_number("stray"));
  const StopResult stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.duration, 15s);
  EXPECT_TRUE(stray.alive());
}

// R4.3
TEST(StopTest, ProcessThatKeepsForkingIsKilled) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("fork_chain"));
  running.read_number("ready");
  const pid_t keeper = parent_of(running.child->pid());
  const RunningChild witness = start(loop, spec_of("cat"));
  stop(loop, running, 20s);
  EXPECT_TRUE(wait_until_only_child(keeper, witness.child->pid()));
}

// The cleanup after one child must not affect the others.
TEST(StopTest, DescendantsOfOtherChildrenAreNotKilled) {
  Loop loop;
  const auto ignores_signals = fixture("ignores_eof_and_term");
  const RunningChild other =
      start(loop, spec_of("sh", {"-c", "(setsid " + ignores_signals + " &); exec cat"}));
  const ProcessWatch stray(other.read_number("ready"));
  const RunningChild daemon = start(loop, spec_of_fixture("double_forks"));
  const ProcessWatch orphan(daemon.read_number("stray"));
  for (int i = 0; i < 5; ++i) {
    RunningChild running = start(loop, spec_of_fixture("leaves_grandchild"));
    running.read_number("stray");
    stop(loop, running, 20s);
  }
  EXPECT_TRUE(stray.alive());
  EXPECT_TRUE(orphan.alive());
  EXPECT_TRUE(other.child->is_running());
  EXPECT_TRUE(daemon.child->is_running());
}

TEST(StopTest, ConcurrentStopsReturnSameStatus) {
  Loop loop;
  RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.read_number("ready");
  int stopped = 0;
  for (int i = 0; i < 2; ++i) {
    loop.spawn([](std::shared_ptr<Child> child, int& count) -> Task<void> {
      const ExitStatus status = co_await child->stop(20ms);
      count += status.signal == SIGKILL;
    }(running.child, stopped));
  }
  loop.run_until([&] { return stopped == 2; });
  EXPECT_EQ(loop.block_on(running.child->stop(20ms)).signal, SIGKILL);
}

TEST(StopTest, KillSendsSigkillImmediately) {
  Loop loop;
  const RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.read_number("ready");
  running.child->kill();
  EXPECT_EQ(wait_for(loop, *running.child).signal, SIGKILL);
}

// R4.3
TEST(StopTest, DestroyingChildKillsItsGroup) {
  Loop loop;
  RunningChild running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof_and_term") + "; exit 7"}));
  const ProcessWatch server(running.read_number("ready"));
  const ProcessWatch shell(running.child->pid());
  running.child.reset();
  EXPECT_TRUE(server.ends_within(kTimeout));
  EXPECT_TRUE(shell.ends_within(kTimeout));
  EXPECT_TRUE(wait_until_reaped(shell.pid()));
}

// R4.3
TEST(StopTest, DestroyingLoopKillsAllProcessesAndReapsKeeper) {
  std::vector<RunningChild> kept;
  std::vector<ProcessWatch> processes;
  pid_t keeper = 0;
  {
    Loop loop;
    for (const char* name : {"leaves_grandchild", "double_forks", "escapes_session"}) {
      kept.push_back(start(loop, spec_of_fixture(name)));
      processes.emplace_back(kept.back().child->pid());
      processes.emplace_back(kept.back().read_number("stray"));
    }
    keeper = parent_of(kept.front().child->pid());
  }
  for (const ProcessWatch& process : processes) EXPECT_TRUE(process.ends_within(0ms)) << process.pid();
  EXPECT_NE(::access(("/proc/" + std::to_string(keeper)).c_str(), F_OK), 0);
  // Child objects may outlive their loop.
  for (const RunningChild& running : kept) EXPECT_FALSE(running.child->is_running());
}

// The spawn is cancelled by destroying the task that awaits it.
TEST(StopTest, CancelledSpawnLeavesNoProcess) {
  Loop loop;
  const RunningChild witness = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(witness.child->pid());
  {
    auto task = std::make_unique<Task<Result<std::shared_ptr<Child>>>>(Child::spawn(loop, spec_of("cat")));
    // Start the spawn, and destroy the task before the keeper has answered.
    bool started = false;
    loop.post([&] {
      task->await_suspend(std::noop_coroutine()).resume();
      started = true;
    });
    loop.run_until([&] { return started; });
    task.reset();
  }
  // The keeper processes requests in order: when this child has ended, the other has been started.
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_TRUE(wait_until_only_child(keeper, witness.child->pid()));
}

}  // namespace
}  // namespace fairlead::test
