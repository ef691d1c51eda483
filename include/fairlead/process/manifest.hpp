// Manifest: a file with an entry for every process that the library starts, written before the process runs
// its program. If this process and its keeper are killed at the same moment, `fairlead terminate` ends the
// remaining processes. docs/processes.md describes the format.
#pragma once

#include <cstddef>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead {

struct ManifestOptions {
  std::string path;  // empty: no manifest is written. Several processes may share one file.
  // If true, starting a child fails when its entry cannot be written. If false, the child runs, and
  // Child::containment_status() reports the missing entry.
  bool required = true;
  // Each time the keeper of one loop has added this many entries, the file is compacted (see
  // compact_manifest()).
  std::size_t compact_after = 1000;
};

// Removes the entries that have no live process and the empty cgroups they name, and creates the file if it
// does not exist. Call it at startup. Does not block on locks. Fails with kind `validation` if the file is
// not a manifest, belongs to another user or is a symbolic link, and with kind `io` (os_error EWOULDBLOCK) if
// another process has locked it, possibly to compact it too.
Result<void> compact_manifest(const std::string& path);

}  // namespace fairlead
