// Writing to a manifest: a file that names every process started, so that somebody else can end them when we
// cannot (docs/processes.md). Used by the keeper's children between fork and exec, and by the library.
#pragma once

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

// The first line of every manifest. A file that has another one is not ours to write to.
inline constexpr char kManifestHeader[] = "{\"fairlead_manifest\":1}\n";
// How long to wait for the lock of somebody who compacts the file.
inline constexpr int kManifestLockMs = 2000;

// Opens the file for appending, made if need be, and locks it: nobody else writes or replaces it until the
// descriptor is closed or unlocked. Returns -1 and errno: EBADMSG when it is no manifest, EPERM when it is
// somebody else's, ELOOP when it is a symbolic link, EWOULDBLOCK when it stays locked.
int open_manifest(const char* path);

// Appends the entry of one process, on stable storage when `sync`. `rest` is what follows the identity in its
// line, up to and with the closing brace. Returns errno, or 0.
int append_manifest(const char* path, const Identity& who, const char* rest, bool sync);

}  // namespace fairlead::keeper
