// Tests of what a child inherits, and of failed starts.
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

// The lines of the fixture describes_itself, keyed by their first word.
using Facts = std::multimap<std::string, std::string>;

Facts read_facts(const RunningChild& running) {
  Facts facts;
  for (;;) {
    const std::string line = running.read_line().value_or("end");
    if (line == "end") return facts;
    const auto space = line.find_first_of(" \t");
    facts.emplace(line.substr(0, space), line.substr(std::min(space, line.size() - 1) + 1));
  }
}

std::vector<std::string> values_of(const Facts& facts, const std::string& word) {
  std::vector<std::string> values;
  const auto [first, last] = facts.equal_range(word);
  for (auto it = first; it != last; ++it) values.push_back(it->second);
  return values;
}

std::string single_value(const Facts& facts, const std::string& word) {
  const auto values = values_of(facts, word);
  EXPECT_EQ(values.size(), 1u) << word;
  return values.empty() ? "" : values.front();
}

std::string environment_value(const Facts& facts, const std::string& name) {
  for (const std::string& entry : values_of(facts, "env")) {
    if (entry.starts_with(name + '=')) return entry.substr(name.size() + 1);
  }
  return "(not set)";
}

Facts run_and_read_facts(ProcessSpec spec) {
  Loop loop;
  const RunningChild running = start(loop, std::move(spec));
  return read_facts(running);
}

// R4.1
TEST(SpawnTest, ArgumentsArePassedUnchangedWithoutShell) {
  const auto facts =
      run_and_read_facts(spec_of_fixture("describes_itself", {"a b", "$HOME", "*", "", "\"'\\"}));
  EXPECT_EQ(values_of(facts, "arg"),
            (std::vector<std::string>{fixture("describes_itself"), "a b", "$HOME", "*", "", "\"'\\"}));
}

// R4.1
TEST(SpawnTest, EnvironmentIsInheritedWithOverrides) {
  const TemporaryVariable inherited("TEST_SPAWN_INHERITED", "yes");
  const TemporaryVariable overridden("TEST_SPAWN_OVERRIDDEN", "old");
  auto spec = spec_of_fixture("describes_itself");
  spec.env["TEST_SPAWN_OVERRIDDEN"] = "new";
  const auto facts = run_and_read_facts(std::move(spec));
  EXPECT_EQ(environment_value(facts, "TEST_SPAWN_INHERITED"), "yes");
  EXPECT_EQ(environment_value(facts, "TEST_SPAWN_OVERRIDDEN"), "new");
}

// R4.1
TEST(SpawnTest, OnlyListedVariablesAreInheritedWithInheritOnly) {
  const TemporaryVariable secret("TEST_SPAWN_SECRET", "s");
  auto spec = spec_of_fixture("describes_itself");
  spec.inherit_only = {"PATH"};
  const auto facts = run_and_read_facts(std::move(spec));
  EXPECT_EQ(values_of(facts, "env").size(), 2u);
  EXPECT_NE(environment_value(facts, "PATH"), "(not set)");
  EXPECT_NE(environment_value(facts, "FAIRLEAD_CHILD"), "(not set)");
}

// R4.1
TEST(SpawnTest, WorkingDirectoryIsRequestedOneOrElseThatOfParent) {
  const TemporaryDirectory dir;
  auto spec = spec_of_fixture("describes_itself");
  const auto inherited = run_and_read_facts(spec);
  EXPECT_EQ(single_value(inherited, "cwd"), std::filesystem::current_path());
  spec.cwd = dir.path();
  const auto requested = run_and_read_facts(spec);
  EXPECT_EQ(single_value(requested, "cwd"), dir.path());
}

// RestoredDirectory: the destructor restores the current directory.
class RestoredDirectory {
 public:
  ~RestoredDirectory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

// R4.1: a child starts in the current directory of this process, not in the keeper's.
TEST(SpawnTest, ChildStartsInCurrentDirectoryAfterItHasChanged) {
  Loop loop;
  const TemporaryDirectory dir;
  const RestoredDirectory restored;
  start(loop, spec_of("cat"));
  std::filesystem::current_path(dir.path());
  const auto facts = read_facts(start(loop, spec_of_fixture("describes_itself")));
  std::filesystem::create_directory("sub");
  auto relative = spec_of_fixture("describes_itself");
  relative.cwd = "sub";
  const auto below = read_facts(start(loop, std::move(relative)));
  EXPECT_EQ(single_value(facts, "cwd"), dir.path());
  EXPECT_EQ(single_value(below, "cwd"), dir.path() + "/sub");
}

// R4.1
TEST(SpawnTest, CommandIsLookedUpInChildsPath) {
  const TemporaryDirectory dir;
  dir.write("fairlead-test-tool", "#!/bin/sh\necho found\n");
  auto spec = spec_of("fairlead-test-tool");
  Loop loop;
  EXPECT_EQ(start_error(loop, spec).detail().os_error, ENOENT);
  spec.env["PATH"] = dir.path() + ":/bin:/usr/bin";
  EXPECT_EQ(start(loop, spec).read_line(), "found");
}

// R4.1: a relative path is resolved like in execve after chdir.
TEST(SpawnTest, RelativePathIsRelativeToChildsDirectory) {
  const TemporaryDirectory dir;
  dir.write("bin/tool", "#!/bin/sh\necho found\n");
  auto spec = spec_of("bin/tool");
  spec.cwd = dir.path();
  Loop loop;
  EXPECT_EQ(start(loop, spec).read_line(), "found");
}

// R4.1: the arguments are larger than one packet to the keeper.
TEST(SpawnTest, MegabyteOfArgumentsIsPassed) {
  std::vector<std::string> args(10, std::string(100'000, 'x'));
  args.push_back("last");
  Loop loop;
  const RunningChild running =
      start(loop, spec_of("sh", {"-c", "shift 9; echo ${#1} $2", "sh", args[0], args[1], args[2], args[3],
                                 args[4], args[5], args[6], args[7], args[8], args[9], args[10]}));
  EXPECT_EQ(running.read_line(), "100000 last");
}

TEST(SpawnTest, TooManyArgumentsFailWithArgumentsTooLong) {
  Loop loop;
  const Error error =
      start_error(loop, spec_of("cat", std::vector<std::string>(40, std::string(120'000, 'x'))));
  EXPECT_EQ(error.detail().os_error, E2BIG);
  EXPECT_EQ(error.message(), "the arguments and environment of `cat` are too long");
}

// R4.2
TEST(SpawnTest, OnlyStdinStdoutAndStderrAreOpenInTheChild) {
  const UniqueFd leaky(::open("/etc/passwd", O_RDONLY));  // not close-on-exec, as another library might do
  const auto facts = run_and_read_facts(spec_of_fixture("describes_itself"));
  EXPECT_EQ(values_of(facts, "fd"), (std::vector<std::string>{"0", "1", "2"}));
}

// R4.2
TEST(SpawnTest, BlockedAndIgnoredSignalsAreNotInherited) {
  sigset_t all_signals;
  sigset_t before;
  sigfillset(&all_signals);
  sigprocmask(SIG_SETMASK, &all_signals, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  const auto usr_before = std::signal(SIGUSR1, SIG_IGN);
  const auto facts = run_and_read_facts(spec_of_fixture("describes_itself"));
  std::signal(SIGPIPE, pipe_before);
  std::signal(SIGUSR1, usr_before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(single_value(facts, "SigBlk:"), "0000000000000000");
  EXPECT_EQ(single_value(facts, "SigIgn:"), "0000000000000000");
}

// R4.2
TEST(SpawnTest, ChildLeadsItsOwnSessionAndGroup) {
  const auto facts = run_and_read_facts(spec_of_fixture("describes_itself"));
  EXPECT_EQ(single_value(facts, "session"), single_value(facts, "pid"));
  EXPECT_EQ(single_value(facts, "group"), single_value(facts, "pid"));
}

// R4.2: a sibling with an end of the pipe would prevent EOF.
TEST(SpawnTest, NoChildInheritsPipesOfAnother) {
  Loop loop;
  const RunningChild a = start(loop, spec_of("cat"));
  const RunningChild b = start(loop, spec_of("cat"));
  const RunningChild c = start(loop, spec_of("cat"));
  std::map<std::string, int> holders;
  for (const RunningChild* running : {&a, &b, &c}) {
    running->write("loaded?\n");
    EXPECT_EQ(running->read_line(), "loaded?");
    const auto descriptors = descriptors_of(running->child->pid());
    EXPECT_EQ(descriptors.size(), 3u);
    for (const auto& [fd, target] : descriptors) ++holders[target];
  }
  EXPECT_EQ(holders.size(), 9u);
  const pid_t keeper = parent_of(a.child->pid());
  for (const auto& [fd, target] : descriptors_of(keeper)) EXPECT_FALSE(holders.contains(target)) << target;
}

// R4.2: processes that other code in this process starts inherit no descriptor of the library.
TEST(SpawnTest, EveryDescriptorIsCloseOnExec) {
  Loop loop;
  const Timer reactor(loop);
  const auto before = descriptors_of(::getpid());
  const RunningChild running = start(loop, spec_of("cat"));
  int opened = 0;
  for (const auto& [fd, target] : descriptors_of(::getpid())) {
    if (before.contains(fd)) continue;
    ++opened;
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd << " -> " << target;
  }
  EXPECT_EQ(opened, 5);  // three pipes, the keeper's socket and its pidfd
}

int spawn_without_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  Loop loop;
  const Timer reactor(loop);
  const auto before = descriptors_of(::getpid());
  const RunningChild running = start(loop, spec_of("cat"));
  for (const auto& [fd, target] : descriptors_of(::getpid())) {
    if (fd < 3 && !before.contains(fd)) return 1;
  }
  return running.child->is_running() ? 0 : 2;
}

// R4.2
TEST(SpawnTest, NoDescriptorGetsNumberOfClosedStandardStream) {
  EXPECT_EQ(in_fork(spawn_without_standard_streams), 0);
}

// R4.2: the keeper has no inherited descriptors either.
TEST(SpawnTest, KeeperHasItsSocketAndNoInheritedDescriptor) {
  const UniqueFd leaky(::open("/etc/passwd", O_RDONLY));
  Loop loop;
  const RunningChild running = start(loop, spec_of("cat"));
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
TEST(SpawnTest, CommandMissingInPathIsNotFound) {
  Loop loop;
  auto spec = spec_of("fairlead-no-such-command");
  spec.env["PATH"] = "/bin:/sbin";
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(), "command not found: fairlead-no-such-command (looked in PATH=/bin:/sbin)");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

// R4.5
TEST(SpawnTest, MissingPathIsNotFound) {
  Loop loop;
  const Error error = start_error(loop, spec_of("/no/such/command"));
  EXPECT_EQ(error.message(), "command not found: /no/such/command");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

// R4.5
TEST(SpawnTest, FileWithoutExecuteBitIsNotExecutable) {
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
TEST(SpawnTest, FileThatIsNotAProgramIsNotExecutable) {
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
TEST(SpawnTest, MissingDirectoryFailsWithBadCwd) {
  Loop loop;
  auto spec = spec_of("cat");
  spec.cwd = "/no/such/directory";
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(), "bad working directory: /no/such/directory: No such file or directory");
  EXPECT_EQ(error.detail().os_error, ENOENT);
}

// TemporaryLimit: lowers a soft limit of this process; the destructor restores it.
class TemporaryLimit {
 public:
  TemporaryLimit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
    ::getrlimit(resource, &before_);
    const rlimit low{value, before_.rlim_max};
    ::setrlimit(resource, &low);
  }
  ~TemporaryLimit() { ::setrlimit(resource_, &before_); }

 private:
  __rlimit_resource_t resource_;
  rlimit before_;
};

// R4.5
TEST(SpawnTest, SpawnFailsWithOutOfDescriptorsUntilDescriptorsAreAvailable) {
  Loop loop;
  start(loop, spec_of("cat"));
  const std::size_t before = own_descriptor_count();
  {
    const TemporaryLimit limit(RLIMIT_NOFILE, 4);
    const Error error = start_error(loop, spec_of("/bin/cat"));
    EXPECT_EQ(error.kind(), ErrorKind::spawn);
    EXPECT_EQ(error.message(),
              "out of descriptors: cannot start `/bin/cat`, cannot create a pipe: Too many open files");
    EXPECT_EQ(error.detail().os_error, EMFILE);
  }
  EXPECT_EQ(own_descriptor_count(), before);
  const RunningChild running = start(loop, spec_of("/bin/cat"));
  EXPECT_TRUE(running.child->is_running());
}

// R4.5
TEST(SpawnTest, SpawnFailsWithOutOfDescriptorsIfKeeperCannotStart) {
  Loop loop;
  const Timer reactor(loop);  // opens the descriptors of the event loop
  const auto free_fd = static_cast<rlim_t>(UniqueFd(::dup(0)).get());
  {
    // The limit suffices for the child's pipes but not for the keeper's socket pair.
    const TemporaryLimit limit(RLIMIT_NOFILE, free_fd + 7);
    const Error error = start_error(loop, spec_of("/bin/cat"));
    EXPECT_TRUE(error.message().starts_with("out of descriptors: cannot start `fairlead-keeper`"))
        << error.message();
  }
  EXPECT_TRUE(start(loop, spec_of("/bin/cat")).child->is_running());
}

// Runs as user nobody in a directory that only root may enter.
TEST(SpawnTest, InaccessibleDirectoryIsAcceptedIfItIsCurrent) {
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
    return !refused && refused.error().detail().failure_code == failure::bad_cwd ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

// R4.5: RLIMIT_NPROC counts the processes of a user and does not apply to root, so this runs as nobody.
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

TEST(SpawnTest, SpawnFailsWithOutOfProcessesAtProcessLimit) {
  EXPECT_EQ(in_fork(spawn_as_nobody_without_processes), 0);
}

// R4.5: spawn() returns only after exec has succeeded or failed.
TEST(SpawnTest, HundredFailedSpawnsLeaveNoProcessOrDescriptor) {
  Loop loop;
  const RunningChild first = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(first.child->pid());
  const std::size_t before = own_descriptor_count();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(start_error(loop, spec_of("/no/such")).detail().os_error, ENOENT);
  EXPECT_EQ(own_descriptor_count(), before);
  EXPECT_TRUE(wait_until_only_child(keeper, first.child->pid()));
}

// A gateway whose server is the same gateway would start processes until the limit of processes is reached.
TEST(SpawnTest, SpawnFailsInMaxNestingNestedGateways) {
  Loop loop;
  {
    const TemporaryVariable above("FAIRLEAD_CHILD", "11.1/12.2/13.3");
    EXPECT_TRUE(start(loop, spec_of("cat")).child->is_running());
  }
  const TemporaryVariable above("FAIRLEAD_CHILD", "11.1/12.2/13.3/14.4");
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.detail().failure_code, failure::nested_too_deep);
  EXPECT_EQ(error.message(), "cannot start `cat`: this process runs below 4 nested gateways (max_nesting 4)");
}

// R11.3: FAIRLEAD_KEEPER replaces the embedded keeper.
TEST(SpawnTest, ErrorNamesKeeperThatCannotBeRun) {
  const TemporaryVariable path("FAIRLEAD_KEEPER", "/no/such/keeper");
  Loop loop;
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.kind(), ErrorKind::spawn);
  EXPECT_EQ(error.message(),
            "cannot start `fairlead-keeper`, FAIRLEAD_KEEPER=/no/such/keeper: No such file or directory");
  EXPECT_EQ(error.detail().failure_code, failure::keeper_failed);
  EXPECT_EQ(error.detail().remedy, remedy_for(failure::keeper_failed));
}

TEST(SpawnTest, SpawnFailsIfKeeperPathNamesAnotherProgram) {
  const TemporaryVariable path("FAIRLEAD_KEEPER", "/bin/true");
  Loop loop;
  const Error error = start_error(loop, spec_of("cat"));
  EXPECT_EQ(error.message(), "cannot start `cat`: /bin/true is not a fairlead-keeper (FAIRLEAD_KEEPER)");
  EXPECT_EQ(error.detail().failure_code, failure::keeper_failed);
}

}  // namespace
}  // namespace fairlead::test
