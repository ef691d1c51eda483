#include "cli/hangup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::cli {

bool ControllingTerminal::exists() {
  return static_cast<bool>(UniqueFd(::open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)));
}

bool ControllingTerminal::detect_loss() {
  if (!present_ || exists()) return false;
  present_ = false;
  return true;
}

StderrFile::StderrFile() {
  struct stat status = {};
  char path[PATH_MAX];
  if (::fstat(STDERR_FILENO, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink == 0) return;
  const ssize_t length = ::readlink("/proc/self/fd/2", path, sizeof path);
  if (length > 0 && length < static_cast<ssize_t>(sizeof path))
    path_.assign(path, static_cast<std::size_t>(length));
}

Result<void> StderrFile::reopen() {
  if (path_.empty()) return {};
  const UniqueFd file(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0640));
  if (!file || ::dup2(file.get(), STDERR_FILENO) < 0)
    return Error::from_errno(ErrorKind::io, "cannot reopen the log file " + path_, errno);
  return {};
}

}  // namespace fairlead::cli
