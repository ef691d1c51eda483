// Tests of the containment measures, and of the containment status and errors if a measure is unavailable.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "fairlead/process/failure.hpp"
#include "process/cgroup_parent.hpp"
#include "process/containment_plan.hpp"
#include "process/keeper/restrictions.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

std::map<std::string, std::string> read_limits(const RunningChild& running) {
  std::map<std::string, std::string> limits;
  for (;;) {
    const std::string line = running.read_line().value_or("end");
    if (line == "end") return limits;
    limits.emplace(line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1));
  }
}

std::map<std::string, std::string> limits_in_child_with(Containment containment) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("reports_limits");
  spec.containment = std::move(containment);
  return read_limits(start(loop, std::move(spec)));
}

const ContainmentStatus* find(const std::vector<ContainmentStatus>& statuses, ContainmentMeasure measure) {
  const auto found = std::ranges::find(statuses, measure, &ContainmentStatus::measure);
  return found == statuses.end() ? nullptr : &*found;
}

bool have_landlock() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
}

bool have_cgroup() {
  return !process::find_cgroup_parent("").directory.empty();
}

TEST(ContainmentTest, ResourceLimitsAreSetInChild) {
  Containment containment;
  containment.limits.address_space = 1ull << 40;
  containment.limits.open_files = 57;
  containment.limits.processes = 3456;
  containment.limits.cpu_seconds = 600;
  containment.limits.core_bytes = 0;
  containment.limits.file_bytes = 1'000'001;
  const auto limits = limits_in_child_with(containment);
  EXPECT_EQ(limits.at("address_space"), "1099511627776 1099511627776");
  EXPECT_EQ(limits.at("open_files"), "57 57");
  EXPECT_EQ(limits.at("processes"), "3456 3456");
  EXPECT_EQ(limits.at("cpu_seconds"), "600 601");
  EXPECT_EQ(limits.at("core_bytes"), "0 0");
  EXPECT_EQ(limits.at("file_bytes"), "1000001 1000001");
}

TEST(ContainmentTest, UnsetLimitsAreUnchanged) {
  const auto before = limits_in_child_with({});
  Containment containment;
  containment.limits.open_files = 58;
  auto after = limits_in_child_with(containment);
  EXPECT_EQ(after.at("open_files"), "58 58");
  for (const auto* name :
       {"address_space", "processes", "cpu_seconds", "core_bytes", "file_bytes", "no_new_privs"})
    EXPECT_EQ(after.at(name), before.at(name)) << name;
  EXPECT_EQ(before.at("no_new_privs"), "0");
}

// A child that exceeds a limit is killed by a signal. The failure code distinguishes this from other signals.
TEST(ContainmentTest, ChildOverCpuLimitFailsWithCpuLimit) {
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "while :; do :; done"});
  spec.containment.limits.cpu_seconds = 1;
  const RunningChild running = start(loop, std::move(spec));
  EXPECT_EQ(wait_for(loop, *running.child).signal, SIGXCPU);
  EXPECT_EQ(running.child->exit_error().detail().failure_code, failure::cpu_limit);
}

TEST(ContainmentTest, FileOverSizeLimitFailsWithFileSizeLimit) {
  const TemporaryDirectory dir;
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "exec head -c 100000 /dev/zero > '" + dir.path() + "/big'"});
  spec.containment.limits.file_bytes = 4096;
  const RunningChild running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  EXPECT_EQ(running.child->exit_error().detail().failure_code, failure::file_size_limit);
  EXPECT_LE(std::filesystem::file_size(dir.path() + "/big"), 4096u);
}

// Runs as a user who cannot raise limits. If the limits are required, the start fails and the error names the
// measure; with best effort the child runs, and its status reports the failure.
TEST(ContainmentTest, LimitThatCannotBeSetFailsSpawnIfRequiredElseIsReported) {
  const int status = in_fork([] {
    if (::setuid(65534) < 0) return 100;
    Loop loop;
    ProcessSpec spec = spec_of("/bin/cat");
    spec.containment.limits.open_files = 1ull << 40;
    auto refused = loop.block_on(Child::spawn(loop, spec));
    if (refused) return 1;
    if (refused.error().detail().failure_code != failure::belt_unavailable) return 2;
    if (!refused.error().message().starts_with("limits is required for `/bin/cat` but unavailable: "))
      return 3;
    spec.containment.limits_mode = Requirement::best_effort;
    auto runs = loop.block_on(Child::spawn(loop, spec));
    if (!runs) return 4;
    const ContainmentStatus* limits = find((*runs)->containment_status(), ContainmentMeasure::limits);
    if (!limits || limits->in_force) return 5;
    return limits->reason.contains("hard limit") ? 0 : 6;
  });
  if (status == 100) GTEST_SKIP() << "needs root";
  EXPECT_EQ(status, 0);
}

TEST(ContainmentTest, NoNewPrivsIsSetIfRequired) {
  Containment containment;
  containment.no_new_privs = Requirement::required;
  EXPECT_EQ(limits_in_child_with(containment).at("no_new_privs"), "1");
}

TEST(ContainmentTest, ContainmentStatusListsAllRequestedMeasures) {
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.no_new_privs = Requirement::best_effort;
  const RunningChild running = start(loop, std::move(spec));
  for (const ContainmentMeasure measure :
       {ContainmentMeasure::process_group, ContainmentMeasure::parent_death_signal,
        ContainmentMeasure::subreaper, ContainmentMeasure::no_new_privs}) {
    const ContainmentStatus* status = find(running.child->containment_status(), measure);
    ASSERT_TRUE(status) << to_string(measure);
    EXPECT_TRUE(status->in_force) << to_string(measure);
  }
  EXPECT_FALSE(find(running.child->containment_status(), ContainmentMeasure::landlock))
      << "it was not requested";
  const ContainmentStatus* cgroup = find(running.child->containment_status(), ContainmentMeasure::cgroup);
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->in_force, have_cgroup());
  EXPECT_EQ(cgroup->reason.empty(), cgroup->in_force);
}

// ---- Landlock ----

// Returns the result of each attempted file access, see fixtures/accesses_files.c.
std::vector<std::string> access_results(FileAccess files, std::vector<std::string> attempts,
                                        Requirement requirement) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("accesses_files", std::move(attempts));
  spec.containment.files = std::move(files);
  spec.containment.landlock = requirement;
  const RunningChild running = start(loop, std::move(spec));
  std::vector<std::string> lines;
  while (const auto line = running.read_line()) lines.push_back(*line);
  return lines;
}

TEST(LandlockTest, OnlyAllowedFilesAreAccessible) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const TemporaryDirectory dir;
  const std::string readable = dir.write("readable/a", "a");
  const std::string script = dir.write("tools/run", "#!/bin/sh\nexit 0\n");
  const std::string hidden = dir.write("hidden/a", "#!/bin/sh\nexit 0\n");
  std::filesystem::create_directory(dir.path() + "/scratch");
  FileAccess files;
  files.read = {dir.path() + "/readable"};
  files.write = {dir.path() + "/scratch"};
  files.execute = {dir.path() + "/tools"};
  const std::string denied = std::to_string(EACCES);
  EXPECT_EQ(
      access_results(files,
                     {"r" + readable, "w" + readable, "w" + dir.path() + "/readable/new",
                      "w" + dir.path() + "/scratch/new", "x" + script, "w" + script, "r" + hidden,
                      "x" + hidden, "w" + dir.path() + "/new", "w/dev/null"},
                     Requirement::required),
      (std::vector<std::string>{"ok", denied, denied, "ok", "ok", denied, denied, denied, denied, denied}))
      << "the last fails with EACCES too, because it cannot be removed";
}

TEST(LandlockTest, SystemProgramsCannotRunWithoutSystemPaths) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  FileAccess files;
  files.execute = {"/lib", "/lib64", "/usr/lib"};
  files.system_paths = false;
  EXPECT_EQ(access_results(files, {"r/etc/passwd", "x/bin/true"}, Requirement::required),
            (std::vector<std::string>{std::to_string(EACCES), std::to_string(EACCES)}));
}

TEST(LandlockTest, RestrictsDescendantsAndSetsNoNewPrivs) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const TemporaryDirectory dir;
  const std::string hidden = dir.write("hidden", "secret");
  Loop loop;
  ProcessSpec spec =
      spec_of("sh", {"-c", "sh -c 'cat " + hidden + " 2>&1'; grep NoNewPrivs /proc/self/status"});
  spec.containment.landlock = Requirement::required;
  const RunningChild running = start(loop, std::move(spec));
  EXPECT_TRUE(running.read_line()->contains("Permission denied"));
  EXPECT_EQ(*running.read_line(), "NoNewPrivs:\t1");
}

// A child that could stop the keeper with a signal would prevent the keeper from killing the child.
TEST(LandlockTest, ChildCannotSignalItsKeeper) {
  if (keeper::landlock_abi_version() < keeper::kLandlockSignalScopeAbi)
    GTEST_SKIP() << "Landlock of this kernel does not restrict signals";
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "kill -STOP $PPID 2>/dev/null; echo $?; kill -CONT $$; echo $?"});
  spec.containment.landlock = Requirement::required;
  EXPECT_EQ(signal_exposure(spec.containment), "");
  const RunningChild running = start(loop, spec);
  EXPECT_EQ(running.read_line(), "1");
  EXPECT_EQ(running.read_line(), "0") << "it can signal itself";
  wait_for(loop, *running.child);
  spec.containment.landlock = Requirement::off;
  EXPECT_EQ(signal_exposure(spec.containment), "landlock is off");
}

TEST(LandlockTest, MissingPathFailsSpawnIfRequiredElseIsReported) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.files.read = {"/nowhere/at/all"};
  spec.containment.landlock = Requirement::required;
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.detail().failure_code, failure::belt_unavailable);
  EXPECT_EQ(error.message(),
            "landlock is required for `cat` but unavailable: its path /nowhere/at/all does not exist");
  spec.containment.landlock = Requirement::best_effort;
  const RunningChild running = start(loop, spec);
  const ContainmentStatus* status = find(running.child->containment_status(), ContainmentMeasure::landlock);
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->in_force);
  EXPECT_EQ(status->reason, "a path of its rules does not exist; the others are in force");
}

// Uses the errno of a kernel without Landlock, so that the test needs no such kernel.
TEST(LandlockTest, KernelWithoutLandlockIsReported) {
  Containment containment;
  containment.landlock = Requirement::best_effort;
  const auto plan = process::plan_containment("x", containment, "/bin/true", "/");
  ASSERT_TRUE(plan);
  keeper::SpawnOutcome outcome{};
  outcome.failed_flags = keeper::with_landlock;
  outcome.flag_errors[7] = ENOSYS;
  const auto statuses = process::containment_status_of(*plan, outcome);
  const ContainmentStatus* status = find(statuses, ContainmentMeasure::landlock);
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->in_force);
  EXPECT_EQ(status->reason, "this kernel has no Landlock");
}

}  // namespace
}  // namespace fairlead::test
