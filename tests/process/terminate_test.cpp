// Tests that terminate_manifest() ends the processes of a manifest and no others.
#include "fairlead/process/terminate.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "process/cgroup_parent.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/manifest_entry.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

// KillableGateway: a gateway with children, in a forked process that can be killed.
class KillableGateway {
 public:
  // `body` runs in that process, with a descriptor to write numbers to, until the process is killed.
  explicit KillableGateway(const std::function<void(int)>& body) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.out = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      body(write.get());
      ::_exit(0);
    }
  }
  ~KillableGateway() { kill_alone(); }

  pid_t read_number() const { return reader_.read_number(""); }
  // Kills the gateway and its keepers. All are stopped first, so that none can react to the death of another.
  void kill_with_keeper() {
    const std::vector<ProcessWatch> keepers = stop();
    for (const ProcessWatch& keeper : keepers) ::kill(keeper.pid(), SIGSTOP);
    for (const ProcessWatch& keeper : keepers) ::kill(keeper.pid(), SIGKILL);
    kill_alone();
  }
  // Stops the gateway and returns its keepers.
  std::vector<ProcessWatch> stop() const {
    ::kill(pid_, SIGSTOP);
    std::vector<ProcessWatch> keepers;
    for (const pid_t keeper : children_of(pid_)) keepers.emplace_back(keeper);
    return keepers;
  }
  void kill_alone() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  RunningChild reader_;
};

void write_number(int fd, pid_t number) {
  const std::string line = " " + std::to_string(number) + '\n';
  static_cast<void>(!::write(fd, line.data(), line.size()));
}

class TerminateTest : public ::testing::Test {
 protected:
  ProcessSpec spec(std::string command, std::vector<std::string> args = {}) const {
    ProcessSpec spec = spec_of(std::move(command), std::move(args));
    spec.manifest.path = path_;
    spec.stderr_mode = StderrMode::discard;
    return spec;
  }
  // A spec without a cgroup, because all descendants would be found by the cgroup.
  ProcessSpec spec_without_cgroup(std::string command, std::vector<std::string> args = {}) const {
    ProcessSpec all = spec(std::move(command), std::move(args));
    all.containment.cgroup = Requirement::off;
    return all;
  }
  static TerminateOptions short_grace() {
    TerminateOptions options;
    options.grace = 100ms;
    return options;
  }
  // A process that no gateway has started, and its identity.
  struct UnrelatedProcess {
    UnrelatedProcess() {
      pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
      keeper::read_process_identity(pid, identity);
    }
    ~UnrelatedProcess() {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    bool alive() const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
    pid_t pid;
    keeper::ProcessIdentity identity;
  };
  void append_entry(const keeper::ProcessIdentity& identity, const std::string& cookie = {},
                    const std::string& cgroup = {}) const {
    const std::string fields = process::format_entry_fields({"child", "forged", "", cookie, cgroup});
    ASSERT_EQ(keeper::append_manifest_entry(path_.c_str(), identity, fields.c_str(), true), 0);
  }
  TerminateReport run(const TerminateOptions& options = short_grace()) const {
    const auto report = terminate_manifest(path_, options);
    if (!report) {
      ADD_FAILURE() << report.error().to_string();
      return {};
    }
    return *report;
  }

  TemporaryDirectory dir_;
  const std::string path_ = dir_.path() + "/manifest";
};

// R11.2, R11.3: the gateway and the keeper are killed at the same moment, so strays (descendants that have
// left the session of their child) survive.
TEST_F(TerminateTest, EndsStraysAfterGatewayAndKeeperAreKilled) {
  KillableGateway gateway([&](int report) {
    Loop loop;
    std::vector<RunningChild> children;
    for (const auto* name : {"leaves_grandchild", "escapes_session", "double_forks"}) {
      children.push_back(start(loop, spec_without_cgroup(fixture(name))));
      write_number(report, children.back().read_number("stray"));
    }
    loop.run();
  });
  const ProcessWatch strays[] = {ProcessWatch(gateway.read_number()), ProcessWatch(gateway.read_number()),
                                 ProcessWatch(gateway.read_number())};
  gateway.kill_with_keeper();
  for (const ProcessWatch& stray : strays) EXPECT_TRUE(stray.alive()) << "the test requires live strays";
  const TerminateReport report = run();
  EXPECT_TRUE(report.all_ended());
  EXPECT_GE(report.processes.size(), 3u);
  for (const ProcessWatch& stray : strays) EXPECT_TRUE(stray.ends_within(0ms));
  // The manifest was compacted and has no entries any more.
  EXPECT_EQ(process::parse_manifest(read_file(path_)).entries.size(), 0u) << read_file(path_);
}

// The stray can be found only by its cgroup.
TEST_F(TerminateTest, EndsStrayFoundOnlyByCgroup) {
  const process::CgroupParent parent = process::find_cgroup_parent("");
  if (parent.directory.empty()) GTEST_SKIP() << parent.reason;
  KillableGateway gateway([&](int report) {
    Loop loop;
    const RunningChild child = start(loop, spec(fixture("escapes_session"), {"scrub"}));
    write_number(report, child.read_number("stray"));
    loop.run();
  });
  const ProcessWatch stray(gateway.read_number());
  const std::string cgroup = read_file("/proc/" + std::to_string(stray.pid()) + "/cgroup");
  const std::size_t name = cgroup.rfind("/fairlead-");
  ASSERT_NE(name, std::string::npos) << cgroup;
  const std::string directory = parent.directory + cgroup.substr(name, cgroup.find('\n', name) - name);
  ASSERT_TRUE(std::filesystem::exists(directory));
  gateway.kill_with_keeper();
  EXPECT_TRUE(stray.alive());
  EXPECT_TRUE(run().all_ended());
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

// R11.2
TEST_F(TerminateTest, SendsSigtermThenSigkill) {
  Loop loop;
  const RunningChild obeys_sigterm = start(loop, spec_without_cgroup("cat"));
  const RunningChild ignores_signals = start(loop, spec_without_cgroup(fixture("ignores_eof_and_term")));
  ignores_signals.read_number("ready");
  const TerminateReport report = run();
  const auto result = [&](pid_t pid) {
    const auto found = std::ranges::find(report.processes, pid, &TerminatedProcess::pid);
    return found == report.processes.end() ? TerminationResult::would_end : found->result;
  };
  EXPECT_EQ(result(obeys_sigterm.child->pid()), TerminationResult::ended);
  EXPECT_EQ(result(ignores_signals.child->pid()), TerminationResult::killed);
  EXPECT_EQ(report.processes.size(), 3u) << "the keeper too";
  EXPECT_EQ(wait_for(loop, *obeys_sigterm.child).signal, SIGTERM);
}

// R11.2: the pid of the entry belongs to another process.
TEST_F(TerminateTest, ProcessWithAnotherIdentityIsNotSignalled) {
  const UnrelatedProcess bystander;
  keeper::ProcessIdentity forged = bystander.identity;
  forged.start -= 1;
  append_entry(forged);
  keeper::ProcessIdentity same_tick = bystander.identity;
  same_tick.inode += 1;
  if (bystander.identity.inode != 0) append_entry(same_tick);
  const TerminateReport report = run();
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.recycled_count, bystander.identity.inode != 0 ? 2u : 1u);
  EXPECT_TRUE(bystander.alive());
  append_entry(bystander.identity);
  EXPECT_EQ(run().processes.size(), 1u);
  EXPECT_FALSE(bystander.alive()) << "the correct entry identifies it";
}

// R11.2: like the test above, but with a pid that the kernel has really reused. In a pid namespace of its own
// the test can choose the next pid. Returns 77 if no namespace can be created.
int terminate_recycled_pid_in_namespace(const std::string& path) {
  // This is the first process of the namespace.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return 77;
  if (::mount("proc", "/proc", "proc", 0, nullptr) < 0) return 77;
  pid_t recorded = 0;
  {
    Loop loop;
    ProcessSpec spec = spec_of("cat");
    spec.manifest.path = path;
    recorded = start(loop, std::move(spec)).child->pid();
  }
  std::ofstream("/proc/sys/kernel/ns_last_pid") << recorded - 1 << std::flush;
  const pid_t other = ::fork();
  if (other == 0) {
    for (;;) ::pause();
  }
  if (other != recorded) return 77;
  TerminateOptions options;
  options.grace = 50ms;
  const auto report = terminate_manifest(path, options);
  if (!report) return 2;
  if (!report->processes.empty() || report->recycled_count != 1) return 3;
  return ::waitpid(other, nullptr, WNOHANG) == 0 ? 0 : 4;
}

TEST_F(TerminateTest, ProcessWithRecycledPidIsNotSignalled) {
  const int status = in_fork([&] {
    const int space = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(space | CLONE_NEWPID | CLONE_NEWNS) < 0) return 77;
    return in_fork([&] { return terminate_recycled_pid_in_namespace(path_); });
  });
  if (status == 77) GTEST_SKIP() << "no pid namespace is available";
  EXPECT_EQ(status, 0);
}

// Uses a dry run, because without it a bug would end processes of other programs.
TEST_F(TerminateTest, ForeignCgroupIsReportedAndNotUsed) {
  const UnrelatedProcess bystander;
  keeper::ProcessIdentity ended = bystander.identity;
  ended.start -= 1;
  const std::string own = read_file("/proc/self/cgroup");
  const std::size_t v2 = own.starts_with("0::") ? 3 : own.find("\n0::") + 4;
  const std::string here = own.substr(v2, own.find('\n', v2) - v2);
  const std::vector<std::string> foreign = {"/",
                                            "/sys/fs/cgroup/" + here,
                                            "/sys/fs/cgroup/../fairlead-9-77",
                                            "fairlead-9-77",
                                            "/sys/fs/cgroup/fairlead-9-78",
                                            "/sys/fs/cgroup/fairlead-9-77/"};
  for (const std::string& cgroup : foreign) append_entry(ended, "9.77", cgroup);
  TerminateOptions options = short_grace();
  options.dry_run = true;
  const TerminateReport report = run(options);
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.foreign_cgroups, foreign);
  EXPECT_TRUE(bystander.alive());
}

// The directories have the name of a gateway's cgroup, but are not in a cgroup file system, or are reached
// through a symbolic link.
TEST_F(TerminateTest, DirectoryThatIsNotACgroupIsNeitherWrittenNorRemoved) {
  const UnrelatedProcess bystander;
  const std::string directory = dir_.path() + "/fairlead-9-77";
  dir_.write("fairlead-9-77/cgroup.kill", "", 0600);
  dir_.write("other/fairlead-9-78/cgroup.kill", "", 0600);
  std::filesystem::create_symlink(dir_.path() + "/other", dir_.path() + "/link");
  std::filesystem::create_directory(dir_.path() + "/fairlead-9-79");
  append_entry(bystander.identity, "9.77", directory);
  append_entry(bystander.identity, "9.78", dir_.path() + "/link/fairlead-9-78");
  keeper::ProcessIdentity ended = bystander.identity;
  ended.start -= 1;
  append_entry(ended, "9.79", dir_.path() + "/fairlead-9-79");
  EXPECT_EQ(run().processes.size(), 1u);
  EXPECT_EQ(read_file(directory + "/cgroup.kill"), "");
  EXPECT_EQ(read_file(dir_.path() + "/other/fairlead-9-78/cgroup.kill"), "");
  EXPECT_TRUE(std::filesystem::exists(dir_.path() + "/fairlead-9-79"));
}

// R11.2
TEST_F(TerminateTest, InvalidAndForeignLinesAreIgnored) {
  const UnrelatedProcess bystander;
  append_entry(bystander.identity);
  std::string text = read_file(path_);
  const std::string boot = process::SystemIdentity::current().boot_id;
  text.replace(text.find(boot), boot.size(), "another-boot");
  text += "kill " + std::to_string(bystander.pid) + "\n";
  text += "not json\n{\"pid\":1,\"start\":1,\"boot\":\"" + boot +
          "\"}\n{\"pid\":" + std::to_string(bystander.pid) + "}\n";
  text += "{\"pid\":-1,\"start\":5,\"boot\":\"" + boot + "\"}\n{\"pid\":" + std::to_string(bystander.pid) +
          ",\"sta";
  dir_.write("manifest", text, 0600);
  const TerminateReport report = run();
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.other_system_count, 1u);
  EXPECT_EQ(report.unreadable_line_count, 5u);
  EXPECT_TRUE(bystander.alive());
}

// R11.2
TEST_F(TerminateTest, FileThatIsNotAManifestIsRejected) {
  dir_.write("manifest", "kill 1\n", 0600);
  EXPECT_EQ(terminate_manifest(path_, short_grace()).error().kind(), ErrorKind::validation);
  EXPECT_EQ(read_file(path_), "kill 1\n");
  dir_.write("manifest", keeper::kManifestHeader, 0666);
  EXPECT_EQ(terminate_manifest(path_, short_grace()).error().message(),
            path_ + " can be written by others (chmod 600)");
  EXPECT_EQ(terminate_manifest(dir_.path() + "/none", short_grace()).error().kind(), ErrorKind::io);
  EXPECT_EQ(terminate_manifest(dir_.path(), short_grace()).error().kind(), ErrorKind::validation);
}

TEST_F(TerminateTest, FileOfAnotherUserIsRejected) {
  dir_.write("manifest", keeper::kManifestHeader, 0644);
  if (::chown(path_.c_str(), 65534, 65534) < 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(terminate_manifest(path_, short_grace()).error().message(), path_ + " belongs to another user");
}

// R11.2
TEST_F(TerminateTest, DryRunSignalsNoProcess) {
  Loop loop;
  const RunningChild running = start(loop, spec_without_cgroup(fixture("leaves_grandchild")));
  const ProcessWatch stray(running.read_number("stray"));
  const std::string before = read_file(path_);
  TerminateOptions options;
  options.dry_run = true;
  const TerminateReport report = run(options);
  EXPECT_EQ(report.processes.size(), 3u);
  for (const TerminatedProcess& process : report.processes)
    EXPECT_EQ(process.result, TerminationResult::would_end);
  EXPECT_TRUE(running.child->is_running());
  EXPECT_TRUE(stray.alive());
  EXPECT_EQ(read_file(path_), before);
}

// R11.2
TEST_F(TerminateTest, ConcurrentRunsDoNotInterfere) {
  KillableGateway gateway([&](int report) {
    Loop loop;
    std::vector<RunningChild> children;
    for (int i = 0; i < 10; ++i) {
      children.push_back(start(loop, spec_without_cgroup(fixture("leaves_grandchild"))));
      write_number(report, children.back().read_number("stray"));
    }
    loop.run();
  });
  std::vector<ProcessWatch> strays;
  for (int i = 0; i < 10; ++i) strays.emplace_back(gateway.read_number());
  gateway.kill_with_keeper();
  std::vector<pid_t> terminators;
  for (int i = 0; i < 2; ++i) {
    terminators.push_back(::fork());
    if (terminators.back() == 0) {
      const auto report = terminate_manifest(path_, short_grace());
      ::_exit(report && report->all_ended() ? 0 : 1);
    }
  }
  for (const pid_t terminator : terminators) {
    int status = 0;
    ::waitpid(terminator, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const ProcessWatch& stray : strays) EXPECT_TRUE(stray.ends_within(0ms));
}

// R11.2
TEST_F(TerminateTest, WaitForProcessBlocksUntilItEnds) {
  const UnrelatedProcess watched;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  RunningChild reader;
  reader.out = UniqueFd(ends[0]);
  const UniqueFd write(ends[1]);
  const pid_t waiting = ::fork();
  if (waiting == 0) {
    write_number(write.get(), 1);
    ::_exit(wait_for_process(watched.pid) ? 0 : 1);
  }
  EXPECT_EQ(reader.read_number(""), 1);
  int status = 0;
  EXPECT_EQ(::waitpid(waiting, &status, WNOHANG), 0);
  ::kill(watched.pid, SIGKILL);
  ::waitpid(waiting, &status, 0);
  EXPECT_EQ(status, 0);
}

// R11.2: the process to wait for existed before this one, so a younger process has reused its pid.
TEST_F(TerminateTest, WaitForProcessReturnsIfProcessIsYounger) {
  const int status = in_fork([] {
    keeper::ProcessIdentity self;
    keeper::read_process_identity(::getpid(), self);
    for (;;) {
      const UnrelatedProcess other;
      if (other.identity.start == self.start) continue;
      return wait_for_process(other.pid) && other.alive() ? 0 : 1;
    }
  });
  EXPECT_EQ(status, 0);
}

// Returns all processes of the system with this environment variable.
std::vector<pid_t> processes_with(const std::string& mark) {
  std::vector<pid_t> found;
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = proc ? ::readdir(proc) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == ::getpid()) continue;
    const std::string environment = '\0' + read_file("/proc/" + std::to_string(pid) + "/environ");
    if (environment.contains('\0' + mark + '\0')) found.push_back(pid);
  }
  if (proc) ::closedir(proc);
  return found;
}

Task<void> start_and_stop(Loop& loop, std::function<ProcessSpec(int)> spec, bool& done) {
  std::vector<std::shared_ptr<Child>> running;
  for (int i = 0; i < 8; ++i) {
    const Result<std::shared_ptr<Child>> child = co_await Child::spawn(loop, spec(i));
    if (child) running.push_back(*child);
    if (running.size() < 4) continue;
    if (i % 2 == 0) running.front()->kill();
    running.erase(running.begin());
  }
  done = true;
}

// Starts and stops children, and pauses forever when the loop has run `steps` callbacks. Then writes 1, or 2
// if all children had been started and stopped before.
void pause_after(int steps, const std::function<ProcessSpec(int)>& spec, int report) {
  Loop loop;
  bool done = false;
  int callbacks = 0;
  loop.spawn(start_and_stop(loop, spec, done));
  loop.run_until([&] { return done || callbacks++ == steps; });
  write_number(report, done ? 2 : 1);
  for (;;) ::pause();
}

// R11.3: the gateway is killed after every number of loop callbacks during starting and stopping, every other
// time together with the keeper. How far the keeper is at that moment depends on the scheduler.
TEST_F(TerminateTest, NoProcessIsLeftWhenGatewayIsKilledAtAnyStep) {
  const std::string mark = "TEST_TERMINATE_MARK=" + path_;
  const char* const fixtures[] = {"leaves_grandchild", "ignores_eof_and_term", "escapes_session",
                                  "double_forks"};
  const auto specs = [&](int i) {
    ProcessSpec marked =
        i % 3 == 0 ? spec(fixture(fixtures[i % 4])) : spec_without_cgroup(fixture(fixtures[i % 4]));
    marked.env["TEST_TERMINATE_MARK"] = path_;
    return marked;
  };
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    KillableGateway gateway([&](int report) { pause_after(steps, specs, report); });
    done = gateway.read_number() == 2;
    const std::vector<ProcessWatch> keepers = gateway.stop();
    const bool with_keeper = steps % 2 == 1;
    with_keeper ? gateway.kill_with_keeper() : gateway.kill_alone();
    for (const ProcessWatch& keeper : keepers) EXPECT_TRUE(keeper.ends_within(kTimeout));
    if (with_keeper && std::filesystem::exists(path_)) {
      const TerminateReport report = run();
      for (const TerminatedProcess& process : report.processes) {
        EXPECT_TRUE(process.result == TerminationResult::ended || process.result == TerminationResult::killed)
            << process.pid << ' ' << process.name << ' ' << process.matched_by << ' '
            << to_string(process.result);
      }
    }
    ASSERT_EQ(processes_with(mark), std::vector<pid_t>{}) << "step " << steps;
  }
  std::cout << "killed at " << steps << " steps\n";
  EXPECT_GE(steps, 8) << "each start is at least one step";
}

}  // namespace
}  // namespace fairlead::test
