// ManifestMatches: the live processes that belong to the entries of a manifest. Performs no I/O: the result
// depends on the arguments only, so that every case can be tested.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "process/manifest_entry.hpp"
#include "process/process_list.hpp"

namespace fairlead::process {

struct MatchedProcess {
  keeper::ProcessIdentity identity;
  std::size_t entry_index;  // index of the entry to which the process belongs
  const char* matched_by;   // entry, cookie, cgroup, session, group, parent
};

struct ManifestMatches {
  std::vector<MatchedProcess> alive;   // without zombies
  std::vector<bool> has_live_process;  // for each entry, whether a process in `alive` belongs to it
  std::size_t other_system_count = 0;  // entries of another boot or pid namespace
  std::size_t recycled_count = 0;      // entries whose pid now belongs to another process
};

// What match_processes() needs to know about this system and this process.
struct MatchContext {
  SystemIdentity system;
  pid_t self_pid = 0;  // this process, which never matches an entry
  // Returns the inode of a process's pidfd, or 0 if it is not known.
  std::function<std::uint64_t(pid_t)> inode_of;
};

// Matches processes with manifest entries. A process belongs to an entry if it has the entry's identity (pid,
// start time and inode), has its cookie, is in its cgroup, or is a child of, or in the session or process
// group of, a process that belongs to the entry. An equal pid alone is not a match.
ManifestMatches match_processes(const std::vector<ManifestEntry>& entries,
                                const std::vector<ProcessInfo>& processes, const MatchContext& context);

}  // namespace fairlead::process
