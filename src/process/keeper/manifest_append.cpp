#include "process/keeper/manifest_append.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
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

bool lock(int fd) {
  for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ++waited) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= kManifestLockMs * 4) return false;
    const timespec quarter_of_a_millisecond{0, 250'000};
    nanosleep(&quarter_of_a_millisecond, nullptr);
  }
  return true;
}

// 0 when the locked file is, or can be made, a manifest of ours.
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

// A write that was cut short by a full disk left a line without an end.
bool ends_in_mid_line(int fd, off_t size) {
  char last = '\n';
  return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

// In one piece or not at all.
int write_entry(int fd, const Identity& who, const char* rest) {
  struct stat info {};
  if (fstat(fd, &info) < 0) return errno;
  Text head;
  if (ends_in_mid_line(fd, info.st_size)) head.word("\n");
  const auto pid = static_cast<std::uint64_t>(who.pid);
  head.word("{\"pid\":").number(pid).word(",\"start\":").number(who.start);
  head.word(",\"inode\":").number(who.inode);
  Text tail;
  tail.word("\nkill ").number(pid).word("\n");
  const auto bytes = [](const char* text) { return const_cast<char*>(text); };
  const iovec parts[] = {
      {bytes(head.c_str()), head.size()}, {bytes(rest), strlen(rest)}, {bytes(tail.c_str()), tail.size()}};
  const ssize_t n = writev(fd, parts, 3);
  if (n == static_cast<ssize_t>(head.size() + strlen(rest) + tail.size())) return 0;
  const int error = n < 0 ? errno : ENOSPC;
  static_cast<void>(!ftruncate(fd, info.st_size));
  return error;
}

}  // namespace

int open_manifest(const char* path) {
  for (;;) {
    const int fd =
        open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0) return -1;
    if (!lock(fd)) return fail(fd, errno);
    struct stat info {};
    if (fstat(fd, &info) < 0) return fail(fd, errno);
    // Replaced by a compacted one while we waited for the lock.
    if (S_ISREG(info.st_mode) && info.st_nlink == 0) {
      close(fd);
      continue;
    }
    const int error = check(fd, info);
    return error ? fail(fd, error) : fd;
  }
}

int append_manifest(const char* path, const Identity& who, const char* rest, bool sync) {
  const int fd = open_manifest(path);
  if (fd < 0) return errno;
  int error = write_entry(fd, who, rest);
  // Whoever compacts the file from here on copies the entry and syncs the copy.
  flock(fd, LOCK_UN);
  if (!error && sync && fdatasync(fd) < 0 && errno != EINVAL) error = errno;
  close(fd);
  return error;
}

}  // namespace fairlead::keeper
