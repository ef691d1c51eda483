// Appends entries to a manifest. A manifest has an entry for every started process, so that another program
// can end these processes (docs/processes.md). Used by the keeper's children between fork and exec, and by
// the library.
#pragma once

#include <sys/uio.h>

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

// The first line of every manifest. A file with another first line is not modified.
inline constexpr char kManifestHeader[] = "{\"fairlead_manifest\":1}\n";

// Opens the file for appending, and creates it if it does not exist. Does not block. On failure returns -1
// with errno set: EBADMSG if the file is not a manifest, EPERM if it belongs to another user, ELOOP if it is
// a symbolic link, EWOULDBLOCK if another process holds a lease on it.
int open_manifest(const char* path);

// Returns whether `path` still names the open file. Compaction replaces the file.
bool is_current_manifest(int fd, const char* path);

// Appends `parts` in one write, to stable storage if `sync`. Retries if the file is replaced meanwhile. Does
// not lock the file, because any process of this user could hold the lock for any length of time.
// compact_manifest() copies an entry that was written to the old file before the rename; after the rename,
// the writer detects that the path names another file, and writes the entry again. Returns errno, or 0 on
// success; EBUSY if the file is replaced at every attempt.
int append_to_manifest(const char* path, const iovec* parts, int count, bool sync);

// Appends the entry of one process, to stable storage if `sync`. `rest` is the part of the line that follows
// the identity, including the closing brace. Returns errno, or 0 on success.
int append_manifest_entry(const char* path, const ProcessIdentity& process, const char* rest, bool sync);

}  // namespace fairlead::keeper
