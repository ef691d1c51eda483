#include "process/launch_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "process/support.hpp"

namespace fairlead::process {
namespace {

using test::TemporaryDirectory;
using test::TemporaryVariable;

bool has(const std::vector<std::string>& env, std::string_view variable) {
  return std::ranges::find(env, variable) != env.end();
}

// R4.1
TEST(LaunchPlanTest, EnvReplacesInheritedVariable) {
  const TemporaryVariable inherited("TEST_LAUNCH_A", "old");
  ProcessSpec spec = test::spec_of("cat");
  spec.env["TEST_LAUNCH_A"] = "new";
  const auto env = child_environment(spec);
  EXPECT_TRUE(has(env, "TEST_LAUNCH_A=new"));
  EXPECT_FALSE(has(env, "TEST_LAUNCH_A=old"));
}

// R4.1: for untrusted servers.
TEST(LaunchPlanTest, OnlyListedVariablesAreInheritedWithInheritOnly) {
  const TemporaryVariable wanted("TEST_LAUNCH_A", "a");
  const TemporaryVariable secret("TEST_LAUNCH_SECRET", "s");
  ProcessSpec spec = test::spec_of("cat");
  spec.inherit_only = {"TEST_LAUNCH_A", "TEST_LAUNCH_NOT_SET"};
  spec.env["OWN"] = "1";
  auto env = child_environment(spec);
  std::ranges::sort(env);
  EXPECT_EQ(env, (std::vector<std::string>{"OWN=1", "TEST_LAUNCH_A=a"}));
}

TEST(LaunchPlanTest, FairleadVariablesAreNotInherited) {
  const TemporaryVariable config("FAIRLEAD_CONFIG", "/etc/gateway.toml");
  const TemporaryVariable level("FAIRLEAD_LOG_LEVEL", "debug");
  ProcessSpec spec = test::spec_of("cat");
  const auto is_fairlead_variable = [](const std::string& variable) {
    return variable.starts_with("FAIRLEAD_");
  };
  EXPECT_TRUE(std::ranges::none_of(child_environment(spec), is_fairlead_variable));
  spec.inherit_only = {"FAIRLEAD_CONFIG"};
  EXPECT_TRUE(std::ranges::none_of(child_environment(spec), is_fairlead_variable));
  spec.env["FAIRLEAD_LOG_LEVEL"] = "error";
  EXPECT_TRUE(has(child_environment(spec), "FAIRLEAD_LOG_LEVEL=error"));
  EXPECT_TRUE(has(child_environment(test::spec_of("cat"), {{"FAIRLEAD_CONFIG", "x"}}), "FAIRLEAD_CONFIG=x"));
}

// R11.3: with another cookie the keeper could not identify the child's orphans.
TEST(LaunchPlanTest, CookieIsCopiedNeitherFromEnvironmentNorFromSpec) {
  const TemporaryVariable inherited("FAIRLEAD_CHILD", "1.1");
  ProcessSpec spec = test::spec_of("cat");
  spec.env["FAIRLEAD_CHILD"] = "2.2";
  const auto env = child_environment(spec);
  EXPECT_TRUE(std::ranges::none_of(env, [](const auto& v) { return v.starts_with("FAIRLEAD_CHILD="); }));
}

// R4.1
TEST(LaunchPlanTest, FirstExecutableInPathIsFound) {
  const TemporaryDirectory dir;
  dir.write("a/tool", "not for execution", 0644);
  dir.write("b/tool", "#!/bin/sh\n");
  dir.write("c/tool", "#!/bin/sh\n");
  const auto path = dir.path() + "/a:" + dir.path() + "/b:" + dir.path() + "/c";
  EXPECT_EQ(find_command("tool", path, "/").value(), dir.path() + "/b/tool");
}

TEST(LaunchPlanTest, DirectoryIsNotACommand) {
  const TemporaryDirectory dir;
  dir.write("tool/x", "");
  const auto found = find_command("tool", dir.path(), "/");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().detail().os_error, ENOENT);
}

TEST(LaunchPlanTest, EmptyOrRelativePathEntryIsRelativeToChildsDirectory) {
  const TemporaryDirectory dir;
  dir.write("bin/tool", "#!/bin/sh\n");
  EXPECT_EQ(find_command("tool", "/nowhere:", dir.path() + "/bin").value(), dir.path() + "/bin/tool");
  EXPECT_EQ(find_command("tool", "bin", dir.path()).value(), dir.path() + "/bin/tool");
}

TEST(LaunchPlanTest, CommandWithSlashIsNotLookedUp) {
  EXPECT_EQ(find_command("./tool", "/bin", "/tmp").value(), "./tool");
}

TEST(LaunchPlanTest, InvalidArgumentsAndVariablesAreRejected) {
  ProcessSpec nul = test::spec_of("cat", {std::string("a\0b", 3)});
  EXPECT_EQ(plan_launch(nul).error().kind(), ErrorKind::spawn);
  ProcessSpec name = test::spec_of("cat");
  name.env["A=B"] = "c";
  EXPECT_NE(plan_launch(name).error().message().find("A=B"), std::string::npos);
  EXPECT_EQ(plan_launch(test::spec_of("")).error().kind(), ErrorKind::spawn);
}

}  // namespace
}  // namespace fairlead::process
