// Tests of matching processes with manifest entries. A wrong match would kill a process of another program.
#include "process/manifest_matches.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead::process {
namespace {

const SystemIdentity kSystem{"boot-1", 7};

ManifestEntry entry(pid_t pid, std::uint64_t start, std::string cookie = {}, std::string cgroup = {}) {
  return {{pid, start, 0}, kSystem, {"child", "x", "", std::move(cookie), std::move(cgroup)}, ""};
}

ProcessInfo process(pid_t pid, std::uint64_t start, pid_t parent, pid_t session, std::string cookies = {}) {
  return {{pid, start, 0}, parent, session, session, false, std::move(cookies), "/"};
}

std::vector<pid_t> pids(const ManifestMatches& found) {
  std::vector<pid_t> all;
  for (const MatchedProcess& match : found.alive) all.push_back(match.identity.pid);
  std::ranges::sort(all);
  return all;
}

ManifestMatches match(const std::vector<ManifestEntry>& entries, const std::vector<ProcessInfo>& processes,
                      std::uint64_t inode = 0) {
  return match_processes(entries, processes, {kSystem, 1000, [=](pid_t) { return inode; }});
}

using Pids = std::vector<pid_t>;

// R11.2
TEST(ManifestMatchesTest, RecycledPidMatchesNoEntryNorDoItsSessionAndChildren) {
  const auto found = match({entry(50, 100)}, {process(50, 200, 1, 50), process(51, 210, 50, 50)});
  EXPECT_EQ(pids(found), Pids{});
  EXPECT_EQ(found.recycled_count, 1u);
}

// R11.2: the pid is recycled within the same clock tick.
TEST(ManifestMatchesTest, InodeDistinguishesProcessesStartedInTheSameTick) {
  auto with_inode = entry(50, 100);
  with_inode.identity.inode = 4711;
  EXPECT_EQ(pids(match({with_inode}, {process(50, 100, 1, 50)}, 4712)), Pids{});
  EXPECT_EQ(pids(match({with_inode}, {process(50, 100, 1, 50)}, 4711)), Pids{50});
  EXPECT_EQ(pids(match({with_inode}, {process(50, 100, 1, 50)}, 0)), Pids{50})
      << "kernel without pidfd inodes";
}

// R11.2
TEST(ManifestMatchesTest, EntriesOfAnotherBootOrNamespaceMatchNoProcess) {
  auto boot = entry(50, 100, "9.1");
  boot.system.boot_id = "boot-0";
  auto space = entry(50, 100, "9.1");
  space.system.pid_namespace = 8;
  const auto found = match({boot, space}, {process(50, 100, 1, 50, "/9.1/")});
  EXPECT_EQ(pids(found), Pids{});
  EXPECT_EQ(found.other_system_count, 2u);
}

// R11.2: descendants of the process.
TEST(ManifestMatchesTest, ChildrenSessionsAndGroupsOfLiveProcessMatch) {
  const auto found =
      match({entry(50, 100)}, {process(50, 100, 9, 50), process(51, 110, 50, 50), process(52, 120, 1, 50),
                               process(53, 130, 51, 53), process(54, 140, 1, 53), process(60, 140, 1, 60)});
  EXPECT_EQ(pids(found), (Pids{50, 51, 52, 53, 54}));
}

TEST(ManifestMatchesTest, CookieMatchesDescendantsOfEndedProcess) {
  const auto found =
      match({entry(50, 100, "9.77")},
            {process(61, 150, 1, 61, "/9.77/"), process(62, 160, 61, 62), process(63, 150, 1, 63, "/9.7/"),
             process(64, 150, 1, 64, "/9.777/"), process(65, 150, 1, 65, "/3.1/9.77/8.2/")});
  EXPECT_EQ(pids(found), (Pids{61, 62, 65}));
}

TEST(ManifestMatchesTest, ProcessOlderThanEntryDoesNotMatch) {
  EXPECT_EQ(pids(match({entry(50, 100, "9.77")}, {process(61, 99, 1, 61, "/9.77/")})), Pids{});
}

// A session and its number outlive the leader; but the number could also belong to another session by now.
TEST(ManifestMatchesTest, SessionWithoutLeaderMatchesOnlyIfAMemberMatches) {
  EXPECT_EQ(pids(match({entry(50, 100, "9.77")}, {process(61, 150, 1, 50)})), Pids{});
  EXPECT_EQ(
      pids(match({entry(50, 100, "9.77")}, {process(61, 150, 1, 50), process(62, 150, 1, 50, "/9.77/")})),
      (Pids{61, 62}));
}

TEST(ManifestMatchesTest, SessionOfZombieLeaderMatches) {
  auto leader = process(50, 100, 9, 50);
  leader.zombie = true;
  EXPECT_EQ(pids(match({entry(50, 100)}, {leader, process(61, 150, 1, 50)})), Pids{61});
}

TEST(ManifestMatchesTest, MembersOfCgroupAndItsSubgroupsMatch) {
  auto inside = process(61, 150, 1, 61);
  inside.cgroup = "/a/fairlead-9-77";
  auto below = process(62, 150, 1, 62);
  below.cgroup = "/a/fairlead-9-77/inner";
  auto beside = process(63, 150, 1, 63);
  beside.cgroup = "/a/fairlead-9-777";
  EXPECT_EQ(pids(match({entry(50, 100, "9.77", "/sys/fs/cgroup/a/fairlead-9-77")}, {inside, below, beside})),
            (Pids{61, 62}));
}

TEST(ManifestMatchesTest, CgroupWithAnotherNameOrCookieIsIgnored) {
  auto in_root = process(61, 150, 1, 61);
  in_root.cgroup = "/";
  auto in_slice = process(62, 150, 1, 62);
  in_slice.cgroup = "/user.slice/fairlead-9-77";
  for (const std::string cgroup :
       {"/", "", "//", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice", "/a/../user.slice", "fairlead-9-77",
        "/a/fairlead-9-77/..", "/a/./fairlead-9-77", "/a//fairlead-9-77", "/a/fairlead-9-77/",
        "/a/fairlead-"}) {
    EXPECT_EQ(pids(match({entry(50, 100, "9.77", cgroup)}, {in_root, in_slice})), Pids{}) << cgroup;
  }
  EXPECT_EQ(pids(match({entry(50, 100, "9.78", "/a/fairlead-9-77")}, {in_slice})), Pids{});
  EXPECT_EQ(pids(match({entry(50, 100, "", "/a/fairlead-9-77")}, {in_slice})), Pids{});
}

TEST(ManifestMatchesTest, OwnProcessNeverMatches) {
  const auto found =
      match({entry(50, 100, "9.77")}, {process(50, 100, 9, 50), process(1000, 150, 50, 50, "/9.77/")});
  EXPECT_EQ(pids(found), Pids{50});
}

}  // namespace
}  // namespace fairlead::process
