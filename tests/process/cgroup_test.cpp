// Tests of the cgroup of a child, and of the containment status if no cgroup is available.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "fairlead/process/failure.hpp"
#include "process/cgroup_parent.hpp"
#include "process/files.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using process::CgroupParent;

constexpr std::string_view kMounts =
    "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
    "31 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "32 24 0:28 / /sys/fs/cgroup/with\\040blank rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

TEST(CgroupParentTest, CurrentCgroupIsFoundThroughCgroup2Mount) {
  EXPECT_EQ(process::current_cgroup("1:pids:/x\n0::/user.slice/app\n", kMounts),
            "/sys/fs/cgroup/with blank/user.slice/app");
  EXPECT_EQ(process::current_cgroup("0::/\n", kMounts), "/sys/fs/cgroup/with blank");
}

TEST(CgroupParentTest, MountOfSubtreeShowsOnlyThatSubtree) {
  constexpr std::string_view kPart = "32 24 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(process::current_cgroup("0::/docker/abc/inner\n", kPart), "/sys/fs/cgroup/inner");
  EXPECT_EQ(process::current_cgroup("0::/elsewhere\n", kPart), "");
  EXPECT_EQ(process::current_cgroup("0::/../outside\n", kMounts), "");
}

TEST(CgroupParentTest, CurrentCgroupIsEmptyWithoutCgroup2) {
  EXPECT_EQ(process::current_cgroup("1:pids:/x\n", kMounts), "");
  EXPECT_EQ(process::current_cgroup("0::/x\n", "24 30 0:22 / /sys rw - sysfs sysfs rw\n"), "");
}

// FakeCgroup: a directory with the files of a cgroup.
class FakeCgroup {
 public:
  explicit FakeCgroup(std::string_view controllers, std::string_view enabled = "") {
    dir_.write("cgroup.procs", "", 0644);
    dir_.write("cgroup.controllers", controllers, 0644);
    dir_.write("cgroup.subtree_control", enabled, 0644);
  }
  const std::string& path() const { return dir_.path(); }
  std::string subtree_control() const { return read_file(dir_.path() + "/cgroup.subtree_control"); }

 private:
  TemporaryDirectory dir_;
};

TEST(CgroupParentTest, ControllerIsEnabledIfAvailable) {
  const FakeCgroup fake("cpu memory pids\n");
  EXPECT_TRUE(process::enable_controller(fake.path(), "memory"));
  EXPECT_EQ(fake.subtree_control(), "+memory");
  const FakeCgroup already("memory pids\n", "pids memory\n");
  EXPECT_TRUE(process::enable_controller(already.path(), "memory"));
  EXPECT_EQ(already.subtree_control(), "pids memory\n");
  const FakeCgroup without("cpu\n");
  const auto missing = process::enable_controller(without.path(), "memory");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message().ends_with("is not available")) << missing.error().message();
}

TEST(CgroupParentTest, DirectoryThatIsNotACgroupIsRejected) {
  const TemporaryDirectory plain;
  EXPECT_EQ(process::find_cgroup_parent(plain.path()).reason, plain.path() + " is not a cgroup");
  EXPECT_EQ(process::find_cgroup_parent("/nowhere").directory, "");
}

// If the cgroup is required, the start fails and the error names the measure. With best effort the child
// runs, and its status reports the missing measures.
TEST(CgroupTest, UnavailableCgroupFailsSpawnIfRequiredElseIsReported) {
  const TemporaryDirectory plain;
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup = Requirement::required;
  spec.containment.cgroup_parent = plain.path();
  spec.containment.memory_max = 1u << 30;
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.detail().failure_code, failure::belt_unavailable);
  EXPECT_EQ(error.message(),
            "cgroup is required for `cat` but unavailable: " + plain.path() + " is not a cgroup");
  spec.containment.cgroup = Requirement::best_effort;
  const RunningChild running = start(loop, spec);
  std::vector<ContainmentMeasure> missing;
  for (const ContainmentStatus& status : running.child->containment_status()) {
    if (!status.in_force) missing.push_back(status.measure);
  }
  EXPECT_EQ(missing,
            (std::vector<ContainmentMeasure>{ContainmentMeasure::cgroup, ContainmentMeasure::memory_max}));
}

TEST(CgroupTest, MissingCgroupIsLoggedOnceAndMissingLimitEachTime) {
  const TemporaryDirectory plain;
  std::string lines;
  const Log log(LogLevel::info, LogFormat::text, [&](std::string_view line) { lines += line; });
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup_parent = plain.path();
  const RunningChild first = start(loop, spec, {}, log);
  EXPECT_TRUE(lines.contains("children run without a cgroup why=\"" + plain.path() + " is not a cgroup\""))
      << lines;
  lines.clear();
  spec.containment.pids_max = 10;
  const RunningChild second = start(loop, spec, {}, log);
  EXPECT_FALSE(lines.contains("children run without a cgroup")) << lines;
  EXPECT_TRUE(lines.contains("child runs without a containment measure child=cat belt=pids_max")) << lines;
}

// The directory is not a real cgroup, which only the keeper finds out. The child runs without a cgroup.
TEST(CgroupTest, CgroupThatTheKeeperCannotCreateIsReported) {
  const FakeCgroup fake("memory\n");
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.cgroup_parent = fake.path();
  spec.containment.pids_max = 100;
  const RunningChild running = start(loop, spec);
  std::vector<ContainmentMeasure> missing;
  for (const ContainmentStatus& status : running.child->containment_status()) {
    if (!status.in_force) missing.push_back(status.measure);
  }
  EXPECT_EQ(missing,
            (std::vector<ContainmentMeasure>{ContainmentMeasure::cgroup, ContainmentMeasure::pids_max}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(fake.path()), {}), 3)
      << "files are left in the directory";
}

class RealCgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    parent_ = process::find_cgroup_parent("");
    if (parent_.directory.empty()) GTEST_SKIP() << parent_.reason;
  }
  // Returns the cgroups of the children of a keeper.
  std::vector<std::string> cgroups_of(pid_t keeper) const {
    std::vector<std::string> found;
    const std::string prefix = "fairlead-" + std::to_string(keeper) + '-';
    for (const auto& entry : std::filesystem::directory_iterator(parent_.directory)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
    }
    return found;
  }

  CgroupParent parent_;
};

// A stray is a descendant that has left the child's session and process group. Without a cookie, only the
// cgroup identifies it.
TEST_F(RealCgroupTest, StrayWithoutSessionGroupAndCookieEndsWithItsChild) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("escapes_session", {"scrub"});
  spec.containment.cgroup = Requirement::required;
  RunningChild running = start(loop, std::move(spec));
  const ProcessWatch stray(running.read_number("stray"));
  const pid_t keeper = parent_of(running.child->pid());
  EXPECT_EQ(cgroups_of(keeper).size(), 1u);
  running.in.reset();
  EXPECT_EQ(wait_for(loop, *running.child).code, 0);
  EXPECT_TRUE(stray.ends_within(0ms));
  EXPECT_EQ(cgroups_of(keeper).size(), 0u) << "its directory was not removed";
}

TEST_F(RealCgroupTest, NoProcessOrDirectoryIsLeftWhenLoopEnds) {
  std::optional<ProcessWatch> stray;
  pid_t keeper = 0;
  {
    Loop loop;
    const RunningChild running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
    stray.emplace(running.read_number("stray"));
    keeper = parent_of(running.child->pid());
  }
  EXPECT_TRUE(stray->ends_within(0ms));
  EXPECT_EQ(cgroups_of(keeper).size(), 0u);
}

TEST_F(RealCgroupTest, FailedSpawnLeavesNoDirectory) {
  Loop loop;
  const RunningChild witness = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(witness.child->pid());
  EXPECT_EQ(start_error(loop, spec_of("/nowhere/at/all")).detail().failure_code, failure::command_not_found);
  // The keeper processes requests in order, so the failed start has been cleaned up when this child has
  // ended.
  wait_for(loop, *start(loop, spec_of_fixture("exits")).child);
  EXPECT_EQ(cgroups_of(keeper).size(), 1u);
}

TEST_F(RealCgroupTest, StrayWithoutSessionGroupAndCookieEndsWhenKeeperIsKilled) {
  Loop loop;
  const RunningChild running = start(loop, spec_of_fixture("escapes_session", {"scrub"}));
  const ProcessWatch stray(running.read_number("stray"));
  ::kill(parent_of(running.child->pid()), SIGKILL);
  wait_for(loop, *running.child);
  EXPECT_TRUE(stray.ends_within(kTimeout));
}

TEST_F(RealCgroupTest, LimitsAreSetIfControllersAreAvailable) {
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "cat /proc/self/cgroup | grep ^0::; exec cat"});
  spec.containment.memory_max = 64u << 20;
  spec.containment.pids_max = 20;
  const RunningChild running = start(loop, std::move(spec));
  const std::string line = running.read_line().value_or("");
  EXPECT_TRUE(line.contains("/fairlead-")) << line;
  const std::string directory = cgroups_of(parent_of(running.child->pid())).at(0);
  for (const ContainmentStatus& status : running.child->containment_status()) {
    if (!status.in_force) {
      EXPECT_TRUE(status.reason.contains("controller")) << status.reason;
    } else if (status.measure == ContainmentMeasure::memory_max) {
      EXPECT_EQ(read_file(directory + "/memory.max"), std::to_string(64u << 20) + '\n');
    } else if (status.measure == ContainmentMeasure::pids_max) {
      EXPECT_EQ(read_file(directory + "/pids.max"), "20\n");
    }
  }
}

// A child, such as a gateway, may create cgroups below its own.
TEST_F(RealCgroupTest, NestedCgroupsAreRemovedWithCgroupOfChild) {
  Loop loop;
  RunningChild running = start(loop, spec_of("cat"));
  const pid_t keeper = parent_of(running.child->pid());
  std::filesystem::create_directories(cgroups_of(keeper).at(0) + "/inner/innermost");
  running.in.reset();
  wait_for(loop, *running.child);
  EXPECT_EQ(cgroups_of(keeper).size(), 0u);
}

// Otherwise the children of the gateway in the child would not be subject to the limits of its cgroup, and
// would survive when that cgroup is killed.
TEST_F(RealCgroupTest, GatewayInChildDoesNotUseParentOfItsCgroup) {
  Loop loop;
  const RunningChild running = start(loop, spec_of("cat"));
  const std::string own = cgroups_of(parent_of(running.child->pid())).at(0);
  EXPECT_EQ(in_fork([&] {
              if (process::write_existing_file(own + "/cgroup.procs", "0") != 0) return 2;
              const std::string found = process::find_cgroup_parent("").directory;
              return found.empty() || found == own ? 0 : 1;
            }),
            0);
}

// Tests that need the controllers; the cgroup is required, so no child runs without limits.
class CgroupLimitsTest : public RealCgroupTest {
 protected:
  void SetUp() override {
    RealCgroupTest::SetUp();
    if (IsSkipped()) return;
    for (const char* controller : {"memory", "pids"}) {
      const auto enabled = process::enable_controller(parent_.directory, controller);
      if (!enabled) GTEST_SKIP() << enabled.error().message();
    }
  }
  static ProcessSpec with_required_cgroup(ProcessSpec spec) {
    spec.containment.cgroup = Requirement::required;
    return spec;
  }
  Error exit_error_over_limit(std::uint64_t memory_max, std::vector<std::string> args) {
    ProcessSpec spec = with_required_cgroup(spec_of_fixture("eats_memory", std::move(args)));
    spec.containment.memory_max = memory_max;
    RunningChild running = start(loop_, std::move(spec));
    running.in.reset();
    status_ = wait_for(loop_, *running.child);
    return running.child->exit_error();
  }

  Loop loop_;
  ExitStatus status_;
};

TEST_F(CgroupLimitsTest, ChildOverMemoryMaxIsKilledAndErrorNamesTheLimit) {
  const Error error = exit_error_over_limit(32u << 20, {});
  EXPECT_EQ(status_.signal, SIGKILL);
  EXPECT_TRUE(status_.out_of_memory);
  EXPECT_EQ(error.detail().failure_code, failure::out_of_memory);
  EXPECT_TRUE(error.detail().remedy.contains("memory_max")) << error.detail().remedy;
  EXPECT_TRUE(error.message().contains("memory limit of its cgroup exceeded")) << error.message();
}

// As with a server behind a shell or npx, the kernel kills a descendant and not the child itself.
TEST_F(CgroupLimitsTest, DescendantOverMemoryMaxIsReportedAsOutOfMemory) {
  const Error error = exit_error_over_limit(32u << 20, {"child"});
  EXPECT_EQ(status_.code, 3);
  EXPECT_EQ(error.detail().failure_code, failure::out_of_memory);
  EXPECT_TRUE(error.message().contains("memory limit of its cgroup exceeded")) << error.message();
}

// The memory does not suffice to load the program; the child is killed before exec completes.
TEST_F(CgroupLimitsTest, TooLittleMemoryForStartIsReportedAsOutOfMemory) {
  ProcessSpec spec = with_required_cgroup(spec_of("cat"));
  spec.containment.memory_max = 4096;
  const auto child = loop_.block_on(Child::spawn(loop_, std::move(spec)));
  if (!child) {
    EXPECT_EQ(child.error().detail().failure_code, failure::out_of_memory) << child.error().to_string();
    return;
  }
  wait_for(loop_, **child);
  EXPECT_EQ((*child)->exit_error().detail().failure_code, failure::out_of_memory)
      << (*child)->exit_error().to_string();
}

TEST_F(CgroupLimitsTest, ForkBombStaysWithinPidsMaxAndEndsWithItsLeader) {
  ProcessSpec spec = with_required_cgroup(spec_of_fixture("multiplies"));
  spec.containment.pids_max = 40;
  RunningChild running = start(loop_, std::move(spec));
  EXPECT_EQ(running.read_number("refused"), EAGAIN);
  const pid_t keeper = parent_of(running.child->pid());
  const std::string directory = cgroups_of(keeper).at(0);
  EXPECT_EQ(read_file(directory + "/pids.current"), "40\n");
  // Other children are not affected.
  EXPECT_EQ(wait_for(loop_, *start(loop_, spec_of_fixture("exits")).child).code, 0);
  running.in.reset();
  wait_for(loop_, *running.child);
  EXPECT_EQ(cgroups_of(keeper).size(), 0u) << "it still contains processes";
}

}  // namespace
}  // namespace fairlead::test
