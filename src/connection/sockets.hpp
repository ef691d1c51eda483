// Socket addresses, and functions that connect and listen. Private to the library.
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

// Fails with `connection_failed` if `path` is too long.
Result<SocketAddress> unix_address(const std::string& path);
// Resolves a host name on a thread of the loop's resolver; a numeric address is returned at once. Fails with
// `connection_failed` or `timeout`.
Task<Result<std::vector<SocketAddress>>> resolve(Loop& loop, std::string host, std::uint16_t port,
                                                 std::chrono::milliseconds timeout);
// Parses a numeric address or "localhost", without a lookup. Fails with `connection_failed` for any other
// host.
Result<SocketAddress> numeric_address(const std::string& host, std::uint16_t port);

// Returns a connected, non-blocking socket. `name` is the address in errors. Fails with `connection_failed`
// or `timeout`.
Task<Result<UniqueFd>> connect_socket(Loop& loop, SocketAddress address, std::string name,
                                      std::chrono::milliseconds timeout);
// The file mode of a Unix socket: only its owner can connect.
inline constexpr unsigned kDefaultSocketMode = 0600;

// Returns a bound, listening, non-blocking socket. Replaces the file of a Unix socket that no process listens
// on. The file never has more permissions than `mode`, not even temporarily. `name` is the address in errors.
// Fails with `connection_failed`.
Result<UniqueFd> bind_and_listen(const SocketAddress& address, const std::string& name,
                                 unsigned mode = kDefaultSocketMode);
// Returns the port that a socket is bound to; 0 for a Unix socket or on failure.
std::uint16_t local_port(int fd) noexcept;

// Disables Nagle's algorithm, which delays small messages.
void set_no_delay(int fd) noexcept;

}  // namespace fairlead
