// Which of the living processes belong to the entries of a manifest. No I/O: decided from facts alone, so
// that it can be tested with any of them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "process/manifest_entry.hpp"
#include "process/process_list.hpp"

namespace fairlead::process {

struct Belonging {
  keeper::Identity identity;
  std::size_t entry;  // index of the entry it belongs to
  const char* by;     // entry, cookie, cgroup, session, group, parent
};

struct Belongings {
  std::vector<Belonging> alive;  // zombies are not
  std::vector<bool> has_some;    // for each entry, whether something of it is alive
  std::size_t other_system = 0;  // entries of another boot or pid namespace
  std::size_t recycled = 0;      // entries whose number is another process's now
};

struct Whereabouts {
  SystemIdentity system;
  pid_t self = 0;  // never belongs to anybody
  // The inode of a process's pidfd, or 0 when not known.
  std::function<std::uint64_t(pid_t)> inode_of;
};

// A process belongs to an entry when it is the very one (number, start, inode), has its cookie, is in its
// cgroup, or was started by, or is in the session or group of, one that belongs to it. A number alone proves
// nothing.
Belongings find_belongings(const std::vector<ManifestEntry>& entries,
                           const std::vector<ProcessFacts>& processes, const Whereabouts& here);

}  // namespace fairlead::process
