#include "http/listening_sockets.hpp"

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

constexpr int kMaxPortAttempts = 16;  // attempts to find a port that is free on both loopback addresses

Error invalid_address(const std::string& text) {
  return Error(ErrorKind::validation,
               "cannot listen on `" + text + "`: expected HOST:PORT, [V6]:PORT or unix:/PATH");
}

Result<HostAndPort> split_address(const std::string& text) {
  const Result<HostAndPort> parts = split_host_and_port(text);
  if (!parts || !parts->port) return invalid_address(text);
  return parts;
}

bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

// Enables TCP keepalive, which detects clients whose machine is down or unreachable: the connection fails
// after the client's machine has not replied for two minutes.
void enable_tcp_keepalive(int fd) noexcept {
  const int on = 1;
  const int idle_seconds = 60;
  const int interval_seconds = 15;
  const int probe_count = 4;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probe_count, sizeof probe_count);
}

Result<UniqueFd> open_tcp(const std::string& host, std::uint16_t port, const std::string& name) {
  const Result<SocketAddress> address = numeric_address(host, port);
  if (!address) return address.error();
  Result<UniqueFd> socket = bind_and_listen(*address, name);
  // Accepted sockets inherit both options.
  if (socket) set_no_delay(socket->get());
  if (socket) enable_tcp_keepalive(socket->get());
  return socket;
}

// Listens on both loopback addresses with the same port; on a machine without IPv6, on 127.0.0.1 only.
Result<ListeningSockets> open_localhost(std::uint16_t port, const std::string& name) {
  for (int attempt = 1;; ++attempt) {
    Result<UniqueFd> v4 = open_tcp("127.0.0.1", port, name);
    if (!v4) return v4.error();
    ListeningSockets listening;
    const std::uint16_t bound_port = local_port(v4->get());
    listening.address = "localhost:" + std::to_string(bound_port);
    listening.kind = ListenerKind::loopback;
    listening.sockets.push_back(std::move(*v4));
    Result<UniqueFd> v6 = open_tcp("::1", bound_port, name);
    if (v6) {
      listening.sockets.push_back(std::move(*v6));
    } else if (v6.error().detail().os_error == EADDRINUSE) {
      if (port == 0 && attempt < kMaxPortAttempts) continue;
      return v6.error();
    }
    return listening;
  }
}

Result<ListeningSockets> open_unix(const std::string& path, unsigned mode) {
  if (path.empty()) return invalid_address("unix:");
  const Result<SocketAddress> address = unix_address(path);
  if (!address) return address.error();
  Result<UniqueFd> socket = bind_and_listen(*address, "unix:" + path, mode);
  if (!socket) return socket.error();
  ListeningSockets listening;
  listening.address = "unix:" + path;
  listening.socket_path = path;
  listening.kind = ListenerKind::unix_socket;
  listening.sockets.push_back(std::move(*socket));
  return listening;
}

}  // namespace

Result<ListenerKind> listener_kind(const std::string& address) {
  if (address.starts_with("unix:")) return ListenerKind::unix_socket;
  const Result<HostAndPort> parts = split_address(address);
  if (!parts) return parts.error();
  if (parts->host == "localhost") return ListenerKind::loopback;
  const Result<SocketAddress> numeric = numeric_address(std::string(parts->host), *parts->port);
  if (!numeric) return numeric.error();
  return is_loopback(*numeric) ? ListenerKind::loopback : ListenerKind::network;
}

Result<ListeningSockets> open_listening_sockets(const std::string& address, unsigned socket_mode) {
  const Result<ListenerKind> kind = listener_kind(address);
  if (!kind) return kind.error();
  if (*kind == ListenerKind::unix_socket) return open_unix(address.substr(5), socket_mode);
  const HostAndPort parts = split_address(address).value();
  const std::string host(parts.host);
  const std::uint16_t port = parts.port.value_or(0);
  if (host == "localhost") return open_localhost(port, address);
  Result<UniqueFd> socket = open_tcp(host, port, address);
  if (!socket) return socket.error();
  ListeningSockets listening;
  listening.kind = *kind;
  listening.address = join_host_and_port(host, local_port(socket->get()));
  listening.sockets.push_back(std::move(*socket));
  return listening;
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) path_.clear();
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void SocketFile::remove() noexcept {
  struct stat status {};
  if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace fairlead::http
