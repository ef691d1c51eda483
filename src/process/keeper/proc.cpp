#include "process/keeper/proc.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fairlead::keeper {

namespace {

constexpr long kPidFileSystem = 0x50494446;  // PID_FS_MAGIC

std::uint64_t pidfd_inode(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return 0;
  struct statfs system {};
  struct stat info {};
  // In other file systems (kernels before 6.9) all pidfds share one inode.
  const bool unique = fstatfs(fd, &system) == 0 && system.f_type == kPidFileSystem && fstat(fd, &info) == 0;
  close(fd);
  return unique ? info.st_ino : 0;
}

}  // namespace

char* read_kernel_file(const char* path, size_t& size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  size_t capacity = 16 << 10;
  char* text = static_cast<char*>(malloc(capacity));
  size = 0;
  while (text) {
    const ssize_t n = read(fd, text + size, capacity - size - 1);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
    if (capacity - size > 1) continue;
    capacity *= 2;
    char* grown = static_cast<char*>(realloc(text, capacity));
    if (!grown) free(text);
    text = grown;
  }
  close(fd);
  if (text) text[size] = '\0';
  return text;
}

TextBuffer& TextBuffer::append(const char* text) {
  while (*text && size_ + 1 < kCapacity) bytes_[size_++] = *text++;
  return *this;
}

TextBuffer& TextBuffer::append_number(std::uint64_t value) {
  char digits[24];
  char* cursor = digits + sizeof digits;
  *--cursor = '\0';
  do *--cursor = static_cast<char>('0' + value % 10);
  while (value /= 10);
  return append(cursor);
}

// Searches backwards, because the name may contain any character.
const char* fields_after_name(const char* stat) {
  const char* end = strrchr(stat, ')');
  return end && end[1] == ' ' ? end + 2 : nullptr;
}

std::uint64_t stat_field(const char* stat, int field) {
  const char* cursor = fields_after_name(stat);
  for (; cursor && field > 3; --field) {
    cursor = strchr(cursor, ' ');
    if (cursor) ++cursor;
  }
  return cursor ? strtoull(cursor, nullptr, 10) : 0;
}

bool read_process_identity(pid_t pid, ProcessIdentity& identity) {
  size_t size = 0;
  char* stat = read_kernel_file(
      TextBuffer().append("/proc/").append_number(static_cast<std::uint64_t>(pid)).append("/stat").c_str(),
      size);
  if (!stat) return false;
  identity = {pid, stat_field(stat, 22), pidfd_inode(pid)};
  free(stat);
  return identity.start != 0;
}

}  // namespace fairlead::keeper
