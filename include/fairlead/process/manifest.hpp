// The manifest: a file that names every process we start, written before the process runs its program. Should
// we and our keeper be killed at the same moment, `fairlead terminate` ends what is left. Its format is in
// docs/processes.md.
#pragma once

#include <cstddef>
#include <string>

#include "fairlead/base/result.hpp"

namespace fairlead {

struct ManifestOptions {
  std::string path;  // empty: none. Several processes may share one file.
  // Whether a child is not started when it cannot be entered. Otherwise it runs, and Child::belts() says so.
  bool required = true;
  // The file is compacted after this many entries were added by one loop.
  std::size_t compact_after = 1000;
};

// Drops the entries of which nothing is alive, creates the file if it does not exist, and removes cgroups
// that are left empty. To be called at start. Does not wait. Fails if the file is not a manifest, belongs to
// another user, is a symbolic link (kind `validation`), or is locked by another process, which may be
// compacting it as well (kind `io`, os_error EWOULDBLOCK).
Result<void> compact_manifest(const std::string& path);

}  // namespace fairlead
