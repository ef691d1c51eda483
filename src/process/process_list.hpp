// All processes there are, as far as it matters to whom they belong.
#pragma once

#include <string>
#include <vector>

#include "process/keeper/proc.hpp"

namespace fairlead::process {

struct ProcessFacts {
  keeper::Identity identity;  // the inode only where asked for
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  bool zombie = false;
  std::string cookies;  // all segments of its cookie, each between two '/'
  std::string cgroup;   // of the v2 hierarchy, as /proc tells it
};

// Nothing for a process that has ended in the meantime.
std::vector<ProcessFacts> list_processes();

}  // namespace fairlead::process
