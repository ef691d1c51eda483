// Functions that read files of the kernel. They do not use stdio, because it would double the size of the
// keeper without libc. The library uses these functions too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

// Returns the content of a file in /proc or in a cgroup directory, terminated by NUL; the caller must free()
// it. Returns null if the file cannot be read.
char* read_kernel_file(const char* path, size_t& size);

// TextBuffer: builds a short text from strings and numbers. A text longer than the capacity is truncated.
class TextBuffer {
 public:
  TextBuffer() = default;
  TextBuffer& append(const char* text);
  TextBuffer& append_number(std::uint64_t value);
  const char* c_str() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kCapacity = 512;

  char bytes_[kCapacity] = {};
  std::size_t size_ = 0;
};

// Identifies a process, and distinguishes it from earlier and later processes with the same pid.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start = 0;  // start time in clock ticks after boot
  std::uint64_t inode = 0;  // of its pidfd, unique until reboot; 0 on kernels before 6.9
};

// Reads the identity of the process `pid`. Returns false if there is no such process.
bool read_process_identity(pid_t pid, ProcessIdentity& identity);

// Returns the fields of a line of /proc/<pid>/stat that follow the name; the first is the state (field 3).
// Returns null if the line is malformed.
const char* fields_after_name(const char* stat);
// Returns field number `field` (4 or higher), or 0 if there is none.
std::uint64_t stat_field(const char* stat, int field);

}  // namespace fairlead::keeper
