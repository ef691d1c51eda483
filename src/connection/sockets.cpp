#include "connection/sockets.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "fairlead/loop/workers.hpp"
#include "loop/run_blocking.hpp"

namespace fairlead {

Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path) {
    return Error(ErrorKind::connection_failed,
                 "the path of a Unix socket has " + std::to_string(path.size()) + " bytes, at most " +
                     std::to_string(sizeof name.sun_path - 1) + " are allowed: " + path);
  }
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  SocketAddress address;
  std::memcpy(&address.storage, &name, sizeof name);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Result<SocketAddress> numeric_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  const std::string& number = host == "localhost" ? std::string("127.0.0.1") : host;
  if (::inet_pton(AF_INET, number.c_str(), &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    std::memcpy(&address.storage, &ipv4, sizeof ipv4);
    address.size = sizeof ipv4;
    return address;
  }
  if (::inet_pton(AF_INET6, number.c_str(), &ipv6.sin6_addr) == 1) {
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    std::memcpy(&address.storage, &ipv6, sizeof ipv6);
    address.size = sizeof ipv6;
    return address;
  }
  return Error(ErrorKind::connection_failed, "`" + host + "` is not a numeric address");
}

namespace {

// The threads that look up names for a loop.
class ResolverThreads {
 public:
  explicit ResolverThreads(Loop&) {}
  Workers& workers() noexcept { return workers_; }

 private:
  static Limits limits() {
    Limits limits;
    limits.max_blocking_threads = 2;
    return limits;
  }

  Workers workers_{limits()};
};

using Addresses = std::vector<SocketAddress>;

struct FreeAddressList {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

// Blocks.
Result<Addresses> look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* results = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &results);
  const std::unique_ptr<addrinfo, FreeAddressList> list(code == 0 ? results : nullptr);
  if (code != 0) {
    const int os_error = errno;
    const std::string reason = code == EAI_SYSTEM ? std::strerror(os_error) : ::gai_strerror(code);
    return Error(ErrorKind::connection_failed, "cannot look up " + host + ": " + reason);
  }
  Addresses addresses;
  for (const addrinfo* result = list.get(); result; result = result->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, result->ai_addr, result->ai_addrlen);
    address.size = result->ai_addrlen;
  }
  return addresses;
}

struct LookupState {
  Event done;
  Result<Addresses> addresses = Addresses();
};

// Looks the name up on `threads`, unless the caller has destroyed the state by then: a lookup that timed out
// in the queue must not delay others.
Task<void> run_lookup(Loop& loop, Workers& threads, std::string host, std::uint16_t port,
                      std::weak_ptr<LookupState> state) {
  std::move_only_function<Result<Addresses>()> job = [host, port, state]() -> Result<Addresses> {
    if (state.expired()) return Addresses();
    return look_up(host, port);
  };
  Result<Addresses> addresses = co_await run_blocking<Addresses>(loop, threads, std::move(job));
  const std::shared_ptr<LookupState> waiting = state.lock();
  if (!waiting) co_return;
  waiting->addresses = std::move(addresses);
  waiting->done.set();
}

}  // namespace

// The lookup cannot be cancelled, so it is a task of its own: its thread may work longer than `timeout`.
Task<Result<std::vector<SocketAddress>>> resolve(Loop& loop, std::string host, std::uint16_t port,
                                                 std::chrono::milliseconds timeout) {
  const Result<SocketAddress> numeric = numeric_address(host, port);
  if (numeric) co_return std::vector<SocketAddress>(1, *numeric);
  const auto state = std::make_shared<LookupState>();
  loop.spawn(run_lookup(loop, loop.service<ResolverThreads>().workers(), host, port, state));
  const bool in_time = co_await state->done.wait(loop, timeout);
  if (!in_time) co_return Error::timeout("looking up " + host, timeout);
  co_return std::move(state->addresses);
}

Task<Result<UniqueFd>> connect_socket(Loop& loop, SocketAddress address, std::string name,
                                      std::chrono::milliseconds timeout) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd)
    co_return Error::from_errno(ErrorKind::connection_failed, "cannot create a socket for " + name, errno);
  if (::connect(fd.get(), address.get(), address.size) == 0) co_return std::move(fd);
  // If the backlog of a Unix socket is full, connect() fails with EAGAIN. There is no way to wait for room in
  // the backlog, so EAGAIN is an error.
  if (errno != EINPROGRESS)
    co_return Error::from_errno(ErrorKind::connection_failed, "cannot connect to " + name, errno);

  UniqueFd watched(::dup(fd.get()));
  Result<Descriptor> descriptor = Descriptor::adopt(loop, std::move(watched));
  if (!descriptor) co_return descriptor.error();
  Event writable;
  descriptor->when_writable([&writable] { writable.set(); });
  const bool in_time = co_await writable.wait(loop, timeout);
  if (!in_time) co_return Error::timeout("connecting to " + name, timeout);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0)
    co_return Error::from_errno(ErrorKind::connection_failed, "cannot connect to " + name, error);
  co_return std::move(fd);
}

namespace {

constexpr int kBacklog = 1024;

// Removes the file of a Unix socket if no process listens on it: a process that has ended left it behind.
// Never removes other files.
void remove_stale_socket(const SocketAddress& address) {
  const char* path = reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
  struct stat status {};
  if (::lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), address.get(), address.size) != 0 && errno == ECONNREFUSED) ::unlink(path);
}

bool set_socket_mode(const SocketAddress& address, unsigned mode) {
  const char* path = reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
  struct stat status {};
  if (::lstat(path, &status) != 0) return false;
  return (status.st_mode & 07777) == mode || ::chmod(path, mode) == 0;
}

}  // namespace

Result<UniqueFd> bind_and_listen(const SocketAddress& address, const std::string& name, unsigned mode) {
  const auto failure = [&](std::string_view action) {
    return Error::from_errno(ErrorKind::connection_failed, std::string(action) + " " + name, errno);
  };
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failure("cannot create a socket for");
  if (address.family() == AF_UNIX) {
    remove_stale_socket(address);
    // bind() creates the file with the mode of the socket, less the umask.
    if (::fchmod(fd.get(), mode) != 0) return failure("cannot set the permissions of");
  } else {
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(fd.get(), address.get(), address.size) != 0) return failure("cannot listen on");
  // Adds the permissions that the umask removed. No client can connect before listen().
  if (address.family() == AF_UNIX && !set_socket_mode(address, mode))
    return failure("cannot set the permissions of");
  if (::listen(fd.get(), kBacklog) != 0) return failure("cannot listen on");
  return fd;
}

std::uint16_t local_port(int fd) noexcept {
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0) return 0;
  if (bound.family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  }
  return bound.family() == AF_INET ? ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port)
                                   : 0;
}

void set_no_delay(int fd) noexcept {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace fairlead
