// move_above_stdio: keeps the library's descriptors off the numbers 0, 1 and 2. If a program has closed its
// stdin, stdout or stderr, the next file it opens gets that number. Code that writes to stderr would then
// write into a file of the library.
#pragma once

#include <fcntl.h>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::process {

// Returns a close-on-exec descriptor above 2 for the same file. Returns an empty one, with errno set, if no
// descriptor is available.
inline UniqueFd move_above_stdio(UniqueFd fd) {
  if (!fd || fd.get() > 2) return fd;
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace fairlead::process
