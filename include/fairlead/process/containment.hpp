// Containment: what a child may use and reach, and what holds it. Applied before its program runs, by kernel
// means only. docs/processes.md says what each belt is worth and what it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// What to do about a belt that this system does not have.
enum class Requirement : std::uint8_t {
  off,          // not wanted
  best_effort,  // run without it, and say so (Child::belts)
  required,     // do not start; the error names the belt
};

// Each is left as it is when not set. Both the soft and the hard limit become it (but for a second more of
// CPU).
struct ResourceLimits {
  std::optional<std::uint64_t> address_space;  // bytes (RLIMIT_AS)
  std::optional<std::uint64_t> open_files;     // RLIMIT_NOFILE
  std::optional<std::uint64_t> processes;      // of the user, not of the child alone (RLIMIT_NPROC)
  std::optional<std::uint64_t> cpu_seconds;    // RLIMIT_CPU
  std::optional<std::uint64_t> core_bytes;     // RLIMIT_CORE
  std::optional<std::uint64_t> file_bytes;     // largest file written (RLIMIT_FSIZE)

  bool any() const noexcept {
    return address_space || open_files || processes || cpu_seconds || core_bytes || file_bytes;
  }
  bool operator==(const ResourceLimits&) const = default;
};

// Files the child may reach; all else is refused to it and to whatever it starts. A path allows what is below
// it too.
struct FileAccess {
  std::vector<std::string> read;
  std::vector<std::string> write;    // read, write, create and remove
  std::vector<std::string> execute;  // read and execute
  // What nearly every program needs: executables and libraries of the system, /etc and /proc to read,
  // /dev/null and the like. The program itself and its working directory's contents are not part of it; the
  // program is always allowed, the directory is not.
  bool system_paths = true;

  bool operator==(const FileAccess&) const = default;
};

struct Containment {
  // A cgroup of its own for each child. What is started in it cannot leave it, and is killed with it.
  Requirement cgroup = Requirement::best_effort;
  // Where to make it; empty: where we are, if that has been delegated to us.
  std::string cgroup_parent;
  // Of child and descendants together; they need the cgroup.
  std::optional<std::uint64_t> memory_max;  // bytes
  std::optional<std::uint64_t> pids_max;    // processes and threads

  ResourceLimits limits;
  Requirement limits_mode = Requirement::required;

  // No set-user-ID program gives the child more rights (sudo does not work, nor does a sandbox that is
  // set-user-ID).
  Requirement no_new_privs = Requirement::off;

  FileAccess files;
  Requirement landlock = Requirement::off;  // whether `files` is enforced; implies no_new_privs

  bool operator==(const Containment&) const = default;
};

// What holds a child.
enum class Belt : std::uint8_t {
  process_group,        // own session and group
  parent_death_signal,  // dies with its keeper
  subreaper,            // what it leaves behind comes to the keeper
  manifest,             // a terminator finds it
  cgroup,
  memory_max,
  pids_max,
  limits,
  no_new_privs,
  landlock,
};

std::string_view to_string(Belt belt) noexcept;

// Returns why a child with this containment is able to send signals to this process and to its keeper, which
// run as the same user. Empty if the kernel prevents it.
std::string signal_exposure(const Containment& containment);

// One belt that was wanted for a child.
struct BeltState {
  Belt belt;
  bool in_force = true;
  std::string why_not;
};

}  // namespace fairlead
