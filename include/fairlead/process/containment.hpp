// Containment: the resources and files that a child process may use, and the measures that enforce it. They
// are applied before the child's program runs, with kernel mechanisms only. docs/processes.md describes what
// each measure guarantees and requires.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// Whether a containment measure is applied, and what happens if this system does not support it.
enum class Requirement : std::uint8_t {
  off,          // not applied
  best_effort,  // the child runs without it, and Child::containment_status() reports that
  required,     // the child is not started, and the error names the measure
};

// Resource limits (setrlimit). An unset limit is not changed. A set limit becomes the soft and the hard
// limit; the hard CPU limit is one second higher.
struct ResourceLimits {
  std::optional<std::uint64_t> address_space;  // bytes (RLIMIT_AS)
  std::optional<std::uint64_t> open_files;     // RLIMIT_NOFILE
  std::optional<std::uint64_t> processes;      // of the user, not only of the child (RLIMIT_NPROC)
  std::optional<std::uint64_t> cpu_seconds;    // RLIMIT_CPU
  std::optional<std::uint64_t> core_bytes;     // RLIMIT_CORE
  std::optional<std::uint64_t> file_bytes;     // size of a written file (RLIMIT_FSIZE)

  bool any_set() const noexcept {
    return address_space || open_files || processes || cpu_seconds || core_bytes || file_bytes;
  }
  bool operator==(const ResourceLimits&) const = default;
};

// Files that the child and its descendants may access; the kernel denies access to all others. A path
// includes everything below it.
struct FileAccess {
  std::vector<std::string> read;
  std::vector<std::string> write;    // read, write, create and remove
  std::vector<std::string> execute;  // read and execute
  // Whether to allow the paths that nearly every program needs: the system's executables and libraries, read
  // access to /etc and /proc, and devices such as /dev/null. The program itself is always allowed; its
  // working directory is not.
  bool system_paths = true;

  bool operator==(const FileAccess&) const = default;
};

struct Containment {
  // Whether the child gets a cgroup of its own. Descendants cannot leave the cgroup and are killed with it.
  Requirement cgroup = Requirement::best_effort;
  // The cgroup directory in which to create it. If empty, the cgroup of this process is used, provided that
  // it has been delegated.
  std::string cgroup_parent;
  // Limits on the child and its descendants together. They require the cgroup.
  std::optional<std::uint64_t> memory_max;  // bytes
  std::optional<std::uint64_t> pids_max;    // processes and threads

  ResourceLimits limits;
  Requirement limits_mode = Requirement::required;

  // Whether the child and its descendants are prevented from gaining privileges through set-user-ID programs
  // (PR_SET_NO_NEW_PRIVS). sudo does not work then, nor does a set-user-ID sandbox.
  Requirement no_new_privs = Requirement::off;

  FileAccess files;
  Requirement landlock = Requirement::off;  // whether `files` is enforced; implies no_new_privs

  bool operator==(const Containment&) const = default;
};

// A mechanism that limits a child process or ensures that it ends.
enum class ContainmentMeasure : std::uint8_t {
  process_group,        // the child leads a session and process group of its own
  parent_death_signal,  // the kernel kills the child when its keeper dies
  subreaper,            // orphaned descendants become children of the keeper
  manifest,             // the child is recorded in a manifest, so that terminate_manifest() finds it
  // The following measures are those that the members of Containment with the same names request.
  cgroup,
  memory_max,
  pids_max,
  limits,
  no_new_privs,
  landlock,
};

std::string_view to_string(ContainmentMeasure measure) noexcept;

// Returns the reason why a child with this containment can send signals to this process and to its keeper,
// which run as the same user. Empty if the kernel prevents it.
std::string signal_exposure(const Containment& containment);

// The state of one containment measure that was requested for a child.
struct ContainmentStatus {
  ContainmentMeasure measure;
  bool in_force = true;
  std::string reason;  // why the measure is not in force
};

}  // namespace fairlead
