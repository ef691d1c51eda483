// Ending what a manifest names and what that has started, when whoever started it cannot any more. A process
// is touched only after it has been proven to be the one that is meant: a number that was given to another
// process in the meantime is left alone.
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
  TerminateOptions() {}  // NOLINT: not defaulted, see ConnectOptions

  std::chrono::milliseconds grace{1'000};     // between SIGTERM and SIGKILL
  std::chrono::milliseconds patience{5'000};  // how long to go on with SIGKILL
  bool dry_run = false;                       // only say what would be ended
};

enum class Ending : std::uint8_t {
  would_end,      // dry run
  ended,          // after SIGTERM
  killed,         // after SIGKILL
  not_permitted,  // it runs as somebody else
  still_there,    // the kernel has not let it go
};

std::string_view to_string(Ending ending) noexcept;

struct TerminatedProcess {
  pid_t pid = 0;
  std::string name;  // of the child it belongs to
  std::string by;    // why it belongs: entry, cookie, cgroup, session, group, parent
  Ending ending = Ending::would_end;
};

struct TerminateReport {
  std::vector<TerminatedProcess> processes;
  std::size_t entries = 0;       // in the manifest
  std::size_t recycled = 0;      // whose number is another process's now
  std::size_t other_system = 0;  // of another boot or pid namespace
  std::size_t unreadable = 0;    // lines that are no entries
  // Values of `cgroup` that do not name a cgroup created for the entry's process. They are left alone.
  std::vector<std::string> foreign_cgroups;

  // Whether nothing is left (or, in a dry run, there is nothing).
  bool all_gone() const noexcept;
};

// Blocks for at most `grace` and `patience`. Any number of these may run at the same time. Compacts the
// manifest afterwards. Kind validation for a file that is no manifest of this user, io for one that cannot be
// read.
Result<TerminateReport> terminate_manifest(const std::string& path, const TerminateOptions& options);

// Blocks until the process is gone; returns at once when it is already, or when its number has been given to
// one that is younger than we are ourselves.
Result<void> wait_for_process(pid_t pid);

}  // namespace fairlead
