// Reading /proc without stdio, which would double what the keeper adds to libc. The library uses it too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

// Reads a file whole, NUL-ended. The caller frees it; null when it cannot be read.
char* slurp(const char* path, size_t& size);

// A short text put together from words and numbers.
class Text {
 public:
  Text() = default;
  Text& word(const char* text);
  Text& number(std::uint64_t value);
  const char* c_str() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kCapacity = 512;

  char bytes_[kCapacity] = {};
  std::size_t size_ = 0;
};

// What tells a process from any other that has had or will have its number.
struct Identity {
  pid_t pid = 0;
  std::uint64_t start = 0;  // ticks after boot
  std::uint64_t inode = 0;  // of its pidfd, unique as long as the system runs; 0 on kernels before 6.9
};

// False when there is no such process.
bool identify(pid_t pid, Identity& identity);

// The fields of a line of /proc/<pid>/stat that follow the name, the first being the state (field 3).
// Null when the line is none.
const char* after_name(const char* stat);
// Field number `field` (4 and up), 0 when there is none.
std::uint64_t stat_field(const char* stat, int field);

}  // namespace fairlead::keeper
