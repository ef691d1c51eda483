// Writing to a manifest: a file that names every process started, so that somebody else can end them when we
// cannot (docs/processes.md). Used by the keeper's children between fork and exec, and by the library.
#pragma once

#include <sys/uio.h>

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

// The first line of every manifest. A file that has another one is not ours to write to.
inline constexpr char kManifestHeader[] = "{\"fairlead_manifest\":1}\n";

// Opens the file for appending and creates it if need be. Never waits. Returns -1 and errno: EBADMSG if it is
// no manifest, EPERM if it belongs to another user, ELOOP if it is a symbolic link, EWOULDBLOCK if another
// process holds a lease on it.
int open_manifest(const char* path);

// Whether `path` still names the open file. Compaction replaces the file.
bool is_current_manifest(int fd, const char* path);

// Appends `parts` in one write, on stable storage when `sync`; again if the file is replaced meanwhile. No
// lock is taken: any process of this user could hold it. An entry that reaches the old file of a compaction
// before the new one has its name is copied by the compactor (compact_manifest); a later one finds the other
// file under the name, and is written again. Returns errno, or 0; EBUSY if the file is replaced all the time.
int append_to_manifest(const char* path, const iovec* parts, int count, bool sync);

// Appends the entry of one process, on stable storage when `sync`. `rest` is what follows the identity in its
// line, up to and with the closing brace. Returns errno, or 0.
int append_manifest(const char* path, const Identity& who, const char* rest, bool sync);

}  // namespace fairlead::keeper
