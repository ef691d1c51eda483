// Whose process is whose, decided from facts. A wrong answer here is somebody else's process killed.
#include "process/belongings.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead::process {
namespace {

const SystemIdentity kHere{"boot-1", 7};

ManifestEntry entry(pid_t pid, std::uint64_t start, std::string cookie = {}, std::string cgroup = {}) {
  return {{pid, start, 0}, kHere, {"child", "x", "", std::move(cookie), std::move(cgroup)}, ""};
}

ProcessFacts process(pid_t pid, std::uint64_t start, pid_t parent, pid_t session, std::string cookies = {}) {
  return {{pid, start, 0}, parent, session, session, false, std::move(cookies), "/"};
}

std::vector<pid_t> pids(const Belongings& found) {
  std::vector<pid_t> all;
  for (const Belonging& one : found.alive) all.push_back(one.identity.pid);
  std::ranges::sort(all);
  return all;
}

Belongings find(const std::vector<ManifestEntry>& entries, const std::vector<ProcessFacts>& processes,
                std::uint64_t inode = 0) {
  return find_belongings(entries, processes, {kHere, 1000, [=](pid_t) { return inode; }});
}

using Pids = std::vector<pid_t>;

// R11.2
TEST(Belongings, ARecycledNumberIsNobodysNorIsItsSessionOrChildren) {
  const auto found = find({entry(50, 100)}, {process(50, 200, 1, 50), process(51, 210, 50, 50)});
  EXPECT_EQ(pids(found), Pids{});
  EXPECT_EQ(found.recycled, 1u);
}

// R11.2: recycled within the same tick of the clock
TEST(Belongings, TheInodeTellsApartWhatStartedInTheSameTick) {
  auto named = entry(50, 100);
  named.identity.inode = 4711;
  EXPECT_EQ(pids(find({named}, {process(50, 100, 1, 50)}, 4712)), Pids{});
  EXPECT_EQ(pids(find({named}, {process(50, 100, 1, 50)}, 4711)), Pids{50});
  EXPECT_EQ(pids(find({named}, {process(50, 100, 1, 50)}, 0)), Pids{50}) << "a kernel that has none";
}

// R11.2
TEST(Belongings, EntriesOfAnotherBootOrNamespaceNameNobody) {
  auto boot = entry(50, 100, "9.1");
  boot.system.boot = "boot-0";
  auto space = entry(50, 100, "9.1");
  space.system.pid_ns = 8;
  const auto found = find({boot, space}, {process(50, 100, 1, 50, "/9.1/")});
  EXPECT_EQ(pids(found), Pids{});
  EXPECT_EQ(found.other_system, 2u);
}

// R11.2: what it has started
TEST(Belongings, ChildrenSessionsAndGroupsOfTheLivingBelongToo) {
  const auto found =
      find({entry(50, 100)}, {process(50, 100, 9, 50), process(51, 110, 50, 50), process(52, 120, 1, 50),
                              process(53, 130, 51, 53), process(54, 140, 1, 53), process(60, 140, 1, 60)});
  EXPECT_EQ(pids(found), (Pids{50, 51, 52, 53, 54}));
}

TEST(Belongings, TheCookieFindsWhatIsLeftOfTheDead) {
  const auto found =
      find({entry(50, 100, "9.77")},
           {process(61, 150, 1, 61, "/9.77/"), process(62, 160, 61, 62), process(63, 150, 1, 63, "/9.7/"),
            process(64, 150, 1, 64, "/9.777/"), process(65, 150, 1, 65, "/3.1/9.77/8.2/")});
  EXPECT_EQ(pids(found), (Pids{61, 62, 65}));
}

TEST(Belongings, WhatIsOlderThanItsEntryDoesNotDescendFromIt) {
  EXPECT_EQ(pids(find({entry(50, 100, "9.77")}, {process(61, 99, 1, 61, "/9.77/")})), Pids{});
}

// A session outlives its leader, and so does the number; but a number could also be another's session by now.
TEST(Belongings, ASessionWithoutItsLeaderNeedsAMemberThatIsKnown) {
  EXPECT_EQ(pids(find({entry(50, 100, "9.77")}, {process(61, 150, 1, 50)})), Pids{});
  EXPECT_EQ(
      pids(find({entry(50, 100, "9.77")}, {process(61, 150, 1, 50), process(62, 150, 1, 50, "/9.77/")})),
      (Pids{61, 62}));
}

TEST(Belongings, AZombieLeaderStillVouchesForItsSession) {
  auto leader = process(50, 100, 9, 50);
  leader.zombie = true;
  EXPECT_EQ(pids(find({entry(50, 100)}, {leader, process(61, 150, 1, 50)})), Pids{61});
}

TEST(Belongings, TheCgroupHoldsItsMembersAndThoseBelow) {
  auto inside = process(61, 150, 1, 61);
  inside.cgroup = "/a/fairlead-9-77";
  auto below = process(62, 150, 1, 62);
  below.cgroup = "/a/fairlead-9-77/inner";
  auto beside = process(63, 150, 1, 63);
  beside.cgroup = "/a/fairlead-9-777";
  EXPECT_EQ(pids(find({entry(50, 100, "9.77", "/sys/fs/cgroup/a/fairlead-9-77")}, {inside, below, beside})),
            (Pids{61, 62}));
}

TEST(Belongings, ACgroupOfAnotherNameOrCookieIsNotFollowed) {
  auto in_root = process(61, 150, 1, 61);
  in_root.cgroup = "/";
  auto in_slice = process(62, 150, 1, 62);
  in_slice.cgroup = "/user.slice/fairlead-9-77";
  for (const std::string cgroup :
       {"/", "", "//", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice", "/a/../user.slice", "fairlead-9-77",
        "/a/fairlead-9-77/..", "/a/./fairlead-9-77", "/a//fairlead-9-77", "/a/fairlead-9-77/",
        "/a/fairlead-"}) {
    EXPECT_EQ(pids(find({entry(50, 100, "9.77", cgroup)}, {in_root, in_slice})), Pids{}) << cgroup;
  }
  EXPECT_EQ(pids(find({entry(50, 100, "9.78", "/a/fairlead-9-77")}, {in_slice})), Pids{});
  EXPECT_EQ(pids(find({entry(50, 100, "", "/a/fairlead-9-77")}, {in_slice})), Pids{});
}

TEST(Belongings, NeitherWeNorTheFirstProcessBelongToAnybody) {
  const auto found =
      find({entry(50, 100, "9.77")}, {process(50, 100, 9, 50), process(1000, 150, 50, 50, "/9.77/")});
  EXPECT_EQ(pids(found), Pids{50});
}

}  // namespace
}  // namespace fairlead::process
