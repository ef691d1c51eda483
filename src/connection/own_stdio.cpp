// The process's own stdin and stdout as a connection.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "connection/stream_connection.hpp"
#include "fairlead/connection/connect.hpp"

namespace fairlead {

namespace {

// O_NONBLOCK belongs to the open file, which we share with whoever started us: a terminal made non-blocking
// by us breaks the shell. Opening it anew gives us an open file of our own; what cannot be opened anew (a
// socket) is duplicated.
Result<UniqueFd> private_copy(int fd, int mode, const char* name) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) {
    return Error(ErrorKind::stdio_unavailable, std::string(name) + " is closed");
  }
  if (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    UniqueFd reopened(::open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (reopened) return reopened;
  }
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return Error::from_errno(ErrorKind::stdio_unavailable, std::string("cannot use ") + name, errno);
  return copy;
}

}  // namespace

ConnectResult connect_own_stdio(Loop& loop, ConnectOptions options) {
  Result<UniqueFd> in = private_copy(STDIN_FILENO, O_RDONLY, "stdin");
  if (!in) return in.error();
  Result<UniqueFd> out = private_copy(STDOUT_FILENO, O_WRONLY, "stdout");
  if (!out) return out.error();
  // Nothing else in this program reads or writes the protocol's streams by accident.
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing) ::dup2(nothing.get(), STDIN_FILENO);
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0 && nothing) ::dup2(nothing.get(), STDOUT_FILENO);

  StreamOptions stream;
  stream.framing = options.framing;
  stream.on_framing_error = options.on_framing_error;
  stream.limits = options.limits;
  stream.log = options.log;
  stream.description = "stdio";
  stream.answers_after_eof = true;
  auto made = StreamConnection::create(loop, std::move(*in), std::move(*out), std::move(stream));
  if (!made) return made.error();
  return std::shared_ptr<Connection>(std::move(*made));
}

}  // namespace fairlead
