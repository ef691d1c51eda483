// A cgroup for each child where there is one to be had, and that it is said where there is not.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "fairlead/process/failure.hpp"
#include "process/cgroup_home.hpp"
#include "process/files.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using process::CgroupHome;

constexpr std::string_view kMounts =
    "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
    "31 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "32 24 0:28 / /sys/fs/cgroup/with\\040blank rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

TEST(CgroupHome, OursIsFoundThroughTheMountOfVersionTwo) {
  EXPECT_EQ(process::own_cgroup("1:pids:/x\n0::/user.slice/app\n", kMounts),
            "/sys/fs/cgroup/with blank/user.slice/app");
  EXPECT_EQ(process::own_cgroup("0::/\n", kMounts), "/sys/fs/cgroup/with blank");
}

TEST(CgroupHome, AMountOfAPartShowsThatPartOnly) {
  constexpr std::string_view kPart = "32 24 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(process::own_cgroup("0::/docker/abc/inner\n", kPart), "/sys/fs/cgroup/inner");
  EXPECT_EQ(process::own_cgroup("0::/elsewhere\n", kPart), "");
  EXPECT_EQ(process::own_cgroup("0::/../outside\n", kMounts), "");
}

TEST(CgroupHome, WithoutVersionTwoThereIsNone) {
  EXPECT_EQ(process::own_cgroup("1:pids:/x\n", kMounts), "");
  EXPECT_EQ(process::own_cgroup("0::/x\n", "24 30 0:22 / /sys rw - sysfs sysfs rw\n"), "");
}

// A directory that looks like a cgroup.
class FakeCgroup {
 public:
  explicit FakeCgroup(std::string_view controllers, std::string_view enabled = "") {
    dir_.write("cgroup.procs", "", 0644);
    dir_.write("cgroup.controllers", controllers, 0644);
    dir_.write("cgroup.subtree_control", enabled, 0644);
  }
  const std::string& path() const { return dir_.path(); }
  std::string control() const { return read_file(dir_.path() + "/cgroup.subtree_control"); }

 private:
  TemporaryDirectory dir_;
};

TEST(CgroupHome, AControllerIsSwitchedOnWhenItIsThere) {
  const FakeCgroup fake("cpu memory pids\n");
  EXPECT_TRUE(process::enable_controller(fake.path(), "memory"));
  EXPECT_EQ(fake.control(), "+memory");
  const FakeCgroup already("memory pids\n", "pids memory\n");
  EXPECT_TRUE(process::enable_controller(already.path(), "memory"));
  EXPECT_EQ(already.control(), "pids memory\n");
  const FakeCgroup without("cpu\n");
  const auto missing = process::enable_controller(without.path(), "memory");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message().ends_with("is not available")) << missing.error().message();
}

TEST(CgroupHome, WhatIsNoCgroupIsNotUsed) {
  const TemporaryDirectory plain;
  EXPECT_EQ(process::find_cgroup_home(plain.path()).why_not, plain.path() + " is not a cgroup");
  EXPECT_EQ(process::find_cgroup_home("/nowhere").directory, "");
}

// Required and not there: refused, and the error names the belt. Best effort: it runs, and says so.
TEST(Cgroup, OneThatCannotBeHadRefusesOrIsReported) {
  const TemporaryDirectory plain;
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup = Requirement::required;
  spec.containment.cgroup_parent = plain.path();
  spec.containment.memory_max = 1u << 30;
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.detail().code, failure::belt_unavailable);
  EXPECT_EQ(error.message(),
            "cgroup is required for `cat` and cannot be had: " + plain.path() + " is not a cgroup");
  spec.containment.cgroup = Requirement::best_effort;
  const Running running = start(loop, spec);
  std::vector<Belt> missing;
  for (const BeltState& state : running.child->belts()) {
    if (!state.in_force) missing.push_back(state.belt);
  }
  EXPECT_EQ(missing, (std::vector<Belt>{Belt::cgroup, Belt::memory_max}));
}

TEST(Cgroup, ThatThereIsNoneIsLoggedOnceAndALimitThatNeedsItEachTime) {
  const TemporaryDirectory plain;
  std::string lines;
  const Log log(LogLevel::info, LogFormat::text, [&](std::string_view line) { lines += line; });
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup_parent = plain.path();
  const Running first = start(loop, spec, {}, log);
  EXPECT_TRUE(lines.contains("children run without a cgroup why=\"" + plain.path() + " is not a cgroup\""))
      << lines;
  lines.clear();
  spec.containment.pids_max = 10;
  const Running second = start(loop, spec, {}, log);
  EXPECT_FALSE(lines.contains("children run without a cgroup")) << lines;
  EXPECT_TRUE(lines.contains("child runs without a belt child=cat belt=pids_max")) << lines;
}

// A directory that only looks like one: the keeper finds that out, and the child runs all the same.
TEST(Cgroup, OneThatTheKernelDoesNotGrantIsReportedToo) {
  const FakeCgroup fake("memory\n");
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup_parent = fake.path();
  spec.containment.pids_max = 100;
  const Running running = start(loop, spec);
  std::vector<Belt> missing;
  for (const BeltState& state : running.child->belts()) {
    if (!state.in_force) missing.push_back(state.belt);
  }
  EXPECT_EQ(missing, (std::vector<Belt>{Belt::cgroup, Belt::pids_max}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(fake.path()), {}), 3)
      << "something is left in it";
}

class RealCgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = process::find_cgroup_home("");
    if (home_.directory.empty()) GTEST_SKIP() << home_.why_not;
  }
  // Those of a keeper.
  std::vector<std::string> of(pid_t keeper) const {
    std::vector<std::string> found;
    const std::string prefix = "fairlead-" + std::to_string(keeper) + '-';
    for (const auto& entry : std::filesystem::directory_iterator(home_.directory)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
    }
    return found;
  }

  CgroupHome home_;
};

// A stray without session, group and cookie, which nothing else can attribute
TEST_F(RealCgroup, AStrayThatHidesFromAllElseEndsWithItsChild) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("escapes_session", {"scrub"});
  spec.containment.cgroup = Requirement::required;
  Running running = start(loop, std::move(spec));
  const Watched stray(running.number("stray"));
  const pid_t keeper = parent_of(running.child->pid());
  EXPECT_EQ(of(keeper).size(), 1u);
  running.in.reset();
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_EQ(of(keeper).size(), 0u) << "its directory is left";
}

TEST_F(RealCgroup, NothingAndNoDirectoryIsLeftWhenTheLoopEnds) {
  std::optional<Watched> stray;
  pid_t keeper = 0;
  {
    Loop loop;
    const Running running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    stray.emplace(running.number("stray"));
    keeper = parent_of(running.child->pid());
  }
  EXPECT_TRUE(stray->ends_within(0ms));
  EXPECT_EQ(of(keeper).size(), 0u);
}

TEST_F(RealCgroup, AProgramThatCannotBeRunLeavesNoDirectory) {
  Loop loop;
  const Running witness = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(witness.child->pid());
  EXPECT_EQ(start_error(loop, spec_of("/nowhere/at/all")).detail().code, failure::command_not_found);
  // What is reported after it is done after it.
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_EQ(of(keeper).size(), 1u);
}

TEST_F(RealCgroup, AStrayThatHidesEndsWhenTheKeeperIsKilled) {
  Loop loop;
  const Running running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
  const Watched stray(running.number("stray"));
  ::kill(parent_of(running.child->pid()), SIGKILL);
  wait_for(loop, *running.child);
  EXPECT_TRUE(stray.ends_within(kPatience));
}

TEST_F(RealCgroup, LimitsAreInForceWhereTheControllersAre) {
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "cat /proc/self/cgroup | grep ^0::; exec cat"});
  spec.containment.memory_max = 64u << 20;
  spec.containment.pids_max = 20;
  const Running running = start(loop, std::move(spec));
  const std::string line = running.line().value_or("");
  EXPECT_TRUE(line.contains("/fairlead-")) << line;
  const std::string directory = of(parent_of(running.child->pid())).at(0);
  for (const BeltState& state : running.child->belts()) {
    if (!state.in_force) {
      EXPECT_TRUE(state.why_not.contains("controller")) << state.why_not;
    } else if (state.belt == Belt::memory_max) {
      EXPECT_EQ(read_file(directory + "/memory.max"), std::to_string(64u << 20) + '\n');
    } else if (state.belt == Belt::pids_max) {
      EXPECT_EQ(read_file(directory + "/pids.max"), "20\n");
    }
  }
}

// What a child makes below its own, as a gateway that is itself a child does.
TEST_F(RealCgroup, CgroupsWithinItGoWithIt) {
  Loop loop;
  Running running = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(running.child->pid());
  std::filesystem::create_directories(of(keeper).at(0) + "/inner/innermost");
  running.in.reset();
  wait_for(loop, *running.child);
  EXPECT_EQ(of(keeper).size(), 0u);
}

// Its children would be out of the limits of the child it is, and live on when that is killed.
TEST_F(RealCgroup, AGatewayAmongTheChildrenDoesNotUseTheCgroupAboveItsOwn) {
  Loop loop;
  const Running running = start(loop, spec_of("cat"));
  const std::string own = of(parent_of(running.child->pid())).at(0);
  EXPECT_EQ(in_fork([&] {
              if (process::write_whole(own + "/cgroup.procs", "0") != 0) return 2;
              const std::string found = process::find_cgroup_home("").directory;
              return found.empty() || found == own ? 0 : 1;
            }),
            0);
}

// Where limits can be set; they are required, so nothing runs without.
class CgroupLimits : public RealCgroup {
 protected:
  void SetUp() override {
    RealCgroup::SetUp();
    if (IsSkipped()) return;
    for (const char* controller : {"memory", "pids"}) {
      const auto enabled = process::enable_controller(home_.directory, controller);
      if (!enabled) GTEST_SKIP() << enabled.error().message();
    }
  }
  static ProcessSpec limited(ProcessSpec spec) {
    spec.containment.cgroup = Requirement::required;
    return spec;
  }
  Error end_over(std::uint64_t memory_max, std::vector<std::string> args) {
    ProcessSpec spec = limited(spec_of_fixture("eats_memory", std::move(args)));
    spec.containment.memory_max = memory_max;
    Running running = start(loop_, std::move(spec));
    running.in.reset();
    status_ = wait_for(loop_, *running.child);
    return running.child->exit_error();
  }

  Loop loop_;
  ExitStatus status_;
};

TEST_F(CgroupLimits, WhoTakesTooMuchMemoryIsKilledAndTheErrorSaysWhatToRaise) {
  const Error error = end_over(32u << 20, {});
  EXPECT_EQ(status_.signal, SIGKILL);
  EXPECT_TRUE(status_.out_of_memory);
  EXPECT_EQ(error.detail().code, failure::out_of_memory);
  EXPECT_TRUE(error.detail().remedy.contains("memory_max")) << error.detail().remedy;
  EXPECT_TRUE(error.message().contains("out of the memory its cgroup has")) << error.message();
}

// As under a shell or npx: it is not the leader that is killed.
TEST_F(CgroupLimits, ADescendantThatTakesTooMuchMemoryIsNamedAsTheReason) {
  const Error error = end_over(32u << 20, {"child"});
  EXPECT_EQ(status_.code, 3);
  EXPECT_EQ(error.detail().code, failure::out_of_memory);
  EXPECT_TRUE(error.message().contains("out of the memory its cgroup has")) << error.message();
}

// Too little to load the program: killed on the way there.
TEST_F(CgroupLimits, MemoryThatDoesNotSufficeForTheStartIsNamedAsTheReason) {
  ProcessSpec spec = limited(spec_of("cat"));
  spec.containment.memory_max = 4096;
  const auto child = loop_.block_on(Child::spawn(loop_, std::move(spec)));
  if (!child) {
    EXPECT_EQ(child.error().detail().code, failure::out_of_memory) << child.error().to_string();
    return;
  }
  wait_for(loop_, **child);
  EXPECT_EQ((*child)->exit_error().detail().code, failure::out_of_memory)
      << (*child)->exit_error().to_string();
}

TEST_F(CgroupLimits, AForkBombStaysWithinItsNumberAndEndsWithItsLeader) {
  ProcessSpec spec = limited(spec_of_fixture("multiplies"));
  spec.containment.pids_max = 40;
  Running running = start(loop_, std::move(spec));
  EXPECT_EQ(running.number("refused"), EAGAIN);
  const pid_t keeper = parent_of(running.child->pid());
  const std::string directory = of(keeper).at(0);
  EXPECT_EQ(read_file(directory + "/pids.current"), "40\n");
  // Others are not touched by it.
  EXPECT_EQ(wait_for(loop_, *start(loop_, spec_of_fixture("exits")).child).code, 0);
  running.in.reset();
  wait_for(loop_, *running.child);
  EXPECT_EQ(of(keeper).size(), 0u) << "something lives in it";
}

}  // namespace
}  // namespace fairlead::test
