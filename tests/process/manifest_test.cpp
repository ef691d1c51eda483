// Tests of writing and compacting the manifest.
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
using process::ParsedManifest;

class ManifestTest : public ::testing::Test {
 protected:
  ProcessSpec spec(std::string command = "cat", std::vector<std::string> args = {}) const {
    ProcessSpec spec = spec_of(std::move(command), std::move(args));
    spec.manifest.path = path_;
    return spec;
  }
  std::string text() const { return read_file(path_); }
  ParsedManifest parsed() const { return process::parse_manifest(text()); }
  void append(std::string_view text) const { std::ofstream(path_, std::ios::app) << text; }
  const ManifestEntry* entry_of(const ParsedManifest& manifest, pid_t pid) const {
    const auto found = std::ranges::find(manifest.entries, pid, [](const auto& e) { return e.identity.pid; });
    return found == manifest.entries.end() ? nullptr : &*found;
  }

  TemporaryDirectory dir_;
  const std::string path_ = dir_.path() + "/manifest";
};

// R11.1
TEST_F(ManifestTest, HasEntriesOfChildAndKeeperBeforeChildRuns) {
  Loop loop;
  // The child counts its own entries as its first action. It remains a shell, because its environment could
  // not be read during an execve.
  const RunningChild running =
      start(loop, spec("sh", {"-c", "grep -c '\"pid\":'$$, '" + path_ + "'; cat; :"}));
  EXPECT_EQ(running.read_line(), "1");
  const pid_t pid = running.child->pid();
  const ParsedManifest manifest = parsed();
  ASSERT_EQ(manifest.entries.size(), 2u) << text();
  EXPECT_EQ(manifest.unreadable_line_count, 0u);
  const ManifestEntry* child = entry_of(manifest, pid);
  const ManifestEntry* keeper = entry_of(manifest, parent_of(pid));
  ASSERT_TRUE(child && keeper) << text();
  keeper::ProcessIdentity identity;
  ASSERT_TRUE(keeper::read_process_identity(pid, identity));
  EXPECT_EQ(child->identity.start, identity.start);
  EXPECT_EQ(child->identity.inode, identity.inode);
  EXPECT_EQ(child->system, process::SystemIdentity::current());
  EXPECT_EQ(child->fields.role, "child");
  EXPECT_EQ(child->fields.name, "sh");
  EXPECT_TRUE(child->fields.digest.starts_with("sha256:"));
  EXPECT_EQ(child->fields.digest.size(), 7u + 64u);
  EXPECT_TRUE(read_file("/proc/" + std::to_string(pid) + "/environ").contains(child->fields.cookie));
  EXPECT_EQ(keeper->fields.role, "keeper");
  EXPECT_TRUE(text().contains("\nkill " + std::to_string(pid) + "\n")) << "for tools that parse no JSON";
}

// R11.1
TEST_F(ManifestTest, IsAccessibleToOwnerOnly) {
  Loop loop;
  const RunningChild running = start(loop, spec());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(ManifestTest, ConcurrentEntriesAreNotInterleaved) {
  Loop loop;
  std::vector<std::shared_ptr<Child>> children;
  std::size_t done = 0;
  for (int i = 0; i < 60; ++i) {
    loop.spawn([](Loop& on, ProcessSpec to_start, std::vector<std::shared_ptr<Child>>& into,
                  std::size_t& count) -> Task<void> {
      auto child = co_await Child::spawn(on, std::move(to_start));
      if (child) into.push_back(*child);
      ++count;
    }(loop, spec(), children, done));
  }
  loop.run_until([&] { return done == 60; });
  const ParsedManifest manifest = parsed();
  EXPECT_EQ(children.size(), 60u);
  EXPECT_EQ(manifest.entries.size(), 61u);
  EXPECT_EQ(manifest.unreadable_line_count, 0u);
}

// R11.1
TEST_F(ManifestTest, IncompleteLineDoesNotAffectOthers) {
  {
    Loop loop;
    start(loop, spec());
  }
  append("{\"pid\":12,\"sta");
  Loop loop;
  const RunningChild running = start(loop, spec());
  const ParsedManifest manifest = parsed();
  EXPECT_EQ(manifest.unreadable_line_count, 1u);
  EXPECT_TRUE(entry_of(manifest, running.child->pid()));
}

// R11.1
TEST_F(ManifestTest, ForeignFileIsRejectedAndUnchanged) {
  for (const std::string_view content : {"precious\n", "{\"fairlead_manifest\":2}\n", "{"}) {
    dir_.write("manifest", content, 0600);
    Loop loop;
    const Error error = start_error(loop, spec());
    EXPECT_EQ(error.detail().failure_code, failure::manifest_unavailable);
    EXPECT_EQ(error.message(), path_ + " is not a manifest: its first line is not {\"fairlead_manifest\":1}");
    EXPECT_FALSE(compact_manifest(path_));
    EXPECT_EQ(text(), content);
  }
}

TEST_F(ManifestTest, ForeignFileThatReplacesManifestIsRejected) {
  Loop loop;
  const RunningChild running = start(loop, spec());
  dir_.write("manifest", "precious\n", 0600);
  const Error error = start_error(loop, spec());
  EXPECT_EQ(error.detail().failure_code, failure::manifest_unavailable);
  EXPECT_EQ(error.message(), "cannot record `cat` in the manifest: " + path_ +
                                 " is not a manifest: its first line is not {\"fairlead_manifest\":1}");
  EXPECT_EQ(text(), "precious\n");
}

// R11.1
TEST_F(ManifestTest, SymbolicLinkIsRejected) {
  dir_.write("target", "", 0600);
  std::filesystem::create_symlink(dir_.path() + "/target", path_);
  Loop loop;
  EXPECT_EQ(start_error(loop, spec()).message(), path_ + " is a symbolic link");
  EXPECT_EQ(read_file(dir_.path() + "/target"), "");
}

TEST_F(ManifestTest, FifoIsRejected) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  Loop loop;
  EXPECT_EQ(start_error(loop, spec()).detail().failure_code, failure::manifest_unavailable);
}

TEST_F(ManifestTest, UnavailableManifestIsReportedIfNotRequired) {
  Loop loop;
  ProcessSpec with_manifest = spec();
  with_manifest.manifest.path = "/nowhere/manifest";
  EXPECT_EQ(start_error(loop, with_manifest).detail().failure_code, failure::manifest_unavailable);
  with_manifest.manifest.required = false;
  const RunningChild running = start(loop, with_manifest);
  const auto status = std::ranges::find(running.child->containment_status(), ContainmentMeasure::manifest,
                                        &ContainmentStatus::measure);
  ASSERT_NE(status, running.child->containment_status().end());
  EXPECT_FALSE(status->in_force);
  EXPECT_TRUE(status->reason.starts_with("/nowhere/manifest: ")) << status->reason;
}

// Another process removes the file: it is created again with the entry of the next child.
TEST_F(ManifestTest, RemovedManifestIsCreatedAgain) {
  Loop loop;
  const RunningChild first = start(loop, spec());
  std::filesystem::remove(path_);
  const RunningChild second = start(loop, spec());
  EXPECT_TRUE(entry_of(parsed(), second.child->pid()));
}

// R11.1
TEST_F(ManifestTest, CompactionRemovesStaleEntriesAndKeepsLiveOnes) {
  Loop loop;
  const RunningChild living = start(loop, spec());
  for (int i = 0; i < 5; ++i) {
    const RunningChild dead = start(loop, spec("true"));
    wait_for(loop, *dead.child);
  }
  append("garbage\n");
  EXPECT_EQ(parsed().entries.size(), 7u);
  ASSERT_TRUE(compact_manifest(path_));
  const ParsedManifest manifest = parsed();
  EXPECT_EQ(manifest.entries.size(), 2u) << text();
  EXPECT_EQ(manifest.unreadable_line_count, 0u);
  EXPECT_TRUE(entry_of(manifest, living.child->pid()));
  EXPECT_TRUE(text().contains("\nkill " + std::to_string(living.child->pid()) + "\n"));
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // New entries are written to the compacted file.
  const RunningChild next = start(loop, spec());
  EXPECT_TRUE(entry_of(parsed(), next.child->pid()));
}

// The child has ended, and a stray of it is alive. Only the manifest entry identifies the stray.
TEST_F(ManifestTest, CompactionKeepsEntryIfOnlyAStrayIsAlive) {
  Loop loop;
  ProcessSpec strays = spec(fixture("escapes_session"));
  strays.containment.cgroup = Requirement::off;
  std::optional<RunningChild> running = start(loop, std::move(strays));
  const ProcessWatch stray(running->read_number("stray"));
  const pid_t leader = running->child->pid();
  const pid_t keeper = parent_of(leader);
  ::kill(keeper, SIGSTOP);  // a running keeper would kill the stray
  ::kill(leader, SIGKILL);
  ASSERT_TRUE(compact_manifest(path_));
  EXPECT_TRUE(entry_of(parsed(), leader)) << text();
  ::kill(keeper, SIGCONT);
  wait_for(loop, *running->child);
  EXPECT_TRUE(stray.ends_within(kTimeout));
  ASSERT_TRUE(compact_manifest(path_));
  EXPECT_FALSE(entry_of(parsed(), leader));
}

TEST_F(ManifestTest, CompactionKeepsFileSmallAfterManyStarts) {
  Loop loop;
  for (int i = 0; i < 25; ++i) {
    ProcessSpec brief = spec("true");
    brief.manifest.compact_after = 5;
    wait_for(loop, *start(loop, std::move(brief)).child);
  }
  EXPECT_LE(parsed().entries.size(), 8u);
}

// Any process of this user can lock the file.
TEST_F(ManifestTest, LockedManifestDoesNotDelayStart) {
  Loop loop;
  const RunningChild first = start(loop, spec());
  const UniqueFd manifest_fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(manifest_fd.get(), LOCK_EX), 0);
  const auto before = Clock::now();
  std::vector<RunningChild> running;
  for (int i = 0; i < 5; ++i) running.push_back(start(loop, spec()));
  EXPECT_LT(Clock::now() - before, 10s);
  const ParsedManifest manifest = parsed();
  for (const RunningChild& started : running) EXPECT_TRUE(entry_of(manifest, started.child->pid()));
  const Result<void> compacted = compact_manifest(path_);
  ASSERT_FALSE(compacted);
  EXPECT_EQ(compacted.error().message(), path_ + " is locked by another process");
}

// A blocking open of a leased file would wait for the lease holder.
TEST_F(ManifestTest, LeasedManifestFailsStartImmediately) {
  Loop loop;
  const RunningChild first = start(loop, spec());
  const UniqueFd manifest_fd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(manifest_fd.get(), F_SETLEASE, F_WRLCK) < 0) GTEST_SKIP() << "no leases on this file system";
  const auto before = Clock::now();
  const Error error = start_error(loop, spec());
  EXPECT_LT(Clock::now() - before, 10s);
  EXPECT_EQ(error.detail().failure_code, failure::manifest_unavailable);
  EXPECT_EQ(error.message(),
            "cannot record `cat` in the manifest: " + path_ + " is locked by another process");
}

// R11.1: several gateways share one file, and one of them compacts it continuously.
TEST_F(ManifestTest, NoEntryIsLostDuringCompaction) {
  ASSERT_TRUE(compact_manifest(path_));
  const pid_t compactor = ::fork();
  if (compactor == 0) {
    for (;;) {
      if (!compact_manifest(path_)) ::_exit(1);
    }
  }
  Loop loop;
  std::vector<RunningChild> running;
  for (int i = 0; i < 40; ++i) {
    running.push_back(start(loop, spec()));
    wait_for(loop, *start(loop, spec("true")).child);
  }
  ::kill(compactor, SIGKILL);
  ::waitpid(compactor, nullptr, 0);
  const ParsedManifest manifest = parsed();
  for (const RunningChild& started : running) EXPECT_TRUE(entry_of(manifest, started.child->pid()));
}

}  // namespace
}  // namespace fairlead::test
