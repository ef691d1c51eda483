// What a child is given, and how a start fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <grp.h>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "fairlead/loop/timer.hpp"
#include "fairlead/process/failure.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

// What describes_itself says, by its first word.
using Facts = std::multimap<std::string, std::string>;

Facts facts_of(const Running& running) {
  Facts facts;
  for (;;) {
    const std::string line = running.line().value_or("end");
    if (line == "end") return facts;
    const auto space = line.find_first_of(" \t");
    facts.emplace(line.substr(0, space), line.substr(std::min(space, line.size() - 1) + 1));
  }
}

std::vector<std::string> all(const Facts& facts, const std::string& word) {
  std::vector<std::string> values;
  const auto [first, last] = facts.equal_range(word);
  for (auto it = first; it != last; ++it) values.push_back(it->second);
  return values;
}

std::string one(const Facts& facts, const std::string& word) {
  const auto values = all(facts, word);
  EXPECT_EQ(values.size(), 1u) << word;
  return values.empty() ? "" : values.front();
}

std::string variable(const Facts& facts, const std::string& name) {
  for (const std::string& entry : all(facts, "env")) {
    if (entry.starts_with(name + '=')) return entry.substr(name.size() + 1);
  }
  return "(not set)";
}

Facts describe(ProcessSpec spec) {
  Loop loop;
  const Running running = start(loop, std::move(spec));
  return facts_of(running);
}

// R4.1
TEST(Spawn, ArgumentsArriveAsTheyAreWithoutAShell) {
  const auto facts = describe(spec_of_fixture("describes_itself", {"a b", "$HOME", "*", "", "\"'\\"}));
  EXPECT_EQ(all(facts, "arg"),
            (std::vector<std::string>{fixture("describes_itself"), "a b", "$HOME", "*", "", "\"'\\"}));
}

// R4.1
TEST(Spawn, TheEnvironmentIsInheritedWithOverrides) {
  const TemporaryVariable inherited("TEST_SPAWN_INHERITED", "yes");
  const TemporaryVariable overridden("TEST_SPAWN_OVERRIDDEN", "old");
  auto spec = spec_of_fixture("describes_itself");
  spec.env["TEST_SPAWN_OVERRIDDEN"] = "new";
  const auto facts = describe(std::move(spec));
  EXPECT_EQ(variable(facts, "TEST_SPAWN_INHERITED"), "yes");
  EXPECT_EQ(variable(facts, "TEST_SPAWN_OVERRIDDEN"), "new");
}

// R4.1
TEST(Spawn, InAllowListModeNothingElseIsInherited) {
  const TemporaryVariable secret("TEST_SPAWN_SECRET", "s");
  auto spec = spec_of_fixture("describes_itself");
  spec.inherit_only = {"PATH"};
  const auto facts = describe(std::move(spec));
  EXPECT_EQ(all(facts, "env").size(), 2u);
  EXPECT_NE(variable(facts, "PATH"), "(not set)");
  EXPECT_NE(variable(facts, "FAIRLEAD_CHILD"), "(not set)");
}

// R4.1
TEST(Spawn, TheWorkingDirectoryIsTheOneAskedForElseOurs) {
  const TemporaryDirectory dir;
  auto spec = spec_of_fixture("describes_itself");
  const auto ours = describe(spec);
  EXPECT_EQ(one(ours, "cwd"), std::filesystem::current_path());
  spec.cwd = dir.path();
  const auto asked = describe(spec);
  EXPECT_EQ(one(asked, "cwd"), dir.path());
}

// Returns to the directory it was made in.
class BackHere {
 public:
  ~BackHere() { std::filesystem::current_path(here_); }

 private:
  std::filesystem::path here_ = std::filesystem::current_path();
};

// R4.1: the keeper was started elsewhere; a child is still started where we are now
TEST(Spawn, AChangeOfOurDirectoryAfterTheFirstChildIsFollowed) {
  Loop loop;
  const TemporaryDirectory dir;
  const BackHere here;
  start(loop, spec_of("cat"));
  std::filesystem::current_path(dir.path());
  const auto facts = facts_of(start(loop, spec_of_fixture("describes_itself")));
  std::filesystem::create_directory("sub");
  auto relative = spec_of_fixture("describes_itself");
  relative.cwd = "sub";
  const auto below = facts_of(start(loop, std::move(relative)));
  EXPECT_EQ(one(facts, "cwd"), dir.path());
  EXPECT_EQ(one(below, "cwd"), dir.path() + "/sub");
}

// R4.1
TEST(Spawn, TheCommandIsLookedUpInTheChildsPathNotOurs) {
  const TemporaryDirectory dir;
  dir.write("fairlead-test-tool", "#!/bin/sh\necho found\n");
  auto spec = spec_of("fairlead-test-tool");
  Loop loop;
  EXPECT_EQ(start_error(loop, spec).detail().os_error, ENOENT);
  spec.env["PATH"] = dir.path() + ":/bin:/usr/bin";
  EXPECT_EQ(start(loop, spec).line(), "found");
}

// R4.1: as execve sees it after chdir
TEST(Spawn, ARelativePathIsTakenFromTheChildsDirectory) {
  const TemporaryDirectory dir;
  dir.write("bin/tool", "#!/bin/sh\necho found\n");
  auto spec = spec_of("bin/tool");
  spec.cwd = dir.path();
  Loop loop;
  EXPECT_EQ(start(loop, spec).line(), "found");
}

// R4.1: more than one packet holds
TEST(Spawn, AMegabyteOfArgumentsArrives) {
  std::vector<std::string> args(10, std::string(100'000, 'x'));
  args.push_back("last");
  Loop loop;
  const Running running =
      start(loop, spec_of("sh", {"-c", "shift 9; echo ${#1} $2", "sh", args[0], args[1], args[2], args[3],
                                 args[4], args[5], args[6], args[7], args[8], args[9], args[10]}));
  EXPECT_EQ(running.line(), "100000 last");
}

TEST(Spawn, MoreArgumentsThanTheSystemTakesIsSaidSo) {
  Loop loop;
  const Error error =
      start_error(loop, spec_of("cat", std::vector<std::string>(40, std::string(120'000, 'x'))));
  EXPECT_EQ(error.detail().os_error, E2BIG);
  EXPECT_EQ(error.message(), "the arguments and environment of `cat` are too long");
}

// R4.2
TEST(Spawn, OnlyStdinStdoutAndStderrAreOpenInTheChild) {
  const UniqueFd leaky(::open("/etc/passwd", O_RDONLY));  // as a library might: not close-on-exec
  const auto facts = describe(spec_of_fixture("describes_itself"));
  EXPECT_EQ(all(facts, "fd"), (std::vector<std::string>{"0", "1", "2"}));
}

// R4.2
TEST(Spawn, BlockedAndIgnoredSignalsAreNotInherited) {
  sigset_t all_signals;
  sigset_t before;
  sigfillset(&all_signals);
  sigprocmask(SIG_SETMASK, &all_signals, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  const auto usr_before = std::signal(SIGUSR1, SIG_IGN);
  const auto facts = describe(spec_of_fixture("describes_itself"));
  std::signal(SIGPIPE, pipe_before);
  std::signal(SIGUSR1, usr_before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(one(facts, "SigBlk:"), "0000000000000000");
  EXPECT_EQ(one(facts, "SigIgn:"), "0000000000000000");
}

// R4.2
TEST(Spawn, TheChildLeadsASessionAndAGroupOfItsOwn) {
  const auto facts = describe(spec_of_fixture("describes_itself"));
  EXPECT_EQ(one(facts, "session"), one(facts, "pid"));
  EXPECT_EQ(one(facts, "group"), one(facts, "pid"));
}

// R4.2: a sibling that holds a pipe's end keeps it from ever closing
TEST(Spawn, NoChildHoldsAPipeOfAnother) {
  Loop loop;
  const Running a = start(loop, spec_of("cat"));
  const Running b = start(loop, spec_of("cat"));
  const Running c = start(loop, spec_of("cat"));
  std::map<std::string, int> holders;
  for (const Running* running : {&a, &b, &c}) {
    running->say("loaded?\n");
    EXPECT_EQ(running->line(), "loaded?");
    const auto descriptors = descriptors_of(running->child->pid());
    EXPECT_EQ(descriptors.size(), 3u);
    for (const auto& [fd, target] : descriptors) ++holders[target];
  }
  EXPECT_EQ(holders.size(), 9u);
  const pid_t keeper = parent_of(a.child->pid());
  for (const auto& [fd, target] : descriptors_of(keeper)) EXPECT_FALSE(holders.contains(target)) << target;
}

// R4.2: what others in our process start inherits nothing of ours
TEST(Spawn, EveryDescriptorOfOursIsCloseOnExec) {
  Loop loop;
  const Timer reactor(loop);
  const auto before = descriptors_of(::getpid());
  const Running running = start(loop, spec_of("cat"));
  int ours = 0;
  for (const auto& [fd, target] : descriptors_of(::getpid())) {
    if (before.contains(fd)) continue;
    ++ours;
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd << " -> " << target;
  }
  EXPECT_EQ(ours, 5);  // three pipes, the keeper's socket and its pidfd
}

int spawn_without_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  Loop loop;
  const Timer reactor(loop);
  const auto before = descriptors_of(::getpid());
  const Running running = start(loop, spec_of("cat"));
  for (const auto& [fd, target] : descriptors_of(::getpid())) {
    if (fd < 3 && !before.contains(fd)) return 1;
  }
  return running.child->is_running() ? 0 : 2;
}

// R4.2
TEST(Spawn, NothingOfOursTakesTheNumberOfAStandardStream) {
  EXPECT_EQ(in_fork(spawn_without_standard_streams), 0);
}

// R4.2: no stray descriptor in the keeper either
TEST(Spawn, TheKeeperHoldsItsSocketAndNothingOfOurs) {
  const UniqueFd leaky(::open("/etc/passwd", O_RDONLY));
  Loop loop;
  const Running running = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(running.child->pid());
  EXPECT_EQ(read_file("/proc/" + std::to_string(keeper) + "/comm"), "fairlead-keeper\n");
  EXPECT_EQ(::getsid(keeper), keeper);
  int sockets = 0;
  for (const auto& [fd, target] : descriptors_of(keeper)) {
    sockets += target.starts_with("socket:");
    const bool known = target.starts_with("socket:") || target == "/dev/null" ||
                       target.starts_with("anon_inode:") || target.starts_with("pidfd");
    EXPECT_TRUE(known) << fd << " -> " << target;
  }
  EXPECT_EQ(sockets, 1);
}

// R4.5
TEST(Spawn, ACommandThatIsNowhereIsNotFound) {
  Loop loop;
  auto spec = spec_of("fairlead-no-such-command");
  spec.env["PATH"] = "/bin:/sbin";
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(), "command not found: fairlead-no-such-command (looked in PATH=/bin:/sbin)");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

// R4.5
TEST(Spawn, APathThatDoesNotExistIsNotFound) {
  Loop loop;
  const Error error = start_error(loop, spec_of("/no/such/command"));
  EXPECT_EQ(error.message(), "command not found: /no/such/command");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

// R4.5
TEST(Spawn, AFileWithoutTheExecuteBitIsNotExecutable) {
  const TemporaryDirectory dir;
  const auto file = dir.write("tool", "#!/bin/sh\n", 0644);
  Loop loop;
  const Error by_path = start_error(loop, spec_of(file));
  EXPECT_EQ(by_path.message(), "not executable: " + file);
  EXPECT_EQ(by_path.detail().os_error, EACCES);
  auto spec = spec_of("tool");
  spec.env["PATH"] = dir.path();
  EXPECT_EQ(start_error(loop, spec).message(), "not executable: " + file);
}

// R4.5
TEST(Spawn, AFileThatIsNoProgramIsNotExecutable) {
  const TemporaryDirectory dir;
  Loop loop;
  const Error text = start_error(loop, spec_of(dir.write("text", "hello\n")));
  EXPECT_TRUE(text.message().starts_with("not executable: ")) << text.message();
  EXPECT_EQ(text.detail().os_error, ENOEXEC);
  const Error script = start_error(loop, spec_of(dir.write("script", "#!/no/such/interpreter\n")));
  EXPECT_EQ(script.message(),
            "not executable: " + dir.path() + "/script (the interpreter it names is missing)");
}

// R4.5
TEST(Spawn, ADirectoryThatIsNotThereIsABadWorkingDirectory) {
  Loop loop;
  auto spec = spec_of("cat");
  spec.cwd = "/no/such/directory";
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(), "bad working directory: /no/such/directory: No such file or directory");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

class LowLimit {
 public:
  LowLimit(__rlimit_resource_t which, rlim_t value) : which_(which) {
    ::getrlimit(which, &before_);
    const rlimit low{value, before_.rlim_max};
    ::setrlimit(which, &low);
  }
  ~LowLimit() { ::setrlimit(which_, &before_); }

 private:
  __rlimit_resource_t which_;
  rlimit before_;
};

// R4.5
TEST(Spawn, OutOfDescriptorsIsSaidSoAndPasses) {
  Loop loop;
  start(loop, spec_of("cat"));
  const std::size_t before = own_descriptor_count();
  {
    const LowLimit limit(RLIMIT_NOFILE, 4);
    const Error error = start_error(loop, spec_of("/bin/cat"));
    EXPECT_EQ(error.kind(), ErrorKind::spawn);
    EXPECT_EQ(error.message(), "out of descriptors: cannot start `/bin/cat`, no pipe: Too many open files");
    EXPECT_EQ(error.detail().os_error, EMFILE);
  }
  EXPECT_EQ(own_descriptor_count(), before);
  const Running running = start(loop, spec_of("/bin/cat"));
  EXPECT_TRUE(running.child->is_running());
}

// R4.5
TEST(Spawn, OutOfDescriptorsForTheKeeperItselfIsSaidSo) {
  Loop loop;
  const Timer reactor(loop);  // its event queue takes descriptors of its own
  const auto free_fd = static_cast<rlim_t>(UniqueFd(::dup(0)).get());
  {
    // Room for the child's pipes but not for a socket pair besides.
    const LowLimit limit(RLIMIT_NOFILE, free_fd + 7);
    const Error error = start_error(loop, spec_of("/bin/cat"));
    EXPECT_TRUE(error.message().starts_with("out of descriptors: cannot start `fairlead-keeper`"))
        << error.message();
  }
  EXPECT_TRUE(start(loop, spec_of("/bin/cat")).child->is_running());
}

// As nobody, started by root in a directory of root's.
TEST(Spawn, ADirectoryThatCannotBeEnteredIsNoHindranceWhenWeAreInIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory dir;
  const int status = in_fork([&] {
    if (::chmod(dir.path().c_str(), 0700) < 0 || ::chdir(dir.path().c_str()) < 0) return 1;
    if (::setgroups(0, nullptr) < 0 || ::setgid(65534) < 0 || ::setuid(65534) < 0) return 2;
    Loop loop;
    if (!loop.block_on(Child::spawn(loop, spec_of("/bin/cat")))) return 3;
    ProcessSpec inside = spec_of("/bin/cat");
    inside.cwd = dir.path() + "/further";
    const auto refused = loop.block_on(Child::spawn(loop, inside));
    return !refused && refused.error().detail().code == failure::bad_cwd ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

// R4.5: RLIMIT_NPROC counts a user's processes and does not bind root, so this is done as nobody
int spawn_as_nobody_without_processes() {
  constexpr uid_t nobody = 65534;
  if (::geteuid() == 0 && (::setgroups(0, nullptr) || ::setgid(nobody) || ::setuid(nobody))) return 10;
  Loop loop;
  auto first = loop.block_on(Child::spawn(loop, spec_of("/bin/cat")));
  if (!first) return 11;
  const rlimit none{0, 0};
  ::prlimit(parent_of((*first)->pid()), RLIMIT_NPROC, &none, nullptr);
  const auto second = loop.block_on(Child::spawn(loop, spec_of("/bin/cat")));
  if (second) return 12;
  if (second.error().detail().os_error != EAGAIN) return 13;
  return second.error().message().starts_with("out of processes: cannot start `/bin/cat`") ? 0 : 14;
}

TEST(Spawn, OutOfProcessesIsSaidSo) {
  EXPECT_EQ(in_fork(spawn_as_nobody_without_processes), 0);
}

// R4.5: the program is loaded, or the error is here, before spawn() says anything
TEST(Spawn, AHundredFailuresLeaveNothingBehind) {
  Loop loop;
  const Running first = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(first.child->pid());
  const std::size_t before = own_descriptor_count();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(start_error(loop, spec_of("/no/such")).detail().os_error, ENOENT);
  EXPECT_EQ(own_descriptor_count(), before);
  EXPECT_TRUE(is_left_alone(keeper, first.child->pid()));
}

// A gateway whose server is the same gateway would start processes until there are none left.
TEST(Spawn, FailsBelowMaxNestingGateways) {
  Loop loop;
  {
    const TemporaryVariable above("FAIRLEAD_CHILD", "11.1/12.2/13.3");
    EXPECT_TRUE(start(loop, spec_of("cat")).child->is_running());
  }
  const TemporaryVariable above("FAIRLEAD_CHILD", "11.1/12.2/13.3/14.4");
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.detail().code, failure::nested_too_deep);
  EXPECT_EQ(error.message(), "cannot start `cat`: this process runs below 4 nested gateways (max_nesting 4)");
}

// R11.3: the path instead of the copy within us
TEST(Spawn, AKeeperThatCannotBeRunIsNamed) {
  const TemporaryVariable path("FAIRLEAD_KEEPER", "/no/such/keeper");
  Loop loop;
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(),
            "cannot start `fairlead-keeper`, FAIRLEAD_KEEPER=/no/such/keeper: No such file or directory");
  EXPECT_EQ(error.detail().code, failure::keeper_failed);
  EXPECT_EQ(error.detail().remedy, remedy_for(failure::keeper_failed));
}

TEST(Spawn, AKeeperThatIsNoneFailsTheSpawnInsteadOfHanging) {
  const TemporaryVariable path("FAIRLEAD_KEEPER", "/bin/true");
  Loop loop;
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.message(), "cannot start `cat`, /bin/true is no fairlead-keeper (FAIRLEAD_KEEPER)");
  EXPECT_EQ(error.detail().code, failure::keeper_failed);
}

}  // namespace
}  // namespace fairlead::test
