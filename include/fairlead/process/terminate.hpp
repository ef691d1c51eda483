// Terminates the processes of a manifest and their descendants when the process that started them has died. A
// process is signalled only after its identity has been verified: a pid that the kernel has reused for
// another process is left alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead {

struct TerminateOptions {
  TerminateOptions() {}  // NOLINT: not defaulted, see StreamConnectOptions

  std::chrono::milliseconds grace{1'000};         // between SIGTERM and SIGKILL
  std::chrono::milliseconds kill_timeout{5'000};  // SIGKILL is repeated for at most this long
  bool dry_run = false;                           // only report the processes that would be terminated
};

enum class TerminationResult : std::uint8_t {
  would_end,      // dry run
  ended,          // ended after SIGTERM
  killed,         // ended after SIGKILL
  not_permitted,  // the process runs as another user
  still_running,  // the process still exists after SIGKILL and `kill_timeout`
};

std::string_view to_string(TerminationResult result) noexcept;

// A process that belongs to an entry of the manifest, and the result of its termination.
struct TerminatedProcess {
  pid_t pid = 0;
  std::string name;        // of the child in the manifest to which the process belongs
  std::string matched_by;  // how the process was matched: entry, cookie, cgroup, session, group, parent
  TerminationResult result = TerminationResult::would_end;
};

struct TerminateReport {
  std::vector<TerminatedProcess> processes;
  std::size_t entry_count = 0;            // in the manifest
  std::size_t recycled_count = 0;         // entries whose pid the kernel has reused for another process
  std::size_t other_system_count = 0;     // entries of another boot or pid namespace
  std::size_t unreadable_line_count = 0;  // lines that are not entries
  // Values of `cgroup` that do not name a cgroup created for the process of the entry. They are not used.
  std::vector<std::string> foreign_cgroups;

  // Returns whether all processes have ended (in a dry run: whether there were none).
  bool all_ended() const noexcept;
};

// Terminates the processes of the manifest at `path` and compacts the manifest afterwards. Blocks for at most
// `grace` plus `kill_timeout`. May run concurrently with other calls on the same manifest. Fails with kind
// `validation` if the file is not a manifest of this user, and with kind `io` if it cannot be read.
Result<TerminateReport> terminate_manifest(const std::string& path, const TerminateOptions& options);

// Blocks until the process has ended. Returns immediately if it has already ended, or if its pid now belongs
// to a process that started after this one.
Result<void> wait_for_process(pid_t pid);

}  // namespace fairlead
