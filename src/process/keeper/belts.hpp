// What a child puts on itself between fork and exec. Each returns errno, or 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

// `limits`: kLimitCount of them.
int set_limits(const std::uint64_t* limits);
int forbid_new_privileges();

// The version of Landlock that the kernel has, or -1 and errno.
int landlock_version();
// From this version on a restricted process can signal only processes with the same restrictions, hence
// neither the keeper nor the library's process.
inline constexpr int kLandlockScopesSignals = 6;

// File-system rules. Everything is forbidden but what a rule allows: a letter and an absolute path, r to
// read, w to read and write, x to read and execute, a capital where a path that is not there is of no
// concern.
class Landlock {
 public:
  Landlock() = default;
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;
  ~Landlock();

  int prepare();
  // May fail for one rule and go on with the next.
  int allow(const char* rule);
  // Implies that there are no new privileges.
  int enforce();

 private:
  int rules_ = -1;
  std::uint64_t handled_ = 0;
};

}  // namespace fairlead::keeper
