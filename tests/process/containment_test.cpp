// What children may use and reach, and that what was asked for and is not there is said.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "fairlead/process/failure.hpp"
#include "process/belt_plan.hpp"
#include "process/cgroup_home.hpp"
#include "process/keeper/belts.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

std::map<std::string, std::string> limits_of(const Running& running) {
  std::map<std::string, std::string> facts;
  for (;;) {
    const std::string line = running.line().value_or("end");
    if (line == "end") return facts;
    facts.emplace(line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1));
  }
}

std::map<std::string, std::string> contained(Containment containment) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("reports_limits");
  spec.containment = std::move(containment);
  return limits_of(start(loop, std::move(spec)));
}

const BeltState* find(const std::vector<BeltState>& belts, Belt belt) {
  const auto found = std::ranges::find(belts, belt, &BeltState::belt);
  return found == belts.end() ? nullptr : &*found;
}

bool have_landlock() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
}

bool have_cgroup() {
  return !process::find_cgroup_home("").directory.empty();
}

TEST(Containment, EachResourceLimitReachesTheChild) {
  Containment containment;
  containment.limits.address_space = 1ull << 40;
  containment.limits.open_files = 57;
  containment.limits.processes = 3456;
  containment.limits.cpu_seconds = 600;
  containment.limits.core_bytes = 0;
  containment.limits.file_bytes = 1'000'001;
  const auto facts = contained(containment);
  EXPECT_EQ(facts.at("address_space"), "1099511627776 1099511627776");
  EXPECT_EQ(facts.at("open_files"), "57 57");
  EXPECT_EQ(facts.at("processes"), "3456 3456");
  EXPECT_EQ(facts.at("cpu_seconds"), "600 601");
  EXPECT_EQ(facts.at("core_bytes"), "0 0");
  EXPECT_EQ(facts.at("file_bytes"), "1000001 1000001");
}

TEST(Containment, WhatIsNotSetStaysAsItIs) {
  const auto before = contained({});
  Containment containment;
  containment.limits.open_files = 58;
  auto after = contained(containment);
  EXPECT_EQ(after.at("open_files"), "58 58");
  for (const auto* name :
       {"address_space", "processes", "cpu_seconds", "core_bytes", "file_bytes", "no_new_privs"})
    EXPECT_EQ(after.at(name), before.at(name)) << name;
  EXPECT_EQ(before.at("no_new_privs"), "0");
}

// A limit's signal is told apart from any other
TEST(Containment, AChildOverItsCpuLimitEndsWithThatCode) {
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "while :; do :; done"});
  spec.containment.limits.cpu_seconds = 1;
  const Running running = start(loop, std::move(spec));
  EXPECT_EQ(wait_for(loop, *running.child).signal, SIGXCPU);
  EXPECT_EQ(running.child->exit_error().detail().code, failure::cpu_limit);
}

TEST(Containment, AFileOverItsLimitEndsTheChildWithThatCode) {
  const TemporaryDirectory dir;
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "exec head -c 100000 /dev/zero > '" + dir.path() + "/big'"});
  spec.containment.limits.file_bytes = 4096;
  const Running running = start(loop, std::move(spec));
  wait_for(loop, *running.child);
  EXPECT_EQ(running.child->exit_error().detail().code, failure::file_size_limit);
  EXPECT_LE(std::filesystem::file_size(dir.path() + "/big"), 4096u);
}

// As somebody who cannot raise limits: required refuses and names the belt, best effort runs and says so.
TEST(Containment, ALimitThatCannotBeSetRefusesOrIsReported) {
  const int status = in_fork([] {
    if (::setuid(65534) < 0) return 100;
    Loop loop;
    ProcessSpec spec = spec_of("/bin/cat");
    spec.containment.limits.open_files = 1ull << 40;
    auto refused = loop.block_on(Child::spawn(loop, spec));
    if (refused) return 1;
    if (refused.error().detail().code != failure::belt_unavailable) return 2;
    if (!refused.error().message().starts_with("limits is required for `/bin/cat` and cannot be had: "))
      return 3;
    spec.containment.limits_mode = Requirement::best_effort;
    auto runs = loop.block_on(Child::spawn(loop, spec));
    if (!runs) return 4;
    const BeltState* limits = find((*runs)->belts(), Belt::limits);
    if (!limits || limits->in_force) return 5;
    return limits->why_not.contains("hard limit") ? 0 : 6;
  });
  if (status == 100) GTEST_SKIP() << "needs root";
  EXPECT_EQ(status, 0);
}

TEST(Containment, NoNewPrivilegesIsInForceWhenAskedFor) {
  Containment containment;
  containment.no_new_privs = Requirement::required;
  EXPECT_EQ(contained(containment).at("no_new_privs"), "1");
}

// Every child is told what holds it
TEST(Containment, EveryChildSaysWhatHoldsIt) {
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.no_new_privs = Requirement::best_effort;
  const Running running = start(loop, std::move(spec));
  for (const Belt belt :
       {Belt::process_group, Belt::parent_death_signal, Belt::subreaper, Belt::no_new_privs}) {
    const BeltState* state = find(running.child->belts(), belt);
    ASSERT_TRUE(state) << to_string(belt);
    EXPECT_TRUE(state->in_force) << to_string(belt);
  }
  EXPECT_FALSE(find(running.child->belts(), Belt::landlock)) << "it was not wanted";
  const BeltState* cgroup = find(running.child->belts(), Belt::cgroup);
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->in_force, have_cgroup());
  EXPECT_EQ(cgroup->why_not.empty(), cgroup->in_force);
}

// Landlock

std::vector<std::string> attempts(FileAccess files, std::vector<std::string> what, Requirement how) {
  Loop loop;
  ProcessSpec spec = spec_of_fixture("reaches_files", std::move(what));
  spec.containment.files = std::move(files);
  spec.containment.landlock = how;
  const Running running = start(loop, std::move(spec));
  std::vector<std::string> lines;
  while (const auto line = running.line()) lines.push_back(*line);
  return lines;
}

TEST(Landlock, OnlyWhatIsAllowedCanBeReached) {
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
      attempts(files,
               {"r" + readable, "w" + readable, "w" + dir.path() + "/readable/new",
                "w" + dir.path() + "/scratch/new", "x" + script, "w" + script, "r" + hidden, "x" + hidden,
                "w" + dir.path() + "/new", "w/dev/null"},
               Requirement::required),
      (std::vector<std::string>{"ok", denied, denied, "ok", "ok", denied, denied, denied, denied, denied}))
      << "the last cannot be removed, and is therefore EACCES as well";
}

TEST(Landlock, WithoutTheSystemsPathsNotEvenAShellRuns) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  FileAccess files;
  files.execute = {"/lib", "/lib64", "/usr/lib"};
  files.system_paths = false;
  EXPECT_EQ(attempts(files, {"r/etc/passwd", "x/bin/true"}, Requirement::required),
            (std::vector<std::string>{std::to_string(EACCES), std::to_string(EACCES)}));
}

TEST(Landlock, ItHoldsWhatTheChildStartsAndTakesNewPrivilegesAway) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const TemporaryDirectory dir;
  const std::string hidden = dir.write("hidden", "secret");
  Loop loop;
  ProcessSpec spec =
      spec_of("sh", {"-c", "sh -c 'cat " + hidden + " 2>&1'; grep NoNewPrivs /proc/self/status"});
  spec.containment.landlock = Requirement::required;
  const Running running = start(loop, std::move(spec));
  EXPECT_TRUE(running.line()->contains("Permission denied"));
  EXPECT_EQ(*running.line(), "NoNewPrivs:\t1");
}

// Stopping the keeper would keep it from ending the child.
TEST(Landlock, TheChildCannotSignalItsKeeper) {
  if (keeper::landlock_version() < keeper::kLandlockScopesSignals)
    GTEST_SKIP() << "Landlock of this kernel does not restrict signals";
  Loop loop;
  ProcessSpec spec = spec_of("sh", {"-c", "kill -STOP $PPID 2>/dev/null; echo $?; kill -CONT $$; echo $?"});
  spec.containment.landlock = Requirement::required;
  EXPECT_EQ(signal_exposure(spec.containment), "");
  const Running running = start(loop, spec);
  EXPECT_EQ(running.line(), "1");
  EXPECT_EQ(running.line(), "0") << "itself it can";
  wait_for(loop, *running.child);
  spec.containment.landlock = Requirement::off;
  EXPECT_EQ(signal_exposure(spec.containment), "landlock is off");
}

TEST(Landlock, AMissingPathRefusesOrIsReported) {
  if (!have_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  Loop loop;
  ProcessSpec spec = spec_of("cat");
  spec.containment.files.read = {"/nowhere/at/all"};
  spec.containment.landlock = Requirement::required;
  const Error error = start_error(loop, spec);
  EXPECT_EQ(error.detail().code, failure::belt_unavailable);
  EXPECT_EQ(error.message(),
            "landlock is required for `cat` and cannot be had: its path /nowhere/at/all does not exist");
  spec.containment.landlock = Requirement::best_effort;
  const Running running = start(loop, spec);
  const BeltState* state = find(running.child->belts(), Belt::landlock);
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->in_force);
  EXPECT_EQ(state->why_not, "a path of its rules does not exist; the others are in force");
}

// What a kernel without it answers; decided by the plan, and so by facts alone.
TEST(Landlock, AKernelWithoutItIsReported) {
  Containment containment;
  containment.landlock = Requirement::best_effort;
  const auto plan = process::plan_belts("x", containment, "/bin/true", "/");
  ASSERT_TRUE(plan);
  keeper::Outcome outcome{};
  outcome.failed = keeper::with_landlock;
  outcome.errors[7] = ENOSYS;
  const auto belts = process::belts_of(*plan, outcome);
  const BeltState* state = find(belts, Belt::landlock);
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->in_force);
  EXPECT_EQ(state->why_not, "this kernel has no Landlock");
}

}  // namespace
}  // namespace fairlead::test
