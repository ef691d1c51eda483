#include "base/random_bytes.hpp"

#include <sys/random.h>

#include <cerrno>

namespace fairlead {

Result<std::string> random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::getrandom(bytes.data() + done, count - done, 0);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) return Error::from_errno(ErrorKind::io, "getrandom()", errno);
  }
  return bytes;
}

}  // namespace fairlead
