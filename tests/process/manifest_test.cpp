// The manifest is complete, whole and ours, whatever happens to it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "fairlead/process/failure.hpp"
#include "fairlead/process/manifest.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/manifest_entry.hpp"
#include "process/support.hpp"

namespace fairlead::test {
namespace {

using process::ManifestEntry;
using process::ManifestText;

class Manifest : public ::testing::Test {
 protected:
  ProcessSpec spec(std::string command = "cat", std::vector<std::string> args = {}) const {
    ProcessSpec spec = spec_of(std::move(command), std::move(args));
    spec.manifest.path = path_;
    return spec;
  }
  std::string text() const { return read_file(path_); }
  ManifestText parsed() const { return process::parse_manifest(text()); }
  void append(std::string_view text) const { std::ofstream(path_, std::ios::app) << text; }
  const ManifestEntry* entry_of(const ManifestText& manifest, pid_t pid) const {
    const auto found = std::ranges::find(manifest.entries, pid, [](const auto& e) { return e.identity.pid; });
    return found == manifest.entries.end() ? nullptr : &*found;
  }

  TemporaryDirectory dir_;
  const std::string path_ = dir_.path() + "/manifest";
};

// R11.1
TEST_F(Manifest, NamesTheChildAndItsKeeperBeforeTheChildRuns) {
  Loop loop;
  // What the child itself sees of it, first thing. It stays a shell: while it became another program its
  // environment could not be read.
  const Running running = start(loop, spec("sh", {"-c", "grep -c '\"pid\":'$$, '" + path_ + "'; cat; :"}));
  EXPECT_EQ(running.line(), "1");
  const pid_t pid = running.child->pid();
  const ManifestText manifest = parsed();
  ASSERT_EQ(manifest.entries.size(), 2u) << text();
  EXPECT_EQ(manifest.unreadable, 0u);
  const ManifestEntry* child = entry_of(manifest, pid);
  const ManifestEntry* keeper = entry_of(manifest, parent_of(pid));
  ASSERT_TRUE(child && keeper) << text();
  keeper::Identity identity;
  ASSERT_TRUE(keeper::identify(pid, identity));
  EXPECT_EQ(child->identity.start, identity.start);
  EXPECT_EQ(child->identity.inode, identity.inode);
  EXPECT_EQ(child->system, process::SystemIdentity::here());
  EXPECT_EQ(child->facts.role, "child");
  EXPECT_EQ(child->facts.name, "sh");
  EXPECT_TRUE(child->facts.digest.starts_with("sha256:"));
  EXPECT_EQ(child->facts.digest.size(), 7u + 64u);
  EXPECT_TRUE(read_file("/proc/" + std::to_string(pid) + "/environ").contains(child->facts.cookie));
  EXPECT_EQ(keeper->facts.role, "keeper");
  EXPECT_TRUE(text().contains("\nkill " + std::to_string(pid) + "\n")) << "for simpler tools";
}

// R11.1
TEST_F(Manifest, IsForItsOwnerOnly) {
  Loop loop;
  const Running running = start(loop, spec());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Manifest, ManyAtOnceDoNotMixTheirLines) {
  Loop loop;
  std::vector<std::shared_ptr<Child>> children;
  std::size_t done = 0;
  for (int i = 0; i < 60; ++i) {
    loop.spawn([](Loop& on, ProcessSpec what, std::vector<std::shared_ptr<Child>>& into,
                  std::size_t& count) -> Task<void> {
      auto child = co_await Child::spawn(on, std::move(what));
      if (child) into.push_back(*child);
      ++count;
    }(loop, spec(), children, done));
  }
  loop.run_until([&] { return done == 60; });
  const ManifestText manifest = parsed();
  EXPECT_EQ(children.size(), 60u);
  EXPECT_EQ(manifest.entries.size(), 61u);
  EXPECT_EQ(manifest.unreadable, 0u);
}

// R11.1
TEST_F(Manifest, ATornLineSpoilsNoOther) {
  {
    Loop loop;
    start(loop, spec());
  }
  append("{\"pid\":12,\"sta");
  Loop loop;
  const Running running = start(loop, spec());
  const ManifestText manifest = parsed();
  EXPECT_EQ(manifest.unreadable, 1u);
  EXPECT_TRUE(entry_of(manifest, running.child->pid()));
}

// R11.1
TEST_F(Manifest, AForeignFileIsRefusedAndNotTouched) {
  for (const std::string_view content : {"precious\n", "{\"fairlead_manifest\":2}\n", "{"}) {
    dir_.write("manifest", content, 0600);
    Loop loop;
    const Error error = start_error(loop, spec());
    EXPECT_EQ(error.detail().code, failure::manifest_unavailable);
    EXPECT_EQ(error.message(), path_ + " is not a manifest: its first line is not {\"fairlead_manifest\":1}");
    EXPECT_FALSE(compact_manifest(path_));
    EXPECT_EQ(text(), content);
  }
}

TEST_F(Manifest, AForeignFileThatTakesItsPlaceIsNamedAsOne) {
  Loop loop;
  const Running running = start(loop, spec());
  dir_.write("manifest", "precious\n", 0600);
  const Error error = start_error(loop, spec());
  EXPECT_EQ(error.detail().code, failure::manifest_unavailable);
  EXPECT_EQ(error.message(), "cannot enter `cat` in its manifest: " + path_ +
                                 " is not a manifest: its first line is not {\"fairlead_manifest\":1}");
  EXPECT_EQ(text(), "precious\n");
}

// R11.1
TEST_F(Manifest, ASymbolicLinkIsRefused) {
  dir_.write("target", "", 0600);
  std::filesystem::create_symlink(dir_.path() + "/target", path_);
  Loop loop;
  EXPECT_EQ(start_error(loop, spec()).message(), path_ + " is a symbolic link");
  EXPECT_EQ(read_file(dir_.path() + "/target"), "");
}

TEST_F(Manifest, WhatIsNoFileIsRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  Loop loop;
  EXPECT_EQ(start_error(loop, spec()).detail().code, failure::manifest_unavailable);
}

TEST_F(Manifest, OneThatIsNotRequiredMayBeMissing) {
  Loop loop;
  ProcessSpec wish = spec();
  wish.manifest.path = "/nowhere/manifest";
  EXPECT_EQ(start_error(loop, wish).detail().code, failure::manifest_unavailable);
  wish.manifest.required = false;
  const Running running = start(loop, wish);
  const auto state = std::ranges::find(running.child->belts(), Belt::manifest, &BeltState::belt);
  ASSERT_NE(state, running.child->belts().end());
  EXPECT_FALSE(state->in_force);
  EXPECT_TRUE(state->why_not.starts_with("/nowhere/manifest: ")) << state->why_not;
}

// Removed by somebody while we run: it is made anew, and the child is in it.
TEST_F(Manifest, OneThatVanishedIsMadeAgain) {
  Loop loop;
  const Running first = start(loop, spec());
  std::filesystem::remove(path_);
  const Running second = start(loop, spec());
  EXPECT_TRUE(entry_of(parsed(), second.child->pid()));
}

// R11.1
TEST_F(Manifest, CompactionDropsTheDeadAndKeepsTheLiving) {
  Loop loop;
  const Running living = start(loop, spec());
  for (int i = 0; i < 5; ++i) {
    const Running dead = start(loop, spec("true"));
    wait_for(loop, *dead.child);
  }
  append("garbage\n");
  EXPECT_EQ(parsed().entries.size(), 7u);
  ASSERT_TRUE(compact_manifest(path_));
  const ManifestText manifest = parsed();
  EXPECT_EQ(manifest.entries.size(), 2u) << text();
  EXPECT_EQ(manifest.unreadable, 0u);
  EXPECT_TRUE(entry_of(manifest, living.child->pid()));
  EXPECT_TRUE(text().contains("\nkill " + std::to_string(living.child->pid()) + "\n"));
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // And it is still the one that is written to.
  const Running next = start(loop, spec());
  EXPECT_TRUE(entry_of(parsed(), next.child->pid()));
}

// The entry is all that is left to tell by whose the stray is.
TEST_F(Manifest, CompactionKeepsAnEntryOfWhichOnlyAStrayIsLeft) {
  Loop loop;
  ProcessSpec strays = spec(fixture("escapes_session"));
  strays.containment.cgroup = Requirement::off;
  std::optional<Running> running = start(loop, std::move(strays));
  const Watched stray(running->number("stray"));
  const pid_t leader = running->child->pid();
  const pid_t keeper = parent_of(leader);
  ::kill(keeper, SIGSTOP);  // it would end the stray
  ::kill(leader, SIGKILL);
  ASSERT_TRUE(compact_manifest(path_));
  EXPECT_TRUE(entry_of(parsed(), leader)) << text();
  ::kill(keeper, SIGCONT);
  wait_for(loop, *running->child);
  EXPECT_TRUE(stray.ends_within(kPatience));
  ASSERT_TRUE(compact_manifest(path_));
  EXPECT_FALSE(entry_of(parsed(), leader));
}

TEST_F(Manifest, ALongLifeDoesNotFillTheDisk) {
  Loop loop;
  for (int i = 0; i < 25; ++i) {
    ProcessSpec brief = spec("true");
    brief.manifest.compact_after = 5;
    wait_for(loop, *start(loop, std::move(brief)).child);
  }
  EXPECT_LE(parsed().entries.size(), 8u);
}

// Any process of this user can lock the file.
TEST_F(Manifest, ALockHeldByAServerDelaysNoStart) {
  Loop loop;
  const Running first = start(loop, spec());
  const UniqueFd held(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const auto before = Clock::now();
  std::vector<Running> running;
  for (int i = 0; i < 5; ++i) running.push_back(start(loop, spec()));
  EXPECT_LT(Clock::now() - before, 10s);
  const ManifestText manifest = parsed();
  for (const Running& one : running) EXPECT_TRUE(entry_of(manifest, one.child->pid()));
  const Result<void> compacted = compact_manifest(path_);
  ASSERT_FALSE(compacted);
  EXPECT_EQ(compacted.error().message(), path_ + " is locked by another process");
}

// Opening a file that has a lease would wait for its holder.
TEST_F(Manifest, ALeaseHeldByAServerFailsTheStartAtOnce) {
  Loop loop;
  const Running first = start(loop, spec());
  const UniqueFd held(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(held.get(), F_SETLEASE, F_WRLCK) < 0) GTEST_SKIP() << "no leases on this file system";
  const auto before = Clock::now();
  const Error error = start_error(loop, spec());
  EXPECT_LT(Clock::now() - before, 10s);
  EXPECT_EQ(error.detail().code, failure::manifest_unavailable);
  EXPECT_EQ(error.message(),
            "cannot enter `cat` in its manifest: " + path_ + " is locked by another process");
}

// R11.1: several gateways, one file, one of them compacting all the time
TEST_F(Manifest, NoEntryIsLostWhileAnotherCompacts) {
  ASSERT_TRUE(compact_manifest(path_));
  const pid_t compactor = ::fork();
  if (compactor == 0) {
    for (;;) {
      if (!compact_manifest(path_)) ::_exit(1);
    }
  }
  Loop loop;
  std::vector<Running> running;
  for (int i = 0; i < 40; ++i) {
    running.push_back(start(loop, spec()));
    wait_for(loop, *start(loop, spec("true")).child);
  }
  ::kill(compactor, SIGKILL);
  ::waitpid(compactor, nullptr, 0);
  const ManifestText manifest = parsed();
  for (const Running& one : running) EXPECT_TRUE(entry_of(manifest, one.child->pid()));
}

}  // namespace
}  // namespace fairlead::test
