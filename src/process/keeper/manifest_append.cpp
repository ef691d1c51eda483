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

int fail(int fd, int error) {
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// 0 when the file is, or can be made, a manifest of ours.
int check(int fd, const struct stat& info) {
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

// How often a file that is replaced while it is written to is tried again.
constexpr int kMaxAttempts = 100;

// In one write, so that entries of several processes do not mix (O_APPEND).
int write_whole_entry(int fd, const iovec* parts, int count) {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  const ssize_t n = writev(fd, parts, count);
  if (n == static_cast<ssize_t>(size)) return 0;
  // A torn line stays: others may have written after it. Whatever comes next begins with a line break.
  return n < 0 ? errno : ENOSPC;
}

}  // namespace

bool is_current_manifest(int fd, const char* path) {
  struct stat ours {};
  struct stat there {};
  return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

int open_manifest(const char* path) {
  const int fd =
      open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return -1;
  struct stat info {};
  const int error = fstat(fd, &info) < 0 ? errno : check(fd, info);
  return error ? fail(fd, error) : fd;
}

int append_to_manifest(const char* path, const iovec* parts, int count, bool sync) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const int fd = open_manifest(path);
    if (fd < 0) return errno;
    int error = write_whole_entry(fd, parts, count);
    const bool current = is_current_manifest(fd, path);
    if (!error && sync && current && fdatasync(fd) < 0 && errno != EINVAL) error = errno;
    close(fd);
    if (error || current) return error;
  }
  return EBUSY;
}

int append_manifest(const char* path, const Identity& who, const char* rest, bool sync) {
  const auto pid = static_cast<std::uint64_t>(who.pid);
  Text head;
  head.word("\n{\"pid\":").number(pid).word(",\"start\":").number(who.start);
  head.word(",\"inode\":").number(who.inode);
  Text tail;
  tail.word("\nkill ").number(pid).word("\n");
  const auto bytes = [](const char* text) { return const_cast<char*>(text); };
  const iovec parts[] = {
      {bytes(head.c_str()), head.size()}, {bytes(rest), strlen(rest)}, {bytes(tail.c_str()), tail.size()}};
  return append_to_manifest(path, parts, 3, sync);
}

}  // namespace fairlead::keeper
