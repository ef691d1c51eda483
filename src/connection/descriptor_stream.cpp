#include "connection/descriptor_stream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fairlead {

DescriptorStream::DescriptorStream(Descriptor in, std::optional<Descriptor> out, std::string remote)
    : in_(std::move(in)), out_(std::move(out)), remote_(std::move(remote)) {}

ByteStream::Io DescriptorStream::read(std::span<char> into) {
  const ssize_t n = ::read(in_.fd(), into.data(), into.size());
  if (n > 0) return Io{State::ok, static_cast<std::size_t>(n), nullptr};
  const int os_error = n == 0 ? 0 : errno;
  if (os_error == EAGAIN || os_error == EINTR) return Io{State::again, 0, nullptr};
  if (n == 0 || os_error == ECONNRESET || os_error == EIO) return Io{State::ended, 0, nullptr};
  return failed(Error::from_errno(ErrorKind::io, "cannot read from " + remote_, os_error));
}

ByteStream::Io DescriptorStream::write(std::span<const iovec> parts) {
  const ssize_t n = ::writev(out().fd(), parts.data(), static_cast<int>(parts.size()));
  if (n >= 0) return Io{State::ok, static_cast<std::size_t>(n), nullptr};
  const int os_error = errno;
  if (os_error == EAGAIN || os_error == EINTR) return Io{State::again, 0, nullptr};
  if (os_error == EPIPE || os_error == ECONNRESET) return Io{State::ended, 0, nullptr};
  return failed(Error::from_errno(ErrorKind::io, "cannot write to " + remote_, os_error));
}

void DescriptorStream::shut_output() {
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
