// Tests that no process survives when the gateway, the keeper or a nested gateway is killed. A stray is a
// descendant of a child that has left the process group or session of the child.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/process/subreaper.hpp"
#include "process/keeper/protocol.hpp"
#include "process/kill_by_cookie.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

constexpr auto kMaxSurvivalTime = 2s;  // all processes must end within this time after the gateway's death

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) ::_exit(20);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Gateway: a process that starts children through the library, reports their pids, and waits to be killed.
class Gateway {
 public:
  // Each child writes a line "<word> <pid>" to its stdout with the pid of one more process, such as a stray.
  Gateway(std::vector<ProcessSpec> specs, std::string_view word) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd read(ends[0]);
    UniqueFd write(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) run(std::move(specs), word, std::move(write));
    write.reset();
    RunningChild reader;
    reader.out = std::move(read);
    for (;;) {
      const auto line = reader.read_line();
      EXPECT_TRUE(line) << "the gateway reported nothing";
      if (!line || *line == "end") break;
      processes_.emplace_back(std::atoi(line->c_str()));
    }
  }
  ~Gateway() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  // Returns the children, each followed by the process it reported, and last the keeper.
  const std::vector<ProcessWatch>& processes() const { return processes_; }
  bool all_end_within(std::chrono::milliseconds timeout) const {
    const auto deadline = Clock::now() + timeout;
    return std::ranges::all_of(processes_, [&](const ProcessWatch& process) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      return process.ends_within(std::max(left, 0ms));
    });
  }

 private:
  [[noreturn]] static void run(std::vector<ProcessSpec> specs, std::string_view word, UniqueFd report) {
    Loop loop;
    std::vector<RunningChild> children;
    std::string pids;
    for (ProcessSpec& spec : specs) {
      children.push_back(start(loop, std::move(spec)));
      pids += std::to_string(children.back().child->pid()) + '\n';
      pids += std::to_string(children.back().read_number(word)) + '\n';
    }
    pids += std::to_string(parent_of(children.front().child->pid())) + '\n';
    write_all(report.get(), pids + "end\n");
    loop.run();
    ::_exit(0);
  }

  pid_t pid_ = 0;
  std::vector<ProcessWatch> processes_;
};

// R4.3, R11.3: as with `npx`, which starts `node`.
TEST(SurvivorTest, ProcessBehindShellEndsWhenGatewayIsKilled) {
  const auto ignores_signals = fixture("ignores_eof_and_term");
  const Gateway gateway({spec_of("sh", {"-c", ignores_signals + "; exit 1"}),
                         spec_of("sh", {"-c", "sh -c '" + ignores_signals + "; :'; :"})},
                        "ready");
  ASSERT_EQ(gateway.processes().size(), 5u);
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

// R4.3, R11.3
TEST(SurvivorTest, GrandchildWithPipesEndsWhenGatewayIsKilled) {
  const Gateway gateway({spec_of_fixture("leaves_grandchild")}, "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

// R4.3, R11.3
TEST(SurvivorTest, DoubleForkedProcessEndsWhenGatewayIsKilled) {
  const Gateway gateway({spec_of_fixture("double_forks")}, "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

// R4.3, R11.3: one process with the cookie in its environment and one without.
TEST(SurvivorTest, ProcessThatLeftSessionEndsWhenGatewayIsKilled) {
  const Gateway gateway({spec_of_fixture("escapes_session"), spec_of_fixture("escapes_session", {"scrub"})},
                        "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

// R11.3: a process forked by the gateway inherits the gateway's end of the keeper's socket, so the socket
// stays open. The keeper reacts to the death of the gateway instead.
TEST(SurvivorTest, ChildEndsWithGatewayAlthoughForkOfGatewayKeepsSocketOpen) {
  const auto spec = spec_of("sh", {"-c", "echo ready $$; exec cat"});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]);
  const pid_t gateway = ::fork();
  if (gateway == 0) {
    Loop loop;
    const RunningChild running = start(loop, spec);
    const pid_t holder = ::fork();
    if (holder == 0) {
      for (;;) ::pause();
    }
    const pid_t pids[2] = {running.child->pid(), holder};
    static_cast<void>(!::write(ends[1], pids, sizeof pids));
    for (;;) ::pause();
  }
  pid_t pids[2];
  ASSERT_EQ(::read(read.get(), pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::close(ends[1]);
  const ProcessWatch child(pids[0]);
  const ProcessWatch holder(pids[1]);
  ::kill(gateway, SIGKILL);
  ::waitpid(gateway, nullptr, 0);
  EXPECT_TRUE(child.ends_within(kMaxSurvivalTime));
  EXPECT_TRUE(holder.alive());
  ::kill(pids[1], SIGKILL);
}

// R11.3: a service manager signals every process of the service, including the keeper. The keeper must
// survive, so that the gateway can stop its children itself.
TEST(SurvivorTest, KeeperSurvivesBlockableSignals) {
  Loop loop;
  const RunningChild running = start(loop, spec_of("cat"));
  const ProcessWatch keeper(parent_of(running.child->pid()));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE}) ::kill(keeper.pid(), signal);
  // The keeper has received the signals by the time it answers.
  EXPECT_EQ(wait_for(loop, *start(loop, spec_of_fixture("exits", {"4"})).child).code, 4);
  EXPECT_TRUE(keeper.alive());
  EXPECT_TRUE(running.child->is_running());
}

// Any process of this user can stop the keeper with SIGSTOP. The kernel continues the keeper when the gateway
// dies.
TEST(SurvivorTest, AllProcessesEndWhenKeeperIsStoppedAndGatewayIsKilled) {
  const Gateway gateway({spec_of_fixture("ignores_eof_and_term")}, "ready");
  ASSERT_EQ(::kill(gateway.processes().back().pid(), SIGSTOP), 0);
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

Limits with_keeper_timeout(std::chrono::milliseconds timeout) {
  Limits limits;
  limits.keeper_timeout = timeout;
  return limits;
}

TEST(SurvivorTest, StoppedKeeperIsContinued) {
  Loop loop;
  const RunningChild first = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(first.child->pid());
  ::kill(keeper, SIGSTOP);
  const RunningChild second = start(loop, spec_of("cat"), with_keeper_timeout(500ms));
  EXPECT_EQ(parent_of(second.child->pid()), keeper);
  EXPECT_TRUE(first.child->is_running());
}

TEST(SurvivorTest, StoppedKeeperDoesNotDelayLoopShutdown) {
  std::optional<ProcessWatch> child;
  Clock::time_point before;
  {
    Loop loop;
    const RunningChild running = start(loop, spec_of_fixture("ignores_eof_and_term"));
    child.emplace(running.read_number("ready"));
    ::kill(parent_of(running.child->pid()), SIGSTOP);
    before = Clock::now();
  }
  EXPECT_LT(Clock::now() - before, kMaxSurvivalTime);
  EXPECT_TRUE(child->ends_within(0ms));
}

// Stops `process` until it is killed, by tracing it, so that SIGCONT does not continue it. Returns false if
// tracing is not permitted.
bool stop_by_tracing(pid_t process) {
  if (::ptrace(PTRACE_SEIZE, process, nullptr, nullptr) < 0) return false;
  EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr), 0);
  EXPECT_EQ(::waitpid(process, nullptr, __WALL), process);
  return true;
}

TEST(SurvivorTest, KeeperThatStaysStoppedIsKilledAndReplaced) {
  Loop loop;
  const RunningChild escaped = start(loop, spec_of_fixture("escapes_session"), with_keeper_timeout(500ms));
  const ProcessWatch stray(escaped.read_number("stray"));
  const pid_t keeper = parent_of(escaped.child->pid());
  if (!stop_by_tracing(keeper)) GTEST_SKIP() << "tracing is not permitted";
  escaped.child->kill();
  wait_for(loop, *escaped.child);
  EXPECT_EQ(escaped.child->exit_error().detail().failure_code, failure::keeper_died);
  EXPECT_TRUE(stray.ends_within(kMaxSurvivalTime));
  const RunningChild next = start(loop, spec_of("cat"));
  EXPECT_NE(parent_of(next.child->pid()), keeper);
}

TEST(SurvivorTest, AllProcessesEndWhenKeeperStaysStoppedAndLoopEnds) {
  std::optional<ProcessWatch> child;
  std::optional<ProcessWatch> stray;
  Clock::time_point before;
  {
    Loop loop;
    const RunningChild escaped = start(loop, spec_of_fixture("escapes_session"));
    stray.emplace(escaped.read_number("stray"));
    child.emplace(escaped.child->pid());
    const pid_t keeper = parent_of(child->pid());
    if (!stop_by_tracing(keeper)) GTEST_SKIP() << "tracing is not permitted";
    before = Clock::now();
  }
  EXPECT_LT(Clock::now() - before, 2 * kMaxSurvivalTime);
  EXPECT_TRUE(child->ends_within(kMaxSurvivalTime));
  EXPECT_TRUE(stray->ends_within(kMaxSurvivalTime));
}

// A stray that no session, cookie or cgroup identifies becomes a child of the subreaper when the keeper is
// killed.
TEST(SurvivorTest, SubreaperKillsOrphansOfKilledKeeper) {
  const int status = in_fork([] {
    if (!become_subreaper()) return 1;
    Loop loop;
    ProcessSpec spec = spec_of_fixture("escapes_session", {"scrub"});
    spec.containment.cgroup = Requirement::off;
    const RunningChild escaped = start(loop, std::move(spec));
    const ProcessWatch stray(escaped.read_number("stray"));
    if (!stray.alive()) return 2;
    ::kill(parent_of(escaped.child->pid()), SIGKILL);
    wait_for(loop, *escaped.child);
    const auto until = Clock::now() + kTimeout;
    loop.run_until([&] { return !stray.alive() && children_of(::getpid()).empty(); });
    if (Clock::now() > until) return 3;
    const RunningChild next = start(loop, spec_of("cat"));
    return next.child->is_running() ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

TEST(SurvivorTest, BecomeSubreaperFailsIfProcessHasChildren) {
  const int status = in_fork([] {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    const bool refused = !become_subreaper();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return refused && become_subreaper() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

// R4.3: a stray that has left its session and has no cookie cannot be attributed to a child; it ends with the
// keeper.
TEST(SurvivorTest, StrayWithoutCookieEndsWithLoop) {
  std::optional<ProcessWatch> stray;
  {
    Loop loop;
    RunningChild running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    stray.emplace(running.read_number("stray"));
    running.in.reset();
    wait_for(loop, *running.child);
  }
  EXPECT_TRUE(stray->ends_within(0ms));
}

// R4.4
TEST(SurvivorTest, ChildrenDieWithKeeperAndErrorNamesKeeper) {
  Loop loop;
  const RunningChild direct = start(loop, spec_of_fixture("ignores_eof_and_term"));
  const ProcessWatch child(direct.read_number("ready"));
  const RunningChild launcher = start(loop, spec_of_fixture("leaves_grandchild"));
  const ProcessWatch grandchild(launcher.read_number("stray"));
  const RunningChild escaped = start(loop, spec_of_fixture("escapes_session"));
  const ProcessWatch escapee(escaped.read_number("stray"));
  const pid_t keeper = parent_of(direct.child->pid());
  ::kill(keeper, SIGKILL);
  EXPECT_EQ(wait_for(loop, *direct.child).signal, SIGKILL);
  const Error error = direct.child->exit_error();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_NE(error.message().find("was killed because its keeper process died"), std::string::npos)
      << error.message();
  wait_for(loop, *launcher.child);
  for (const ProcessWatch* process : {&child, &grandchild, &escapee})
    EXPECT_TRUE(process->ends_within(kMaxSurvivalTime));
  EXPECT_FALSE(direct.child->is_running());
  // A new keeper is started, and the old one is not a zombie.
  const RunningChild next = start(loop, spec_of("cat"));
  EXPECT_NE(parent_of(next.child->pid()), keeper);
  EXPECT_TRUE(next.child->is_running());
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_NE(parent_of(keeper), ::getpid());
}

// The cookie is found even if the environment is read while the process is in execve.
TEST(SurvivorTest, KillByCookieKillsProcessThatIsInExecve) {
  constexpr std::uint64_t token = 0x12345678'00000000;
  const std::string cookie =
      std::string(keeper::kCookieName) + "=" + std::to_string(::getpid()) + "." + std::to_string(token);
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string path = std::string(FAIRLEAD_FIXTURE_DIR) + "/executes_itself";
      const char* const argv[] = {"executes_itself", nullptr};
      const char* const envp[] = {cookie.c_str(), nullptr};
      ::execve(path.c_str(), const_cast<char**>(argv), const_cast<char**>(envp));
      ::_exit(127);
    }
    while (!read_file("/proc/" + std::to_string(pid) + "/environ").contains(cookie)) {
    }
    process::kill_by_cookie(::getpid(), token);
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd end{process.get(), POLLIN, 0};
    const bool ended = ::poll(&end, 1, 5000) == 1;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ASSERT_TRUE(ended) << "in iteration " << i;
  }
}

// R11.3: neither the gateway nor the keeper can kill the children. The kernel does (parent-death signal).
TEST(SurvivorTest, ChildrenEndWhenKeeperIsKilledAndGatewayIsStopped) {
  const Gateway gateway({spec_of_fixture("ignores_eof_and_term")}, "ready");
  ASSERT_EQ(::kill(gateway.pid(), SIGSTOP), 0);
  ::kill(gateway.processes().back().pid(), SIGKILL);
  EXPECT_TRUE(gateway.all_end_within(kMaxSurvivalTime));
}

TEST(SurvivorTest, PendingSpawnLeavesNoProcessWhenLoopEnds) {
  std::optional<ProcessWatch> keeper;
  {
    Loop loop;
    const RunningChild first = start(loop, spec_of("cat"));
    keeper.emplace(parent_of(first.child->pid()));
    for (int i = 0; i < 40; ++i) {
      loop.spawn([](Loop& on) -> Task<void> {
        ProcessSpec spec = spec_of("cat");
        static_cast<void>(co_await Child::spawn(on, std::move(spec)));
      }(loop));
    }
    loop.run_until([turns = 0]() mutable { return ++turns > 20; });
  }
  EXPECT_TRUE(keeper->ends_within(0ms));  // the keeper ends after its children
  EXPECT_EQ(children_of(::getpid()), std::vector<pid_t>{});
}

TEST(SurvivorTest, PendingSpawnFailsWhenKeeperDies) {
  Loop loop;
  const RunningChild first = start(loop, spec_of("cat"));
  const ProcessWatch keeper(parent_of(first.child->pid()));
  if (!stop_by_tracing(keeper.pid())) GTEST_SKIP() << "tracing is not permitted";
  std::optional<Error> error;
  loop.spawn([](Loop& on, std::optional<Error>& failed) -> Task<void> {
    ProcessSpec spec = spec_of("cat");
    const auto child = co_await Child::spawn(on, std::move(spec));
    if (!child) failed = child.error();
  }(loop, error));
  loop.run_until([turns = 0]() mutable { return ++turns > 1; });
  EXPECT_FALSE(error);
  ::kill(keeper.pid(), SIGKILL);
  loop.run_until([&] { return error.has_value(); });
  EXPECT_EQ(error->kind(), ErrorKind::spawn);
  EXPECT_EQ(error->message(), "the keeper process died while starting `cat`");
}

// The main function of this program with the argument --inner-gateway: a gateway with a child.
[[noreturn]] void run_inner_gateway() {
  Loop loop;
  const RunningChild escaped = start(loop, spec_of_fixture("escapes_session"));
  std::cout << "\nstray " << escaped.read_number("stray") << "\nchild " << escaped.child->pid() << "\nkeeper "
            << parent_of(escaped.child->pid()) << std::endl;
  loop.run();
  std::exit(0);
}

pid_t read_reported_pid(const RunningChild& running, std::string_view word) {
  for (;;) {
    const auto line = running.read_line();
    if (!line) return 0;
    if (line->starts_with(word)) return std::atoi(line->c_str() + word.size());
  }
}

// R11.3: the inner keeper has left the session and is killed before it has killed its children. These have
// the cookies of both keepers, so the outer keeper kills them.
TEST(SurvivorTest, ProcessesOfNestedGatewayEndWhenItIsKilled) {
  Loop loop;
  const RunningChild gateway =
      start(loop, spec_of(std::filesystem::read_symlink("/proc/self/exe"), {"--inner-gateway"}));
  const ProcessWatch stray(read_reported_pid(gateway, "stray "));
  const ProcessWatch child(read_reported_pid(gateway, "child "));
  const ProcessWatch keeper(read_reported_pid(gateway, "keeper "));
  EXPECT_NE(keeper.pid(), parent_of(gateway.child->pid()));
  gateway.child->kill();
  wait_for(loop, *gateway.child);
  for (const ProcessWatch* process : {&stray, &child, &keeper})
    EXPECT_TRUE(process->ends_within(kMaxSurvivalTime));
}

// R11.3: as on kernels without /proc/<pid>/task/<tid>/children. Also tests FAIRLEAD_KEEPER.
TEST(SurvivorTest, AllProcessesEndWhenKeeperMustScanProc) {
  const TemporaryDirectory dir;
  Loop first;
  const RunningChild any_child = start(first, spec_of("cat"));
  const std::string copy = dir.path() + "/keeper-copy";
  const std::string image = read_file("/proc/" + std::to_string(parent_of(any_child.child->pid())) + "/exe");
  dir.write("keeper-copy", image);
  const auto wrapper = dir.write("keeper", "#!/bin/sh\nexec '" + copy + "' \"$@\" --scan-proc\n");
  const TemporaryVariable path("FAIRLEAD_KEEPER", wrapper.c_str());
  std::vector<ProcessWatch> strays;
  {
    Loop loop;
    RunningChild running = start(loop, spec_of_fixture("escapes_session"));
    const std::string command =
        read_file("/proc/" + std::to_string(parent_of(running.child->pid())) + "/cmdline");
    EXPECT_NE(command.find("--scan-proc"), std::string::npos);
    strays.emplace_back(running.read_number("stray"));
    running.in.reset();
    wait_for(loop, *running.child);
    EXPECT_TRUE(strays.front().ends_within(kTimeout));
    const RunningChild left = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    strays.emplace_back(left.read_number("stray"));
  }
  EXPECT_TRUE(strays.back().ends_within(0ms));
}

}  // namespace
}  // namespace fairlead::test

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--inner-gateway") fairlead::test::run_inner_gateway();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
