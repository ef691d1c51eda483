// Tests with many children, concurrent and consecutive.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>

#include "process/support.hpp"

namespace fairlead::test {
namespace {

Task<void> spawn_into(Loop& loop, ProcessSpec spec, std::vector<std::shared_ptr<Child>>& children,
                      int& answered) {
  const auto child = co_await Child::spawn(loop, std::move(spec));
  ++answered;
  if (child) children.push_back(*child);
}

// Starts `count` children concurrently and returns those that were started.
std::vector<std::shared_ptr<Child>> spawn_many(Loop& loop, int count, const ProcessSpec& spec) {
  std::vector<std::shared_ptr<Child>> children;
  int answered = 0;
  for (int i = 0; i < count; ++i) loop.spawn(spawn_into(loop, spec, children, answered));
  loop.run_until([&] { return answered == count; });
  return children;
}

// R4.3
TEST(ManyChildrenTest, FiftyConcurrentChildrenRunAndEnd) {
  Loop loop;
  const auto children = spawn_many(loop, 50, spec_of("cat"));
  ASSERT_EQ(children.size(), 50u);
  std::set<pid_t> pids;
  for (const auto& child : children) pids.insert(child->pid());
  EXPECT_EQ(pids.size(), 50u);
  const pid_t keeper = parent_of(*pids.begin());
  EXPECT_EQ(children_of(keeper).size(), 50u);
  int ended = 0;
  for (const auto& child : children) {
    child->when_exited([&](const ExitStatus& status) { ended += status.code == 0; });
    child->release_stdin();
  }
  loop.run_until([&] { return ended == 50; });
  EXPECT_EQ(children_of(keeper).size(), 0u);
}

TEST(ManyChildrenTest, EachFailedSpawnGetsItsOwnError) {
  Loop loop;
  std::vector<std::shared_ptr<Child>> children;
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    auto spec = i % 2 ? spec_of("/no/such") : spec_of_fixture("exits", {std::to_string(i)});
    spec.name = std::to_string(i);
    loop.spawn(spawn_into(loop, std::move(spec), children, answered));
  }
  loop.run_until([&] { return answered == 100; });
  ASSERT_EQ(children.size(), 50u);
  for (const auto& child : children) EXPECT_EQ(std::to_string(*wait_for(loop, *child).code), child->name());
}

// R4.3: no zombie and no descriptor is left.
TEST(ManyChildrenTest, ThousandStartsAndExitsLeaveNoZombieOrDescriptor) {
  Loop loop;
  const RunningChild witness = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(witness.child->pid());
  const std::size_t own_before = own_descriptor_count();
  const std::size_t keepers_before = descriptors_of(keeper).size();
  for (int i = 0; i < 1000; ++i) {
    const RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
    running.child->kill();
    EXPECT_EQ(wait_for(loop, *running.child).signal, SIGKILL);
  }
  EXPECT_EQ(own_descriptor_count(), own_before);
  EXPECT_EQ(descriptors_of(keeper).size(), keepers_before);
  EXPECT_EQ(children_of(keeper), std::vector<pid_t>{witness.child->pid()});
  EXPECT_EQ(children_of(::getpid()), std::vector<pid_t>{keeper});
}

TEST(ManyChildrenTest, ConsecutiveLoopsLeaveNoChildOrDescriptor) {
  const std::size_t before = own_descriptor_count();
  for (int i = 0; i < 20; ++i) {
    Loop loop;
    const auto children = spawn_many(loop, 3, spec_of_fixture("ignores_eof_and_term"));
    EXPECT_EQ(children.size(), 3u);
  }
  EXPECT_EQ(own_descriptor_count(), before);
  EXPECT_EQ(children_of(::getpid()), std::vector<pid_t>{});
}

// The keeper queues its reports while the library does not read them; none is lost.
TEST(ManyChildrenTest, AllExitsAreReportedAfterLoopWasBlocked) {
  Loop loop;
  const auto children = spawn_many(loop, 600, spec_of_fixture("ignores_eof"));
  ASSERT_EQ(children.size(), 600u);
  std::vector<ProcessWatch> processes;
  for (const auto& child : children) processes.emplace_back(child->pid());
  for (const ProcessWatch& process : processes) ::kill(process.pid(), SIGKILL);
  for (const ProcessWatch& process : processes) ASSERT_TRUE(process.ends_within(kTimeout));
  int ended = 0;
  for (const auto& child : children)
    child->when_exited([&](const ExitStatus& s) { ended += s.signal == SIGKILL; });
  loop.run_until([&] { return ended == 600; });
}

// The requests together are larger than the socket buffer.
TEST(ManyChildrenTest, LargeRequestsAreAllStarted) {
  Loop loop;
  const auto children = spawn_many(loop, 60, spec_of("cat", {"/dev/null", "-", std::string(50'000, 'x')}));
  EXPECT_EQ(children.size(), 60u);
}

// A start whose program cannot be opened at once, as on a dead network file system, delays only itself. Here
// the open blocks because this process holds a lease on the file.
TEST(ManyChildrenTest, BlockedStartDoesNotDelayOthers) {
  const TemporaryDirectory dir;
  const auto program = dir.write("slow", "#!/bin/sh\necho late\n");
  const UniqueFd leased(::open(program.c_str(), O_RDWR | O_CLOEXEC));
  const auto before = std::signal(SIGIO, SIG_IGN);
  ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
  Loop loop;
  std::vector<std::shared_ptr<Child>> slow;
  int answered = 0;
  loop.spawn(spawn_into(loop, spec_of(program), slow, answered));
  const RunningChild other = start(loop, spec_of_fixture("exits", {"6"}));
  EXPECT_EQ(wait_for(loop, *other.child).code, 6);
  EXPECT_EQ(answered, 0);
  ::fcntl(leased.get(), F_SETLEASE, F_UNLCK);
  std::signal(SIGIO, before);
  loop.run_until([&] { return answered == 1; });
  EXPECT_EQ(slow.size(), 0u);  // fails with ETXTBSY, because this process has the file open for writing
}

// Like BlockedStartDoesNotDelayOthers, but the blocked spawn is cancelled.
TEST(ManyChildrenTest, BlockedStartCanBeCancelled) {
  const TemporaryDirectory dir;
  const auto program = dir.write("slow", "#!/bin/sh\nsleep 60\n");
  const UniqueFd leased(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const auto before = std::signal(SIGIO, SIG_IGN);
  ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
  Loop loop;
  const RunningChild witness = start(loop, spec_of("cat"));
  {
    auto task = std::make_unique<Task<Result<std::shared_ptr<Child>>>>(Child::spawn(loop, spec_of(program)));
    loop.post([&] { task->await_suspend(std::noop_coroutine()).resume(); });
    wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
    task.reset();
  }
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_TRUE(wait_until_only_child(parent_of(witness.child->pid()), witness.child->pid()));
  ::fcntl(leased.get(), F_SETLEASE, F_UNLCK);
  std::signal(SIGIO, before);
}

}  // namespace
}  // namespace fairlead::test
