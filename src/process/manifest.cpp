#include "fairlead/process/manifest.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fairlead/loop/descriptor.hpp"
#include "process/cgroup_parent.hpp"
#include "process/files.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/manifest_file.hpp"
#include "process/manifest_matches.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead {

namespace process {

namespace {

Error manifest_error(const std::string& path, int os_error) {
  const ErrorKind kind =
      os_error == EBADMSG || os_error == ELOOP || os_error == EPERM ? ErrorKind::validation : ErrorKind::io;
  return Error(kind, explain_manifest_error(path, os_error)).with([&](ErrorDetail& detail) {
    detail.os_error = os_error;
  });
}

std::string read_all(int fd) {
  std::string text;
  char piece[16 << 10];
  for (;;) {
    const ssize_t n = ::pread(fd, piece, sizeof piece, static_cast<off_t>(text.size()));
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

int sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0 ? 0 : errno;
}

// Replaces the file atomically. Returns errno, or 0 on success.
int replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  // A process that died during compaction may have left the file. No other process uses it now, because the
  // caller has locked the manifest.
  ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno;
  if (!write_all(fd.get(), text) || ::fsync(fd.get()) < 0 || ::rename(temporary.c_str(), path.c_str()) < 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return error;
  }
  static_cast<void>(sync_directory_of(path));  // a failure is harmless: after a system crash, either the old
                                               // or the new file is there, both complete
  return 0;
}

void remove_empty_cgroup(const EntryFields& fields) {
  if (const EntryCgroup cgroup(fields); cgroup) ::rmdir(cgroup.path());
}

// The processes of another boot have ended. Those of another pid namespace cannot be seen from here, so their
// entries are kept.
bool is_stale(const ManifestEntry& entry, bool has_live_process, const SystemIdentity& current) {
  if (entry.system.boot_id != current.boot_id) return true;
  return entry.system == current && !has_live_process;
}

}  // namespace

MatchContext current_match_context() {
  return {SystemIdentity::current(), ::getpid(), [](pid_t pid) {
            keeper::ProcessIdentity identity;
            return keeper::read_process_identity(pid, identity) ? identity.inode : 0;
          }};
}

Result<ParsedManifest> read_manifest(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return manifest_error(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) < 0) return manifest_error(path, errno);
  if (!S_ISREG(info.st_mode)) return manifest_error(path, EBADMSG);
  // A user who can write the file determines which processes are killed.
  if (info.st_uid != ::geteuid()) return manifest_error(path, EPERM);
  if (info.st_mode & 022) return Error(ErrorKind::validation, path + " can be written by others (chmod 600)");
  ParsedManifest manifest = parse_manifest(read_all(fd.get()));
  if (info.st_size == 0) manifest.is_manifest = true;
  if (!manifest.is_manifest) return manifest_error(path, EBADMSG);
  return manifest;
}

}  // namespace process

namespace process {

namespace {

// Returns `text` without the entries that have no live process, and removes the cgroups of those entries.
std::string compact_entries(std::string_view text) {
  const ParsedManifest manifest = parse_manifest(text);
  const MatchContext context = current_match_context();
  const ManifestMatches matches = match_processes(manifest.entries, list_processes(), context);
  std::string kept = keeper::kManifestHeader;
  for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
    const ManifestEntry& entry = manifest.entries[i];
    if (is_stale(entry, matches.has_live_process[i], context.system)) {
      remove_empty_cgroup(entry.fields);
    } else {
      kept += entry.line + "\nkill " + std::to_string(entry.identity.pid) + '\n';
    }
  }
  return kept;
}

// Returns `text` up to its last line break. The rest may be an entry that is being written.
std::string_view complete_lines(std::string_view text) {
  return text.substr(0, text.rfind('\n') + 1);
}

}  // namespace
}  // namespace process

Result<void> compact_manifest(const std::string& path) {
  using namespace process;
  const UniqueFd old(keeper::open_manifest(path.c_str()));
  if (!old) return manifest_error(path, errno);
  // Only compaction locks the file, so that one process compacts it at a time. Processes that append entries
  // do not lock it.
  if (::flock(old.get(), LOCK_EX | LOCK_NB) < 0) return manifest_error(path, errno);
  if (!keeper::is_current_manifest(old.get(), path.c_str()))
    return {};  // another process has just compacted it
  const std::string before = read_all(old.get());
  const std::string_view checked = complete_lines(before);
  const std::string kept = compact_entries(checked);
  if (kept == before) return {};
  const std::string now = read_all(old.get());
  if (!now.starts_with(checked))
    return {};  // another process has changed it in place; retry on the next call
  // Entries that were added since `before` was read are copied unchecked; the next compaction removes them if
  // they are stale. An incomplete last line is dropped.
  const std::string_view added = complete_lines(std::string_view(now).substr(checked.size()));
  int error = replace_file(path, kept + std::string(added));
  if (error) return manifest_error(path, error);
  // Copy the entries that were appended to the old file between the read above and the rename.
  const std::string all = read_all(old.get());
  const std::size_t copied = checked.size() + added.size();
  const std::string_view complete = complete_lines(all);
  const std::string late = '\n' + std::string(complete.substr(std::min(copied, complete.size())));
  const iovec part{const_cast<char*>(late.data()), late.size()};
  if (late.size() > 1) error = keeper::append_to_manifest(path.c_str(), &part, 1, true);
  if (error) return manifest_error(path, error);
  return {};
}

}  // namespace fairlead
