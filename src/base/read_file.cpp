#include "base/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fairlead {

namespace {

constexpr std::size_t kReadChunkBytes = 16u << 10;

class OpenedFile {
 public:
  // O_NONBLOCK: opening a FIFO would otherwise block until there is a writer. O_NOCTTY: opening a terminal
  // could make it the controlling terminal.
  explicit OpenedFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenedFile(const OpenedFile&) = delete;
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

Error system_error(int os_error) {
  return Error(ErrorKind::validation, std::strerror(os_error)).with([&](ErrorDetail& detail) {
    detail.os_error = os_error;
  });
}

std::string_view file_type_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, FileLimit limit) {
  const OpenedFile file(path);
  struct stat status = {};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) < 0) return system_error(errno);
  if (!S_ISREG(status.st_mode))
    return Error(ErrorKind::validation,
                 "it is " + std::string(file_type_name(status.st_mode)) + ", not a regular file");
  std::string text;
  while (text.size() <= limit.bytes) {
    char buffer[kReadChunkBytes];
    const ssize_t n = ::read(file.fd(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return Error(ErrorKind::validation,
               "it has more than " + std::string(limit.name) + " (" + std::to_string(limit.bytes) + ")");
}

}  // namespace fairlead
