// What a manifest names is ended when nobody else can do it, and nothing but that.
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

#include "process/cgroup_home.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/manifest_entry.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

// A gateway with children, in a process of its own that can be killed.
class Victim {
 public:
  // `body` runs in it, with a descriptor to say things on; it is stopped by being killed.
  explicit Victim(const std::function<void(int)>& body) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    said_.out = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      body(write.get());
      ::_exit(0);
    }
  }
  ~Victim() { kill_alone(); }

  pid_t number() const { return said_.number(""); }
  // The library and the keeper can do nothing: neither of the two sees the other die.
  void kill_with_keeper() {
    const std::vector<Watched> keepers = stop();
    for (const Watched& keeper : keepers) ::kill(keeper.pid(), SIGSTOP);
    for (const Watched& keeper : keepers) ::kill(keeper.pid(), SIGKILL);
    kill_alone();
  }
  // Returns its keepers.
  std::vector<Watched> stop() const {
    ::kill(pid_, SIGSTOP);
    std::vector<Watched> keepers;
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
  Running said_;
};

void say(int fd, pid_t number) {
  const std::string line = " " + std::to_string(number) + '\n';
  static_cast<void>(!::write(fd, line.data(), line.size()));
}

class Terminate : public ::testing::Test {
 protected:
  ProcessSpec spec(std::string command, std::vector<std::string> args = {}) const {
    ProcessSpec spec = spec_of(std::move(command), std::move(args));
    spec.manifest.path = path_;
    spec.stderr_mode = StderrMode::discard;
    return spec;
  }
  // Without a cgroup, which would make it easy.
  ProcessSpec bare(std::string command, std::vector<std::string> args = {}) const {
    ProcessSpec all = spec(std::move(command), std::move(args));
    all.containment.cgroup = Requirement::off;
    return all;
  }
  static TerminateOptions quick() {
    TerminateOptions options;
    options.grace = 100ms;
    return options;
  }
  // A process of nobody's, and its line as a manifest would have it.
  struct Bystander {
    Bystander() {
      pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
      keeper::identify(pid, identity);
    }
    ~Bystander() {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    bool alive() const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
    pid_t pid;
    keeper::Identity identity;
  };
  void enter(const keeper::Identity& who, const std::string& cookie = {},
             const std::string& cgroup = {}) const {
    const std::string facts = process::manifest_facts({"child", "forged", "", cookie, cgroup});
    ASSERT_EQ(keeper::append_manifest(path_.c_str(), who, facts.c_str(), true), 0);
  }
  TerminateReport run(const TerminateOptions& options = quick()) const {
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

// R11.2, R11.3: we and the keeper killed at the same moment; what the children had started lives on
TEST_F(Terminate, EndsWhatIsLeftWhenWeAndTheKeeperAreKilledAtOnce) {
  Victim gateway([&](int report) {
    Loop loop;
    std::vector<Running> children;
    for (const auto* name : {"leaves_grandchild", "escapes_session", "double_forks"}) {
      children.push_back(start(loop, bare(fixture(name))));
      say(report, children.back().number("stray"));
    }
    loop.run();
  });
  const Watched strays[] = {Watched(gateway.number()), Watched(gateway.number()), Watched(gateway.number())};
  gateway.kill_with_keeper();
  for (const Watched& stray : strays) EXPECT_TRUE(stray.alive()) << "then this test tests nothing";
  const TerminateReport report = run();
  EXPECT_TRUE(report.all_gone());
  EXPECT_GE(report.processes.size(), 3u);
  for (const Watched& stray : strays) EXPECT_TRUE(stray.ends_within(0ms));
  // Nothing is left to be named.
  EXPECT_EQ(process::parse_manifest(read_file(path_)).entries.size(), 0u) << read_file(path_);
}

// With a cgroup also what hides from all else
TEST_F(Terminate, EndsWhatHidesInItsCgroup) {
  const process::CgroupHome home = process::find_cgroup_home("");
  if (home.directory.empty()) GTEST_SKIP() << home.why_not;
  Victim gateway([&](int report) {
    Loop loop;
    const Running child = start(loop, spec(fixture("escapes_session"), {"scrub"}));
    say(report, child.number("stray"));
    loop.run();
  });
  const Watched stray(gateway.number());
  const std::string seen = read_file("/proc/" + std::to_string(stray.pid()) + "/cgroup");
  const std::size_t name = seen.rfind("/fairlead-");
  ASSERT_NE(name, std::string::npos) << seen;
  const std::string directory = home.directory + seen.substr(name, seen.find('\n', name) - name);
  ASSERT_TRUE(std::filesystem::exists(directory));
  gateway.kill_with_keeper();
  EXPECT_TRUE(stray.alive());
  EXPECT_TRUE(run().all_gone());
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

// R11.2
TEST_F(Terminate, AsksFirstAndInsistsThen) {
  Loop loop;
  const Running polite = start(loop, bare("cat"));
  const Running deaf = start(loop, bare(fixture("ignores_eof_and_term")));
  deaf.number("ready");
  const TerminateReport report = run();
  const auto ending = [&](pid_t pid) {
    const auto found = std::ranges::find(report.processes, pid, &TerminatedProcess::pid);
    return found == report.processes.end() ? Ending::would_end : found->ending;
  };
  EXPECT_EQ(ending(polite.child->pid()), Ending::ended);
  EXPECT_EQ(ending(deaf.child->pid()), Ending::killed);
  EXPECT_EQ(report.processes.size(), 3u) << "the keeper too";
  EXPECT_EQ(wait_for(loop, *polite.child).signal, SIGTERM);
}

// R11.2: a number that is another process's now
TEST_F(Terminate, ARecycledNumberIsNotTouched) {
  const Bystander bystander;
  keeper::Identity forged = bystander.identity;
  forged.start -= 1;
  enter(forged);
  keeper::Identity same_tick = bystander.identity;
  same_tick.inode += 1;
  if (bystander.identity.inode != 0) enter(same_tick);
  const TerminateReport report = run();
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.recycled, bystander.identity.inode != 0 ? 2u : 1u);
  EXPECT_TRUE(bystander.alive());
  enter(bystander.identity);
  EXPECT_EQ(run().processes.size(), 1u);
  EXPECT_FALSE(bystander.alive()) << "the true line does name it";
}

// R11.2: the same with a number that really was given out again, in a namespace where that can be had
int recycle_in_namespace(const std::string& path) {
  // The first process of the namespace.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return 77;
  if (::mount("proc", "/proc", "proc", 0, nullptr) < 0) return 77;
  pid_t named = 0;
  {
    Loop loop;
    ProcessSpec spec = spec_of("cat");
    spec.manifest.path = path;
    named = start(loop, std::move(spec)).child->pid();
  }
  std::ofstream("/proc/sys/kernel/ns_last_pid") << named - 1 << std::flush;
  const pid_t other = ::fork();
  if (other == 0) {
    for (;;) ::pause();
  }
  if (other != named) return 77;
  TerminateOptions options;
  options.grace = 50ms;
  const auto report = terminate_manifest(path, options);
  if (!report) return 2;
  if (!report->processes.empty() || report->recycled != 1) return 3;
  return ::waitpid(other, nullptr, WNOHANG) == 0 ? 0 : 4;
}

TEST_F(Terminate, ANumberThatWasGivenOutAgainIsNotTouched) {
  const int status = in_fork([&] {
    const int space = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(space | CLONE_NEWPID | CLONE_NEWNS) < 0) return 77;
    return in_fork([&] { return recycle_in_namespace(path_); });
  });
  if (status == 77) GTEST_SKIP() << "no namespace of pids to be had here";
  EXPECT_EQ(status, 0);
}

// A dry run: if this fails, the processes of others would be ended.
TEST_F(Terminate, ACgroupThatWasNotCreatedForTheEntryIsReportedAndNotFollowed) {
  const Bystander bystander;
  keeper::Identity gone = bystander.identity;
  gone.start -= 1;
  const std::string own = read_file("/proc/self/cgroup");
  const std::size_t v2 = own.starts_with("0::") ? 3 : own.find("\n0::") + 4;
  const std::string here = own.substr(v2, own.find('\n', v2) - v2);
  const std::vector<std::string> foreign = {"/",
                                            "/sys/fs/cgroup/" + here,
                                            "/sys/fs/cgroup/../fairlead-9-77",
                                            "fairlead-9-77",
                                            "/sys/fs/cgroup/fairlead-9-78",
                                            "/sys/fs/cgroup/fairlead-9-77/"};
  for (const std::string& cgroup : foreign) enter(gone, "9.77", cgroup);
  TerminateOptions options = quick();
  options.dry_run = true;
  const TerminateReport report = run(options);
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.foreign_cgroups, foreign);
  EXPECT_TRUE(bystander.alive());
}

// Named as a cgroup of ours, but not in a cgroup file system, or reached through a symbolic link.
TEST_F(Terminate, ADirectoryThatIsNoCgroupIsNeitherWrittenNorRemoved) {
  const Bystander bystander;
  const std::string directory = dir_.path() + "/fairlead-9-77";
  dir_.write("fairlead-9-77/cgroup.kill", "", 0600);
  dir_.write("other/fairlead-9-78/cgroup.kill", "", 0600);
  std::filesystem::create_symlink(dir_.path() + "/other", dir_.path() + "/link");
  std::filesystem::create_directory(dir_.path() + "/fairlead-9-79");
  enter(bystander.identity, "9.77", directory);
  enter(bystander.identity, "9.78", dir_.path() + "/link/fairlead-9-78");
  keeper::Identity gone = bystander.identity;
  gone.start -= 1;
  enter(gone, "9.79", dir_.path() + "/fairlead-9-79");
  EXPECT_EQ(run().processes.size(), 1u);
  EXPECT_EQ(read_file(directory + "/cgroup.kill"), "");
  EXPECT_EQ(read_file(dir_.path() + "/other/fairlead-9-78/cgroup.kill"), "");
  EXPECT_TRUE(std::filesystem::exists(dir_.path() + "/fairlead-9-79"));
}

// R11.2
TEST_F(Terminate, LinesThatNameNobodyDoNoHarm) {
  const Bystander bystander;
  enter(bystander.identity);
  std::string text = read_file(path_);
  const std::string boot = process::SystemIdentity::here().boot;
  text.replace(text.find(boot), boot.size(), "another-boot");
  text += "kill " + std::to_string(bystander.pid) + "\n";
  text += "not json\n{\"pid\":1,\"start\":1,\"boot\":\"" + boot +
          "\"}\n{\"pid\":" + std::to_string(bystander.pid) + "}\n";
  text += "{\"pid\":-1,\"start\":5,\"boot\":\"" + boot + "\"}\n{\"pid\":" + std::to_string(bystander.pid) +
          ",\"sta";
  dir_.write("manifest", text, 0600);
  const TerminateReport report = run();
  EXPECT_EQ(report.processes.size(), 0u);
  EXPECT_EQ(report.other_system, 1u);
  EXPECT_EQ(report.unreadable, 5u);
  EXPECT_TRUE(bystander.alive());
}

// R11.2
TEST_F(Terminate, AFileThatIsNoManifestOfOursIsRefused) {
  dir_.write("manifest", "kill 1\n", 0600);
  EXPECT_EQ(terminate_manifest(path_, quick()).error().kind(), ErrorKind::validation);
  EXPECT_EQ(read_file(path_), "kill 1\n");
  dir_.write("manifest", keeper::kManifestHeader, 0666);
  EXPECT_EQ(terminate_manifest(path_, quick()).error().message(),
            path_ + " can be written by others (chmod 600)");
  EXPECT_EQ(terminate_manifest(dir_.path() + "/none", quick()).error().kind(), ErrorKind::io);
  EXPECT_EQ(terminate_manifest(dir_.path(), quick()).error().kind(), ErrorKind::validation);
}

TEST_F(Terminate, AFileOfAnotherUserIsRefused) {
  dir_.write("manifest", keeper::kManifestHeader, 0644);
  if (::chown(path_.c_str(), 65534, 65534) < 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(terminate_manifest(path_, quick()).error().message(), path_ + " belongs to another user");
}

// R11.2
TEST_F(Terminate, ADryRunEndsNobody) {
  Loop loop;
  const Running running = start(loop, bare(fixture("leaves_grandchild")));
  const Watched stray(running.number("stray"));
  const std::string before = read_file(path_);
  TerminateOptions options;
  options.dry_run = true;
  const TerminateReport report = run(options);
  EXPECT_EQ(report.processes.size(), 3u);
  for (const TerminatedProcess& one : report.processes) EXPECT_EQ(one.ending, Ending::would_end);
  EXPECT_TRUE(running.child->is_running());
  EXPECT_TRUE(stray.alive());
  EXPECT_EQ(read_file(path_), before);
}

// R11.2
TEST_F(Terminate, TwoAtOnceDoNotDisturbEachOther) {
  Victim gateway([&](int report) {
    Loop loop;
    std::vector<Running> children;
    for (int i = 0; i < 10; ++i) {
      children.push_back(start(loop, bare(fixture("leaves_grandchild"))));
      say(report, children.back().number("stray"));
    }
    loop.run();
  });
  std::vector<Watched> strays;
  for (int i = 0; i < 10; ++i) strays.emplace_back(gateway.number());
  gateway.kill_with_keeper();
  std::vector<pid_t> terminators;
  for (int i = 0; i < 2; ++i) {
    terminators.push_back(::fork());
    if (terminators.back() == 0) {
      const auto report = terminate_manifest(path_, quick());
      ::_exit(report && report->all_gone() ? 0 : 1);
    }
  }
  for (const pid_t terminator : terminators) {
    int status = 0;
    ::waitpid(terminator, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const Watched& stray : strays) EXPECT_TRUE(stray.ends_within(0ms));
}

// R11.2
TEST_F(Terminate, WatchingWaitsForTheEnd) {
  const Bystander watched;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Running told;
  told.out = UniqueFd(ends[0]);
  const UniqueFd write(ends[1]);
  const pid_t waiting = ::fork();
  if (waiting == 0) {
    say(write.get(), 1);
    ::_exit(wait_for_process(watched.pid) ? 0 : 1);
  }
  EXPECT_EQ(told.number(""), 1);
  int status = 0;
  EXPECT_EQ(::waitpid(waiting, &status, WNOHANG), 0);
  ::kill(watched.pid, SIGKILL);
  ::waitpid(waiting, &status, 0);
  EXPECT_EQ(status, 0);
}

// R11.2: whoever was meant had been there before us, so its number is another's now
TEST_F(Terminate, OneThatIsYoungerThanWeAreIsNotWaitedFor) {
  const int status = in_fork([] {
    keeper::Identity self;
    keeper::identify(::getpid(), self);
    for (;;) {
      const Bystander other;
      if (other.identity.start == self.start) continue;
      return wait_for_process(other.pid) && other.alive() ? 0 : 1;
    }
  });
  EXPECT_EQ(status, 0);
}

// Processes with this variable, wherever they are.
std::vector<pid_t> marked(const std::string& mark) {
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
    Task<Result<std::shared_ptr<Child>>> spawning = Child::spawn(loop, spec(i));
    const Result<std::shared_ptr<Child>> child = co_await spawning;
    if (child) running.push_back(*child);
    if (running.size() < 4) continue;
    if (i % 2 == 0) running.front()->kill();
    running.erase(running.begin());
  }
  done = true;
}

// Starts and stops children and stands still, for ever, when the loop has run `steps` callbacks. Says 1 then,
// or 2 if all was done before.
void stand_still_after(int steps, const std::function<ProcessSpec(int)>& spec, int report) {
  Loop loop;
  bool done = false;
  int seen = 0;
  loop.spawn(start_and_stop(loop, spec, done));
  loop.run_until([&] { return done || seen++ == steps; });
  say(report, done ? 2 : 1);
  for (;;) ::pause();
}

// R11.3: killed at every step of starting and stopping, every other time with the keeper. Which step the
// keeper is at, a process of its own, is the scheduler's choice.
TEST_F(Terminate, NothingIsLeftWhereverWeAreKilled) {
  const std::string mark = "TEST_TERMINATE_MARK=" + path_;
  const char* const fixtures[] = {"leaves_grandchild", "ignores_eof_and_term", "escapes_session",
                                  "double_forks"};
  const auto specs = [&](int i) {
    ProcessSpec one = i % 3 == 0 ? spec(fixture(fixtures[i % 4])) : bare(fixture(fixtures[i % 4]));
    one.env["TEST_TERMINATE_MARK"] = path_;
    return one;
  };
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    Victim gateway([&](int report) { stand_still_after(steps, specs, report); });
    done = gateway.number() == 2;
    const std::vector<Watched> keepers = gateway.stop();
    const bool with_keeper = steps % 2 == 1;
    with_keeper ? gateway.kill_with_keeper() : gateway.kill_alone();
    for (const Watched& keeper : keepers) EXPECT_TRUE(keeper.ends_within(kPatience));
    if (with_keeper && std::filesystem::exists(path_)) {
      const TerminateReport report = run();
      for (const TerminatedProcess& one : report.processes) {
        EXPECT_TRUE(one.ending == Ending::ended || one.ending == Ending::killed)
            << one.pid << ' ' << one.name << ' ' << one.by << ' ' << to_string(one.ending);
      }
    }
    ASSERT_EQ(marked(mark), std::vector<pid_t>{}) << "step " << steps;
  }
  std::cout << "killed at " << steps << " steps\n";
  EXPECT_GE(steps, 16) << "each start and each stop is a step at least";
}

}  // namespace
}  // namespace fairlead::test
