#include "fairlead/process/manifest.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fairlead/loop/descriptor.hpp"
#include "process/belongings.hpp"
#include "process/cgroup_home.hpp"
#include "process/files.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/manifest_file.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead {

namespace process {

namespace {

Error failed(const std::string& path, int os_error) {
  const ErrorKind kind =
      os_error == EBADMSG || os_error == ELOOP || os_error == EPERM ? ErrorKind::validation : ErrorKind::io;
  return Error(kind, explain_manifest(path, os_error)).with([&](ErrorDetail& detail) {
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

// In its place at once or not at all.
int replace(const std::string& path, std::string_view text) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());  // of one who died doing this; we hold the lock
  UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno;
  if (!write_all(fd.get(), text) || ::fsync(fd.get()) < 0 || ::rename(beside.c_str(), path.c_str()) < 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return error;
  }
  static_cast<void>(sync_directory_of(path));  // either name is a whole manifest
  return 0;
}

void remove_empty_cgroup(const ManifestFacts& facts) {
  if (const OwnCgroup cgroup(facts); cgroup) ::rmdir(cgroup.path());
}

// One of another pid namespace cannot be judged from here; one of another boot is surely dead.
bool is_dead(const ManifestEntry& entry, bool has_some, const SystemIdentity& here) {
  if (entry.system.boot != here.boot) return true;
  return entry.system == here && !has_some;
}

}  // namespace

Whereabouts whereabouts() {
  return {SystemIdentity::here(), ::getpid(), [](pid_t pid) {
            keeper::Identity identity;
            return keeper::identify(pid, identity) ? identity.inode : 0;
          }};
}

Result<ManifestText> read_manifest(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return failed(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) < 0) return failed(path, errno);
  if (!S_ISREG(info.st_mode)) return failed(path, EBADMSG);
  // Who can write it chooses whom we kill.
  if (info.st_uid != ::geteuid()) return failed(path, EPERM);
  if (info.st_mode & 022) return Error(ErrorKind::validation, path + " can be written by others (chmod 600)");
  ManifestText manifest = parse_manifest(read_all(fd.get()));
  if (info.st_size == 0) manifest.valid = true;
  if (!manifest.valid) return failed(path, EBADMSG);
  return manifest;
}

}  // namespace process

namespace process {

namespace {

// `text` without the entries of which nothing is alive.
std::string without_the_dead(std::string_view text) {
  const ManifestText manifest = parse_manifest(text);
  const Whereabouts here = whereabouts();
  const Belongings found = find_belongings(manifest.entries, list_processes(), here);
  std::string kept = keeper::kManifestHeader;
  for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
    const ManifestEntry& entry = manifest.entries[i];
    if (is_dead(entry, found.has_some[i], here.system)) {
      remove_empty_cgroup(entry.facts);
    } else {
      kept += entry.line + "\nkill " + std::to_string(entry.identity.pid) + '\n';
    }
  }
  return kept;
}

// Up to its last line break: what follows may still be written.
std::string_view whole_lines(std::string_view text) {
  return text.substr(0, text.rfind('\n') + 1);
}

}  // namespace
}  // namespace process

Result<void> compact_manifest(const std::string& path) {
  using namespace process;
  const UniqueFd old(keeper::open_manifest(path.c_str()));
  if (!old) return failed(path, errno);
  // Only compactors lock the file, so that there is one at a time. Writers do not.
  if (::flock(old.get(), LOCK_EX | LOCK_NB) < 0) return failed(path, errno);
  if (!keeper::is_current_manifest(old.get(), path.c_str())) return {};  // somebody else has just done it
  const std::string before = read_all(old.get());
  const std::string_view judged = whole_lines(before);
  const std::string kept = without_the_dead(judged);
  if (kept == before) return {};
  const std::string now = read_all(old.get());
  if (!now.starts_with(judged)) return {};  // another process has changed it in place; the next time
  // What has been added since is alive, or will be dropped the next time. A torn end is dropped now.
  const std::string_view added = whole_lines(std::string_view(now).substr(judged.size()));
  int error = replace(path, kept + std::string(added));
  if (error) return failed(path, error);
  // Entries that were written to the old file before it lost its name.
  const std::string all = read_all(old.get());
  const std::size_t copied = judged.size() + added.size();
  const std::string_view whole = whole_lines(all);
  const std::string late = '\n' + std::string(whole.substr(std::min(copied, whole.size())));
  const iovec part{const_cast<char*>(late.data()), late.size()};
  if (late.size() > 1) error = keeper::append_to_manifest(path.c_str(), &part, 1, true);
  if (error) return failed(path, error);
  return {};
}

}  // namespace fairlead
