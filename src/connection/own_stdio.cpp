// connect_own_stdio(): a connection over the stdin and stdout of this process.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "connection/stream_connection.hpp"
#include "fairlead/connection/connect.hpp"

namespace fairlead {

namespace {

// Returns a descriptor that can be made non-blocking. O_NONBLOCK is a flag of the open file description,
// which this process shares with its parent: making a terminal non-blocking would break the shell. Reopening
// the file creates a new description. A file that cannot be reopened, such as a socket, is duplicated.
Result<UniqueFd> private_copy(int fd, int mode, const char* name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return Error(ErrorKind::stdio_unavailable, std::string(name) + " is closed");
  }
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    UniqueFd reopened(::open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (reopened) return reopened;
  }
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return Error::from_errno(ErrorKind::stdio_unavailable, std::string("cannot use ") + name, errno);
  return copy;
}

}  // namespace

ConnectResult connect_own_stdio(Loop& loop, StreamConnectOptions options) {
  Result<UniqueFd> in = private_copy(STDIN_FILENO, O_RDONLY, "stdin");
  if (!in) return in.error();
  Result<UniqueFd> out = private_copy(STDOUT_FILENO, O_WRONLY, "stdout");
  if (!out) return out.error();
  // Prevents other code in this process from reading or writing the protocol's streams by accident.
  const UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null_device) ::dup2(null_device.get(), STDIN_FILENO);
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0 && null_device) ::dup2(null_device.get(), STDOUT_FILENO);

  StreamOptions stream;
  stream.framing = options.framing;
  stream.on_framing_error = options.on_framing_error;
  stream.limits = options.limits;
  stream.log = options.log;
  stream.description = "stdio";
  stream.responds_after_eof = true;
  auto connection = StreamConnection::create(loop, std::move(*in), std::move(*out), std::move(stream));
  if (!connection) return connection.error();
  return std::shared_ptr<Connection>(std::move(*connection));
}

}  // namespace fairlead
