// Nothing is left behind, whoever is killed: us, the keeper, a keeper within a child.
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
#include "process/cookie_sweep.hpp"
#include "process/keeper/protocol.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

constexpr auto kPromised = 2s;  // after our death nothing of ours lives longer

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) ::_exit(20);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// A process of its own that starts children through the library, says who they are, and waits to be killed.
class Gateway {
 public:
  // Each child announces one more process, in a line "<word> <pid>".
  Gateway(std::vector<ProcessSpec> specs, std::string_view word) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd read(ends[0]);
    UniqueFd write(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) run(std::move(specs), word, std::move(write));
    write.reset();
    Running reader;
    reader.out = std::move(read);
    for (;;) {
      const auto line = reader.line();
      EXPECT_TRUE(line) << "the gateway said nothing";
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
  // The children, what they announced, and last the keeper.
  const std::vector<Watched>& processes() const { return processes_; }
  bool all_end_within(std::chrono::milliseconds patience) const {
    const auto deadline = Clock::now() + patience;
    return std::ranges::all_of(processes_, [&](const Watched& process) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      return process.ends_within(std::max(left, 0ms));
    });
  }

 private:
  [[noreturn]] static void run(std::vector<ProcessSpec> specs, std::string_view word, UniqueFd report) {
    Loop loop;
    std::vector<Running> children;
    std::string pids;
    for (ProcessSpec& spec : specs) {
      children.push_back(start(loop, std::move(spec)));
      pids += std::to_string(children.back().child->pid()) + '\n';
      pids += std::to_string(children.back().number(word)) + '\n';
    }
    pids += std::to_string(parent_of(children.front().child->pid())) + '\n';
    write_all(report.get(), pids + "end\n");
    loop.run();
    ::_exit(0);
  }

  pid_t pid_ = 0;
  std::vector<Watched> processes_;
};

// R4.3, R11.3: `npx` starts `node`
TEST(Survivors, NoneBehindALauncherShellWhenWeAreKilled) {
  const auto deaf = fixture("ignores_eof_and_term");
  const Gateway gateway(
      {spec_of("sh", {"-c", deaf + "; exit 1"}), spec_of("sh", {"-c", "sh -c '" + deaf + "; :'; :"})},
      "ready");
  ASSERT_EQ(gateway.processes().size(), 5u);
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

// R4.3, R11.3
TEST(Survivors, NoneOfAGrandchildThatHoldsThePipesWhenWeAreKilled) {
  const Gateway gateway({spec_of_fixture("leaves_grandchild")}, "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

// R4.3, R11.3
TEST(Survivors, NoneOfADoubleForkWhenWeAreKilled) {
  const Gateway gateway({spec_of_fixture("double_forks")}, "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

// R4.3, R11.3: also one without the cookie
TEST(Survivors, NoneThatLeftTheSessionWhenWeAreKilled) {
  const Gateway gateway({spec_of_fixture("escapes_session"), spec_of_fixture("escapes_session", {"scrub"})},
                        "stray");
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

// R11.3: a process we forked inherits our end of the keeper's socket; our death counts, not the socket's
TEST(Survivors, NoneWhenAForkOfOursHoldsTheSocket) {
  const auto spec = spec_of("sh", {"-c", "echo ready $$; exec cat"});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]);
  const pid_t gateway = ::fork();
  if (gateway == 0) {
    Loop loop;
    const Running running = start(loop, spec);
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
  const Watched child(pids[0]);
  const Watched holder(pids[1]);
  ::kill(gateway, SIGKILL);
  ::waitpid(gateway, nullptr, 0);
  EXPECT_TRUE(child.ends_within(kPromised));
  EXPECT_TRUE(holder.alive());
  ::kill(pids[1], SIGKILL);
}

// R11.3: a service manager signals every process of the service; the gateway wants to stop its children
// itself
TEST(Survivors, TheKeeperOutlivesPoliteSignals) {
  Loop loop;
  const Running running = start(loop, spec_of("cat"));
  const Watched keeper(parent_of(running.child->pid()));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE}) ::kill(keeper.pid(), signal);
  // It has seen them by the time it answers.
  EXPECT_EQ(wait_for(loop, *start(loop, spec_of_fixture("exits", {"4"})).child).code, 4);
  EXPECT_TRUE(keeper.alive());
  EXPECT_TRUE(running.child->is_running());
}

// Any process of this user can stop the keeper. The kernel continues it when we die.
TEST(Survivors, NoneWhenTheKeeperIsStoppedAndWeAreKilled) {
  const Gateway gateway({spec_of_fixture("ignores_eof_and_term")}, "ready");
  ASSERT_EQ(::kill(gateway.processes().back().pid(), SIGSTOP), 0);
  gateway.kill();
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

Limits with_keeper_timeout(std::chrono::milliseconds timeout) {
  Limits limits;
  limits.keeper_timeout = timeout;
  return limits;
}

TEST(Survivors, AStoppedKeeperIsContinuedWhenItDoesNotAnswer) {
  Loop loop;
  const Running first = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(first.child->pid());
  ::kill(keeper, SIGSTOP);
  const Running second = start(loop, spec_of("cat"), with_keeper_timeout(500ms));
  EXPECT_EQ(parent_of(second.child->pid()), keeper);
  EXPECT_TRUE(first.child->is_running());
}

TEST(Survivors, AStoppedKeeperDoesNotDelayTheLoopsEnd) {
  std::optional<Watched> child;
  Clock::time_point before;
  {
    Loop loop;
    const Running running = start(loop, spec_of_fixture("ignores_eof_and_term"));
    child.emplace(running.number("ready"));
    ::kill(parent_of(running.child->pid()), SIGSTOP);
    before = Clock::now();
  }
  EXPECT_LT(Clock::now() - before, kPromised);
  EXPECT_TRUE(child->ends_within(0ms));
}

// Stops `process` until it is killed: it is held by a tracer, so that SIGCONT does not continue it. False
// where the system does not let us trace.
bool hold(pid_t process) {
  if (::ptrace(PTRACE_SEIZE, process, nullptr, nullptr) < 0) return false;
  EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr), 0);
  EXPECT_EQ(::waitpid(process, nullptr, __WALL), process);
  return true;
}

TEST(Survivors, AKeeperThatIsKeptStoppedIsKilledAndReplaced) {
  Loop loop;
  const Running escaped = start(loop, spec_of_fixture("escapes_session"), with_keeper_timeout(500ms));
  const Watched stray(escaped.number("stray"));
  const pid_t keeper = parent_of(escaped.child->pid());
  if (!hold(keeper)) GTEST_SKIP() << "no tracing here";
  escaped.child->kill();
  wait_for(loop, *escaped.child);
  EXPECT_EQ(escaped.child->exit_error().detail().code, failure::keeper_died);
  EXPECT_TRUE(stray.ends_within(kPromised));
  const Running next = start(loop, spec_of("cat"));
  EXPECT_NE(parent_of(next.child->pid()), keeper);
}

TEST(Survivors, NoneWhenTheKeeperIsKeptStoppedAndTheLoopEnds) {
  std::optional<Watched> child;
  std::optional<Watched> stray;
  Clock::time_point before;
  {
    Loop loop;
    const Running escaped = start(loop, spec_of_fixture("escapes_session"));
    stray.emplace(escaped.number("stray"));
    child.emplace(escaped.child->pid());
    const pid_t keeper = parent_of(child->pid());
    if (!hold(keeper)) GTEST_SKIP() << "no tracing here";
    before = Clock::now();
  }
  EXPECT_LT(Clock::now() - before, 2 * kPromised);
  EXPECT_TRUE(child->ends_within(kPromised));
  EXPECT_TRUE(stray->ends_within(kPromised));
}

// A program that has opted in: a stray without session, cookie and cgroup becomes ours when the keeper is
// killed.
TEST(Survivors, ASubreaperEndsWhatAKilledKeeperLeaves) {
  const int status = in_fork([] {
    if (!become_subreaper()) return 1;
    Loop loop;
    ProcessSpec spec = spec_of_fixture("escapes_session", {"scrub"});
    spec.containment.cgroup = Requirement::off;
    const Running escaped = start(loop, std::move(spec));
    const Watched stray(escaped.number("stray"));
    if (!stray.alive()) return 2;
    ::kill(parent_of(escaped.child->pid()), SIGKILL);
    wait_for(loop, *escaped.child);
    const auto until = Clock::now() + kPatience;
    loop.run_until([&] { return !stray.alive() && children_of(::getpid()).empty(); });
    if (Clock::now() > until) return 3;
    const Running next = start(loop, spec_of("cat"));
    return next.child->is_running() ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

TEST(Survivors, AProcessThatHasChildrenDoesNotBecomeASubreaper) {
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

// R4.3: what dropped its environment and left its session cannot be told apart; it goes with the keeper
TEST(Survivors, AStrayWithoutCookieEndsWithTheLoop) {
  std::optional<Watched> stray;
  {
    Loop loop;
    Running running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    stray.emplace(running.number("stray"));
    running.in.reset();
    wait_for(loop, *running.child);
  }
  EXPECT_TRUE(stray->ends_within(0ms));
}

// R4.4
TEST(Survivors, WhenTheKeeperIsKilledItsChildrenDieAndTheErrorSaysSo) {
  Loop loop;
  const Running direct = start(loop, spec_of_fixture("ignores_eof_and_term"));
  const Watched child(direct.number("ready"));
  const Running launcher = start(loop, spec_of_fixture("leaves_grandchild"));
  const Watched grandchild(launcher.number("stray"));
  const Running escaped = start(loop, spec_of_fixture("escapes_session"));
  const Watched escapee(escaped.number("stray"));
  const pid_t keeper = parent_of(direct.child->pid());
  ::kill(keeper, SIGKILL);
  EXPECT_EQ(wait_for(loop, *direct.child).signal, SIGKILL);
  const Error error = direct.child->exit_error();
  EXPECT_EQ(error.kind(), ErrorKind::process_exited);
  EXPECT_NE(error.message().find("was killed because its keeper process died"), std::string::npos)
      << error.message();
  wait_for(loop, *launcher.child);
  for (const Watched* process : {&child, &grandchild, &escapee}) EXPECT_TRUE(process->ends_within(kPromised));
  EXPECT_FALSE(direct.child->is_running());
  // A new keeper, and the old one is no zombie.
  const Running next = start(loop, spec_of("cat"));
  EXPECT_NE(parent_of(next.child->pid()), keeper);
  EXPECT_TRUE(next.child->is_running());
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_NE(parent_of(keeper), ::getpid());
}

// R11.3: we and the keeper gone at the same time; the kernel still kills the children themselves
// What bears a keeper's cookie is found in whatever moment it is looked at.
TEST(Survivors, NoneThatIsJustBecomingAnotherProgram) {
  constexpr std::uint64_t token = 0x12345678'00000000;
  const std::string cookie =
      std::string(keeper::kCookieName) + "=" + std::to_string(::getpid()) + "." + std::to_string(token);
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string path = std::string(FAIRLEAD_FIXTURE_DIR) + "/becomes_itself";
      const char* const argv[] = {"becomes_itself", nullptr};
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
    ASSERT_TRUE(ended) << "in round " << i;
  }
}

TEST(Survivors, NoLeaderWhenTheKeeperIsKilledAndWeCannotAct) {
  const Gateway gateway({spec_of_fixture("ignores_eof_and_term")}, "ready");
  ASSERT_EQ(::kill(gateway.pid(), SIGSTOP), 0);
  ::kill(gateway.processes().back().pid(), SIGKILL);
  EXPECT_TRUE(gateway.all_end_within(kPromised));
}

TEST(Survivors, ASpawnUnderWayWhenTheLoopEndsLeavesNoProcess) {
  std::optional<Watched> keeper;
  {
    Loop loop;
    const Running first = start(loop, spec_of("cat"));
    keeper.emplace(parent_of(first.child->pid()));
    for (int i = 0; i < 40; ++i) {
      loop.spawn([](Loop& on) -> Task<void> {
        ProcessSpec spec = spec_of("cat");
        static_cast<void>(co_await Child::spawn(on, std::move(spec)));
      }(loop));
    }
    loop.run_until([turns = 0]() mutable { return ++turns > 20; });
  }
  EXPECT_TRUE(keeper->ends_within(0ms));  // and it ends last
  EXPECT_EQ(children_of(::getpid()), std::vector<pid_t>{});
}

TEST(Survivors, ASpawnUnderWayWhenTheKeeperDiesFails) {
  Loop loop;
  const Running first = start(loop, spec_of("cat"));
  const Watched keeper(parent_of(first.child->pid()));
  if (!hold(keeper.pid())) GTEST_SKIP() << "no tracing here";
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
  EXPECT_EQ(error->message(), "the keeper process died while it was to start `cat`");
}

// What this very program is when it is started with --inner-gateway: a gateway with a child of its own.
[[noreturn]] void be_a_gateway() {
  Loop loop;
  const Running escaped = start(loop, spec_of_fixture("escapes_session"));
  std::cout << "\nstray " << escaped.number("stray") << "\nchild " << escaped.child->pid() << "\nkeeper "
            << parent_of(escaped.child->pid()) << std::endl;
  loop.run();
  std::exit(0);
}

pid_t announced(const Running& running, std::string_view word) {
  for (;;) {
    const auto line = running.line();
    if (!line) return 0;
    if (line->starts_with(word)) return std::atoi(line->c_str() + word.size());
  }
}

// R11.3: the inner keeper has left our session, and is killed before it is done. What it keeps has a cookie
// of each, so the outer one finishes the work.
TEST(Survivors, NoneOfAGatewayWithinAChild) {
  Loop loop;
  const Running gateway =
      start(loop, spec_of(std::filesystem::read_symlink("/proc/self/exe"), {"--inner-gateway"}));
  const Watched stray(announced(gateway, "stray "));
  const Watched child(announced(gateway, "child "));
  const Watched keeper(announced(gateway, "keeper "));
  EXPECT_NE(keeper.pid(), parent_of(gateway.child->pid()));
  gateway.child->kill();
  wait_for(loop, *gateway.child);
  for (const Watched* process : {&stray, &child, &keeper}) EXPECT_TRUE(process->ends_within(kPromised));
}

// R11.3: kernels that keep no list of children; and FAIRLEAD_KEEPER
TEST(Survivors, NoneWhereProcMustBeSearched) {
  const TemporaryDirectory dir;
  Loop first;
  const Running any = start(first, spec_of("cat"));
  const std::string copy = dir.path() + "/keeper-copy";
  const std::string image = read_file("/proc/" + std::to_string(parent_of(any.child->pid())) + "/exe");
  dir.write("keeper-copy", image);
  const auto wrapper = dir.write("keeper", "#!/bin/sh\nexec '" + copy + "' \"$@\" --scan-proc\n");
  const TemporaryVariable path("FAIRLEAD_KEEPER", wrapper.c_str());
  std::vector<Watched> strays;
  {
    Loop loop;
    Running running = start(loop, spec_of_fixture("escapes_session"));
    const std::string command =
        read_file("/proc/" + std::to_string(parent_of(running.child->pid())) + "/cmdline");
    EXPECT_NE(command.find("--scan-proc"), std::string::npos);
    strays.emplace_back(running.number("stray"));
    running.in.reset();
    wait_for(loop, *running.child);
    EXPECT_TRUE(strays.front().ends_within(kPatience));
    const Running left = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    strays.emplace_back(left.number("stray"));
  }
  EXPECT_TRUE(strays.back().ends_within(0ms));
}

}  // namespace
}  // namespace fairlead::test

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--inner-gateway") fairlead::test::be_a_gateway();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
