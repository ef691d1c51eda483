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
  if (n > 0) return Io{State::ok, static_cast<std::size_t>(n), std::nullopt};
  if (n == 0 || errno == ECONNRESET || errno == EIO) return Io{State::ended, 0, std::nullopt};
  if (errno == EAGAIN || errno == EINTR) return Io{State::again, 0, std::nullopt};
  return Io{State::failed, 0, Error::from_errno(ErrorKind::io, "cannot read from " + remote_, errno)};
}

ByteStream::Io DescriptorStream::write(std::span<const iovec> parts) {
  const ssize_t n = ::writev(out().fd(), parts.data(), static_cast<int>(parts.size()));
  if (n >= 0) return Io{State::ok, static_cast<std::size_t>(n), std::nullopt};
  if (errno == EAGAIN || errno == EINTR) return Io{State::again, 0, std::nullopt};
  if (errno == EPIPE || errno == ECONNRESET) return Io{State::ended, 0, std::nullopt};
  return Io{State::failed, 0, Error::from_errno(ErrorKind::io, "cannot write to " + remote_, errno)};
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
