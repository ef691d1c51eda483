// Plain sockets: making, connecting and naming them.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/connection/uri.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
};

Result<SocketAddress> unix_address(const std::string& path);
// Numeric addresses at once; names through the resolver, on its own thread.
Task<Result<std::vector<SocketAddress>>> resolve(Loop& loop, std::string host, std::uint16_t port,
                                                 std::chrono::milliseconds timeout);
// For listeners: numeric addresses and "localhost" only, without waiting.
Result<SocketAddress> numeric_address(const std::string& host, std::uint16_t port);

Task<Result<UniqueFd>> connect_socket(Loop& loop, SocketAddress address, std::string name,
                                      std::chrono::milliseconds timeout);
inline constexpr unsigned kSocketMode = 0600;  // of a Unix socket's file: for this user only

// Bound, listening, non-blocking. A Unix socket's file that nobody listens on is replaced; the new one never
// has more permissions than `mode`, not even for a moment. `name` is for what is said when it fails (kind
// connection_failed).
Result<UniqueFd> listening_socket(const SocketAddress& address, const std::string& name,
                                  unsigned mode = kSocketMode);
// The port a socket is bound to; 0 for a Unix socket.
std::uint16_t local_port(int fd) noexcept;

// Small messages must not wait for company (Nagle).
void set_no_delay(int fd) noexcept;

}  // namespace fairlead
