#include "http/listening.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/uri.hpp"
#include "connection/sockets.hpp"

namespace fairlead::http {

namespace {

constexpr int kPortTries = 16;  // for one that is free on both loopbacks

Error not_an_address(const std::string& text) {
  return Error(ErrorKind::validation,
               "cannot listen on `" + text + "`: want HOST:PORT, [V6]:PORT or unix:/PATH");
}

Result<HostAndPort> split(const std::string& text) {
  const Result<HostAndPort> parts = split_host_and_port(text);
  if (!parts || !parts->port) return not_an_address(text);
  return parts;
}

bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

// A client whose machine has vanished sends no end: after two minutes of silence the connection breaks.
void notice_dead_clients(int fd) noexcept {
  const int on = 1;
  const int idle_seconds = 60;
  const int between_seconds = 15;
  const int probes = 4;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_seconds, sizeof between_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

Result<UniqueFd> open_tcp(const std::string& host, std::uint16_t port, const std::string& name) {
  const Result<SocketAddress> address = numeric_address(host, port);
  if (!address) return address.error();
  Result<UniqueFd> socket = listening_socket(*address, name);
  // What it accepts inherits both.
  if (socket) set_no_delay(socket->get());
  if (socket) notice_dead_clients(socket->get());
  return socket;
}

// Both loopbacks at one port. A machine without IPv6 has one of them.
Result<Listening> open_localhost(std::uint16_t port, const std::string& name) {
  for (int tries = 1;; ++tries) {
    Result<UniqueFd> v4 = open_tcp("127.0.0.1", port, name);
    if (!v4) return v4.error();
    Listening made;
    const std::uint16_t real = local_port(v4->get());
    made.address = "localhost:" + std::to_string(real);
    made.kind = ListenerKind::loopback;
    made.sockets.push_back(std::move(*v4));
    Result<UniqueFd> v6 = open_tcp("::1", real, name);
    if (v6) {
      made.sockets.push_back(std::move(*v6));
    } else if (v6.error().detail().os_error == EADDRINUSE) {
      if (port == 0 && tries < kPortTries) continue;
      return v6.error();
    }
    return made;
  }
}

Result<Listening> open_unix(const std::string& path, unsigned mode) {
  if (path.empty()) return not_an_address("unix:");
  const Result<SocketAddress> address = unix_address(path);
  if (!address) return address.error();
  Result<UniqueFd> socket = listening_socket(*address, "unix:" + path, mode);
  if (!socket) return socket.error();
  Listening made;
  made.address = "unix:" + path;
  made.path = path;
  made.kind = ListenerKind::unix_socket;
  made.sockets.push_back(std::move(*socket));
  return made;
}

}  // namespace

Result<ListenerKind> listener_kind(const std::string& address) {
  if (address.starts_with("unix:")) return ListenerKind::unix_socket;
  const Result<HostAndPort> parts = split(address);
  if (!parts) return parts.error();
  if (parts->host == "localhost") return ListenerKind::loopback;
  const Result<SocketAddress> numeric = numeric_address(std::string(parts->host), *parts->port);
  if (!numeric) return numeric.error();
  return is_loopback(*numeric) ? ListenerKind::loopback : ListenerKind::network;
}

Result<Listening> open_listening(const std::string& address, unsigned socket_mode) {
  const Result<ListenerKind> kind = listener_kind(address);
  if (!kind) return kind.error();
  if (*kind == ListenerKind::unix_socket) return open_unix(address.substr(5), socket_mode);
  const HostAndPort parts = split(address).value();
  const std::string host(parts.host);
  const std::uint16_t port = parts.port.value_or(0);
  if (host == "localhost") return open_localhost(port, address);
  Result<UniqueFd> socket = open_tcp(host, port, address);
  if (!socket) return socket.error();
  Listening made;
  made.kind = *kind;
  made.address = join_host_and_port(host, local_port(socket->get()));
  made.sockets.push_back(std::move(*socket));
  return made;
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat about {};
  if (::lstat(path_.c_str(), &about) != 0) path_.clear();
  device_ = about.st_dev;
  node_ = about.st_ino;
}

void SocketFile::remove() noexcept {
  struct stat about {};
  if (!path_.empty() && ::lstat(path_.c_str(), &about) == 0 && about.st_dev == device_ &&
      about.st_ino == node_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace fairlead::http
