// Where children's cgroups can be made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "process/manifest_entry.hpp"

namespace fairlead::process {

struct CgroupHome {
  std::string directory;  // empty: nowhere
  std::string why_not;
};

// `parent`: the directory the user names, or empty for where we are ourselves, provided it has been
// delegated: it is ours to write to, and we are not root, or its manager says so, or it is the root of what
// we see.
CgroupHome find_cgroup_home(const std::string& parent);

// Whether cgroups below `directory` have this controller, which is switched on if need be. Otherwise why not.
Result<void> enable_controller(const std::string& directory, std::string_view controller);

// Removes what keepers that are gone have left there: only what is empty, and of some age.
void remove_stale_cgroups(const std::string& directory);

// Kills what is in the cgroups of a keeper that has died, those of the same run as `some_token`.
void kill_cgroups_of(const std::string& directory, int keeper, std::uint64_t some_token);

// The cgroup that was created for the child of a manifest entry. False if the entry names none or something
// else (own_cgroup_name), if the path leads through a symbolic link, or if it is not in a cgroup v2
// hierarchy.
class OwnCgroup {
 public:
  explicit OwnCgroup(const ManifestFacts& facts);
  explicit operator bool() const noexcept { return static_cast<bool>(parent_); }
  // Valid while this object lives: a path below the directory that was verified.
  const char* path() const noexcept { return path_.c_str(); }

 private:
  UniqueFd parent_;
  std::string path_;
};

// Pieces of it. Our directory by /proc/self/cgroup and /proc/self/mountinfo; empty when there is no cgroup
// v2.
std::string own_cgroup(std::string_view cgroup, std::string_view mountinfo);
// Whether a child's cgroup can be made in this directory.
CgroupHome check_cgroup_home(const std::string& directory);

}  // namespace fairlead::process
