// Replaces a file so that another process, or the next start after a crash, sees the old or the new content
// and never a part of it.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// Writes `content` to a temporary file in the directory of `path`, syncs it, and renames it to `path`. A new
// file has the permissions `mode`; an existing one keeps its permissions and, if this process may set them,
// its owner and group. A symbolic link at `path` is replaced: resolve it before. Fails with `io`; then
// `path` is unchanged.
Result<void> replace_file(const std::string& path, std::string_view content, unsigned mode = 0600);

}  // namespace fairlead
