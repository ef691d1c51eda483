#include "http/byte_stream.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace fairlead::http {

namespace {

class PlainStream final : public ByteStream {
 public:
  PlainStream(Descriptor socket, std::string remote)
      : socket_(std::move(socket)), remote_(std::move(remote)) {}

  IoResult read(std::span<char> into) override {
    const ssize_t n = ::recv(socket_.fd(), into.data(), into.size(), 0);
    if (n > 0) {
      if (static_cast<std::size_t>(n) < into.size()) socket_.input_drained();
      return IoResult{IoStatus::ok, static_cast<std::size_t>(n), nullptr};
    }
    if (n == 0) return IoResult{into.empty() ? IoStatus::ok : IoStatus::ended, 0, nullptr};
    const int os_error = errno;
    if (os_error == EAGAIN) socket_.input_drained();
    return io_error("cannot read from ", os_error);
  }

  IoResult write(std::span<const iovec> parts) override {
    const ssize_t n = parts.size() == 1 ? send_one(parts.front()) : send_all(parts);
    if (n >= 0) return IoResult{IoStatus::ok, static_cast<std::size_t>(n), nullptr};
    return io_error("cannot write to ", errno);
  }

  void when_readable(Descriptor::ReadyCallback ready) override { socket_.when_readable(std::move(ready)); }
  void when_writable(Descriptor::ReadyCallback ready) override { socket_.when_writable(std::move(ready)); }
  bool waiting_to_read() const noexcept override { return socket_.waiting_to_read(); }
  bool waiting_to_write() const noexcept override { return socket_.waiting_to_write(); }
  bool input_is_drained() const noexcept override { return socket_.input_is_drained(); }
  void shutdown_output() override { ::shutdown(socket_.fd(), SHUT_WR); }
  void close() override { socket_.close(); }
  std::string remote_name() const override { return remote_; }

 private:
  ssize_t send_one(const iovec& part) const {
    return ::send(socket_.fd(), part.iov_base, part.iov_len, MSG_NOSIGNAL);
  }
  ssize_t send_all(std::span<const iovec> parts) const {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return ::sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
  }
  IoResult io_error(std::string_view action, int os_error) {
    if (os_error == EAGAIN || os_error == EINTR) return IoResult{IoStatus::again, 0, nullptr};
    return failed(Error::from_errno(ErrorKind::io, std::string(action) + remote_, os_error));
  }

  Descriptor socket_;
  std::string remote_;
};

}  // namespace

std::string remote_address_of(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return "a disconnected client";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(v4->sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  return "unix";
}

PrincipalPtr principal_of_remote(int socket) {
  std::string remote = remote_address_of(socket);
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_unix = remote == "unix";
  if (is_unix && ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
    return Principal::local(peer.uid, std::move(remote));
  return Principal::anonymous(std::move(remote));
}

Result<std::unique_ptr<ByteStream>> make_plain_stream(Loop& loop, UniqueFd socket) {
  std::string remote = remote_address_of(socket.get());
  Result<Descriptor> descriptor = Descriptor::adopt(loop, std::move(socket));
  if (!descriptor) return descriptor.error();
  return std::make_unique<PlainStream>(std::move(*descriptor), std::move(remote));
}

}  // namespace fairlead::http
