// The stop ladder, rung by rung.
#include <gtest/gtest.h>

#include <csignal>

#include "process/support.hpp"

namespace fairlead::test {
namespace {

struct Stopped {
  ExitStatus status;
  Clock::duration took;
};

Stopped stop(Loop& loop, Running& running, std::chrono::milliseconds grace) {
  running.in.reset();
  const auto begun = Clock::now();
  const ExitStatus status = loop.block_on(running.child->stop(grace));
  return {status, Clock::now() - begun};
}

// R4.3
TEST(Stop, AWellBehavedChildEndsByItselfWhenItsInputDoes) {
  Loop loop;
  Running running = start(loop, spec_of("cat"));
  const Stopped stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.took, 15s);
}

TEST(Stop, InputThatNobodyTookIsClosedToo) {
  Loop loop;
  auto child = loop.block_on(Child::spawn(loop, spec_of("cat")));
  ASSERT_TRUE(child);
  EXPECT_EQ(loop.block_on((*child)->stop(20s)).code, 0);
}

// R4.3
TEST(Stop, OneThatIgnoresEofIsTerminated) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("ignores_eof"));
  running.number("ready");
  const Stopped stopped = stop(loop, running, 50ms);
  EXPECT_EQ(stopped.status.signal, SIGTERM);
  EXPECT_GE(stopped.took, 50ms);
}

// R4.3
TEST(Stop, OneThatIgnoresEofAndTermIsKilled) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.number("ready");
  const Stopped stopped = stop(loop, running, 50ms);
  EXPECT_EQ(stopped.status.signal, SIGKILL);
  EXPECT_GE(stopped.took, 100ms);
  EXPECT_FALSE(running.child->is_running());
}

// R4.3: `npx` starts `sh`, `sh` starts `node`
TEST(Stop, TheSignalReachesTheServerBehindAShell) {
  Loop loop;
  Running running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof") + "; exit 7"}));
  const Watched server(running.number("ready"));
  ASSERT_NE(server.pid(), running.child->pid());
  stop(loop, running, 50ms);
  EXPECT_TRUE(server.ends_within(kPatience));
}

// R4.3
TEST(Stop, ADeafServerBehindAShellIsKilledWithIt) {
  Loop loop;
  Running running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof_and_term") + "; exit 7"}));
  const Watched server(running.number("ready"));
  stop(loop, running, 50ms);
  EXPECT_TRUE(server.ends_within(0ms));
}

// R4.3: SIGTERM alone would wait in a stopped process for ever
TEST(Stop, AStoppedChildIsWokenToBeTerminated) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("ignores_eof"));
  running.number("ready");
  ::kill(running.child->pid(), SIGSTOP);
  EXPECT_EQ(stop(loop, running, 50ms).status.signal, SIGTERM);
}

TEST(Stop, AStoppedDeafChildIsKilled) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.number("ready");
  ::kill(running.child->pid(), SIGSTOP);
  EXPECT_EQ(stop(loop, running, 50ms).status.signal, SIGKILL);
}

// R4.3: the pipe stays open, the stop ends all the same, and so does the one that holds it
TEST(Stop, AGrandchildThatHoldsThePipesIsKilled) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("leaves_grandchild"));
  const Watched stray(running.number("stray"));
  const Stopped stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.took, 15s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_EQ(running.line(), std::nullopt);  // EOF: nobody holds our pipe
}

// R4.3
TEST(Stop, OneThatForkedTwiceIsKilledWhenItsLeaderIsGone) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("double_forks"));
  const Watched stray(running.number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(vanishes(stray.pid()));
}

// R4.3
TEST(Stop, OneThatLeftTheSessionIsKilledWhenItsLeaderIsGone) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("escapes_session"));
  const Watched stray(running.number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(vanishes(stray.pid()));
}

// R4.3: told by its session alone
TEST(Stop, OneThatLeftTheGroupAndItsEnvironmentIsKilledWhenItsLeaderIsGone) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("changes_group"));
  const Watched stray(running.number("stray"));
  stop(loop, running, 20s);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_TRUE(vanishes(stray.pid()));
}

// The end is told once nothing is left, but not later than that takes with good will.
TEST(Stop, AGroupThatNeverEndsDelaysTheEndOnlyBriefly) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("keeps_zombie");
  spec.containment.cgroup = Requirement::off;  // it would not let the stray go
  Running running = start(loop, std::move(spec));
  const Watched stray(running.number("stray"));
  const Stopped stopped = stop(loop, running, 20s);
  EXPECT_EQ(stopped.status.code, 0);
  EXPECT_LT(stopped.took, 15s);
  EXPECT_TRUE(stray.alive());
}

// R4.3
TEST(Stop, OneThatKeepsForkingAwayIsCaught) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("fork_chain"));
  running.number("ready");
  const pid_t keeper = parent_of(running.child->pid());
  const Running witness = start(loop, spec_of("cat"));
  stop(loop, running, 20s);
  EXPECT_TRUE(is_left_alone(keeper, witness.child->pid()));
}

// What one child's end sets off must not hit the others.
TEST(Stop, StraysOfOthersAreLeftAlone) {
  Loop loop;
  const auto deaf = fixture("ignores_eof_and_term");
  const Running other = start(loop, spec_of("sh", {"-c", "(setsid " + deaf + " &); exec cat"}));
  const Watched stray(other.number("ready"));
  const Running daemon = start(loop, spec_of_fixture("double_forks"));
  const Watched orphan(daemon.number("stray"));
  for (int i = 0; i < 5; ++i) {
    Running running = start(loop, spec_of_fixture("leaves_grandchild"));
    running.number("stray");
    stop(loop, running, 20s);
  }
  EXPECT_TRUE(stray.alive());
  EXPECT_TRUE(orphan.alive());
  EXPECT_TRUE(other.child->is_running());
  EXPECT_TRUE(daemon.child->is_running());
}

TEST(Stop, TwiceAtOnceIsAsGoodAsOnce) {
  Loop loop;
  Running running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.number("ready");
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

TEST(Stop, KillGoesStraightToTheEnd) {
  Loop loop;
  const Running running = start(loop, spec_of_fixture("ignores_eof_and_term"));
  running.number("ready");
  running.child->kill();
  EXPECT_EQ(wait_for(loop, *running.child).signal, SIGKILL);
}

// R4.3
TEST(Stop, DestroyingTheChildKillsItsGroup) {
  Loop loop;
  Running running = start(loop, spec_of("sh", {"-c", fixture("ignores_eof_and_term") + "; exit 7"}));
  const Watched server(running.number("ready"));
  const Watched shell(running.child->pid());
  running.child.reset();
  EXPECT_TRUE(server.ends_within(kPatience));
  EXPECT_TRUE(shell.ends_within(kPatience));
  EXPECT_TRUE(vanishes(shell.pid()));
}

// R4.3
TEST(Stop, DestroyingTheLoopKillsEverythingAndReapsTheKeeper) {
  std::vector<Running> kept;
  std::vector<Watched> processes;
  pid_t keeper = 0;
  {
    Loop loop;
    for (const char* name : {"leaves_grandchild", "double_forks", "escapes_session"}) {
      kept.push_back(start(loop, spec_of_fixture(name)));
      processes.emplace_back(kept.back().child->pid());
      processes.emplace_back(kept.back().number("stray"));
    }
    keeper = parent_of(kept.front().child->pid());
  }
  for (const Watched& process : processes) EXPECT_TRUE(process.ends_within(0ms)) << process.pid();
  EXPECT_NE(::access(("/proc/" + std::to_string(keeper)).c_str(), F_OK), 0);
  // The children outlive their loop, harmlessly.
  for (const Running& running : kept) EXPECT_FALSE(running.child->is_running());
}

// A spawn that nobody waits for any more
TEST(Stop, AnAbandonedSpawnLeavesNoProcess) {
  Loop loop;
  const Running witness = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(witness.child->pid());
  {
    auto task = std::make_unique<Task<Result<std::shared_ptr<Child>>>>(Child::spawn(loop, spec_of("cat")));
    // Begun, then dropped while the keeper is at it.
    bool begun = false;
    loop.post([&] {
      task->await_suspend(std::noop_coroutine()).resume();
      begun = true;
    });
    loop.run_until([&] { return begun; });
    task.reset();
  }
  // The keeper takes requests in order: when this one has come and gone, the other has come.
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_TRUE(is_left_alone(keeper, witness.child->pid()));
}

}  // namespace
}  // namespace fairlead::test
