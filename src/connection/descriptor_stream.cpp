#include "connection/descriptor_stream.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fairlead {

namespace {

// Returns whether a read that returns less than was asked for has read everything: not so for a terminal, a
// socket of messages and a pipe in packet mode.
bool is_byte_stream(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  if (S_ISFIFO(status.st_mode)) return (::fcntl(fd, F_GETFL) & O_DIRECT) == 0;
  int type = 0;
  socklen_t size = sizeof type;
  return S_ISSOCK(status.st_mode) && ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_STREAM;
}

}  // namespace

DescriptorStream::DescriptorStream(Descriptor in, std::optional<Descriptor> out, std::string remote_name)
    : in_(std::move(in)),
      out_(std::move(out)),
      remote_name_(std::move(remote_name)),
      short_read_drains_(is_byte_stream(in_.fd())) {}

ByteStream::IoResult DescriptorStream::read(std::span<char> into) {
  const ssize_t n = ::read(in_.fd(), into.data(), into.size());
  const int os_error = n >= 0 ? 0 : errno;
  const bool is_short = short_read_drains_ && n > 0 && static_cast<std::size_t>(n) < into.size();
  if (is_short || os_error == EAGAIN) in_.input_drained();
  if (n > 0) return IoResult{IoStatus::ok, static_cast<std::size_t>(n), nullptr};
  if (os_error == EAGAIN || os_error == EINTR) return IoResult{IoStatus::again, 0, nullptr};
  if (n == 0 || os_error == ECONNRESET || os_error == EIO) return IoResult{IoStatus::ended, 0, nullptr};
  return failed(Error::from_errno(ErrorKind::io, "cannot read from " + remote_name_, os_error));
}

ByteStream::IoResult DescriptorStream::write(std::span<const iovec> parts) {
  const ssize_t n = ::writev(out().fd(), parts.data(), static_cast<int>(parts.size()));
  if (n >= 0) return IoResult{IoStatus::ok, static_cast<std::size_t>(n), nullptr};
  const int os_error = errno;
  if (os_error == EAGAIN || os_error == EINTR) return IoResult{IoStatus::again, 0, nullptr};
  if (os_error == EPIPE || os_error == ECONNRESET) return IoResult{IoStatus::ended, 0, nullptr};
  return failed(Error::from_errno(ErrorKind::io, "cannot write to " + remote_name_, os_error));
}

std::optional<std::size_t> DescriptorStream::unread_output() const {
  int unread = 0;
  if (!out_ || !out_->is_open() || ::ioctl(out_->fd(), FIONREAD, &unread) != 0) return std::nullopt;
  return static_cast<std::size_t>(unread);
}

void DescriptorStream::shutdown_output() {
  if (out_) {
    out_->close();
  } else {
    ::shutdown(in_.fd(), SHUT_WR);
  }
}

void DescriptorStream::close() {
  in_.close();
  if (out_) out_->close();
}

}  // namespace fairlead
