#include "process/keeper/manifest_append.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::keeper {

namespace {

constexpr std::size_t kHeaderSize = sizeof kManifestHeader - 1;

// Closes `fd`, sets errno to `error`, and returns -1.
int close_and_fail(int fd, int error) {
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// Returns 0 if the file is a manifest of this user. Restricts its mode to the owner, and writes the header if
// the file is empty. Returns errno on failure.
int check_or_initialize_manifest(int fd, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return EBADMSG;
  if (info.st_uid != geteuid()) return EPERM;
  if ((info.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0) return errno;
  if (info.st_size == 0) {
    return write(fd, kManifestHeader, kHeaderSize) == static_cast<ssize_t>(kHeaderSize) ? 0 : ENOSPC;
  }
  char start[kHeaderSize];
  const bool same = pread(fd, start, kHeaderSize, 0) == static_cast<ssize_t>(kHeaderSize) &&
                    memcmp(start, kManifestHeader, kHeaderSize) == 0;
  return same ? 0 : EBADMSG;
}

// The maximum number of attempts to append an entry. An attempt fails if the file is replaced during the
// write.
constexpr int kMaxAttempts = 100;

// Writes in one call, so that entries of several processes are not interleaved (O_APPEND).
int write_entry(int fd, const iovec* parts, int count) {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  const ssize_t n = writev(fd, parts, count);
  if (n == static_cast<ssize_t>(size)) return 0;
  // An incompletely written line is not removed, because other processes may have written after it. It does
  // not affect the next entry, which begins with a line break.
  return n < 0 ? errno : ENOSPC;
}

}  // namespace

bool is_current_manifest(int fd, const char* path) {
  struct stat open_file {};
  struct stat named_file {};
  return fstat(fd, &open_file) == 0 && lstat(path, &named_file) == 0 &&
         open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

int open_manifest(const char* path) {
  const int fd =
      open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return -1;
  struct stat info {};
  const int error = fstat(fd, &info) < 0 ? errno : check_or_initialize_manifest(fd, info);
  return error ? close_and_fail(fd, error) : fd;
}

int append_to_manifest(const char* path, const iovec* parts, int count, bool sync) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const int fd = open_manifest(path);
    if (fd < 0) return errno;
    int error = write_entry(fd, parts, count);
    const bool current = is_current_manifest(fd, path);
    if (!error && sync && current && fdatasync(fd) < 0 && errno != EINVAL) error = errno;
    close(fd);
    if (error || current) return error;
  }
  return EBUSY;
}

int append_manifest_entry(const char* path, const ProcessIdentity& process, const char* rest, bool sync) {
  const auto pid = static_cast<std::uint64_t>(process.pid);
  TextBuffer head;
  head.append("\n{\"pid\":").append_number(pid).append(",\"start\":").append_number(process.start);
  head.append(",\"inode\":").append_number(process.inode);
  TextBuffer tail;
  tail.append("\nkill ").append_number(pid).append("\n");
  const auto mutable_text = [](const char* text) { return const_cast<char*>(text); };
  const iovec parts[] = {{mutable_text(head.c_str()), head.size()},
                         {mutable_text(rest), strlen(rest)},
                         {mutable_text(tail.c_str()), tail.size()}};
  return append_to_manifest(path, parts, 3, sync);
}

}  // namespace fairlead::keeper
