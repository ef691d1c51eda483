// CgroupParent: the cgroup v2 directory in which the cgroups of child processes are created.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "process/manifest_entry.hpp"

namespace fairlead::process {

struct CgroupParent {
  std::string directory;  // empty if there is no suitable directory
  std::string reason;     // why there is no suitable directory
};

// Finds the directory in which to create cgroups. `parent` is the directory configured by the user. If it is
// empty, the cgroup of this process is used, provided that it is writable and counts as delegated: this
// process does not run as root, or the cgroup manager has marked the cgroup as delegated, or it is the root
// of the visible hierarchy.
CgroupParent find_cgroup_parent(const std::string& parent);

// Enables a controller for the cgroups below `directory` unless it is already enabled. Fails with kind
// `spawn` and the reason if the controller is unavailable or cannot be enabled.
Result<void> enable_controller(const std::string& directory, std::string_view controller);

// Removes cgroups whose keeper has ended, if they are empty and older than a minute.
void remove_stale_cgroups(const std::string& directory);

// Kills the processes in the cgroups of a keeper that has died. Only cgroups of the same run of the library
// are affected: the upper half of their token equals that of `run_token`.
void kill_cgroups_of_keeper(const std::string& directory, int keeper, std::uint64_t run_token);

// EntryCgroup: verified access to the cgroup that was created for the child of a manifest entry. Converts to
// false if the entry names no such cgroup (see entry_cgroup_name), if the path contains a symbolic link, or
// if it is not in a cgroup v2 hierarchy.
class EntryCgroup {
 public:
  explicit EntryCgroup(const EntryFields& fields);
  explicit operator bool() const noexcept { return static_cast<bool>(parent_); }
  // Returns a path below the verified directory. It is valid during the lifetime of this object.
  const char* path() const noexcept { return path_.c_str(); }

 private:
  UniqueFd parent_;
  std::string path_;
};

// ---- exposed for tests ----

// Returns the cgroup directory of this process, given the contents of /proc/self/cgroup and
// /proc/self/mountinfo. Empty if there is no cgroup v2 hierarchy.
std::string current_cgroup(std::string_view cgroup, std::string_view mountinfo);
// Checks whether the cgroup of a child can be created in `directory`.
CgroupParent check_cgroup_parent(const std::string& directory);

}  // namespace fairlead::process
