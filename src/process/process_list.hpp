// list_processes: all processes of the system with the attributes that manifest entries are matched by.
#pragma once

#include <string>
#include <vector>

#include "process/keeper/proc.hpp"

namespace fairlead::process {

struct ProcessInfo {
  keeper::ProcessIdentity identity;  // without the inode, which list_processes() does not read
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  bool zombie = false;
  std::string cookies;  // all segments of the cookie, each between two '/'
  std::string cgroup;   // in the v2 hierarchy, as in /proc/<pid>/cgroup
};

// Returns all processes of the system. A process that ends during the call may be omitted.
std::vector<ProcessInfo> list_processes();

}  // namespace fairlead::process
