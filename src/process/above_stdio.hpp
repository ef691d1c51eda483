// In a program whose stdin, stdout or stderr is closed, what is opened next takes its number, and whoever
// then writes to "stderr" writes into it. So descriptors of ours do not stay there.
#pragma once

#include <fcntl.h>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::process {

// The same file at a number above 2, close-on-exec. None when there is no room (errno).
inline UniqueFd above_stdio(UniqueFd fd) {
  if (!fd || fd.get() > 2) return fd;
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace fairlead::process
