#include "connection/child_connection.hpp"
#include "connection/connect_stream.hpp"
#include "connection/sockets.hpp"
#include "connection/stream_connection.hpp"

namespace fairlead {

namespace {

StreamOptions stream_options(const ConnectOptions& options, std::string description) {
  StreamOptions made;
  made.framing = options.framing;
  made.on_framing_error = options.on_framing_error;
  made.limits = options.limits;
  made.log = options.log;
  made.description = std::move(description);
  return made;
}

ConnectResult over_socket(Loop& loop, UniqueFd fd, const ConnectOptions& options, const std::string& name) {
  auto made = StreamConnection::create(loop, std::move(fd), UniqueFd(), stream_options(options, name));
  if (!made) return made.error();
  return std::shared_ptr<Connection>(std::move(*made));
}

Task<ConnectResult> connect_unix(Loop& loop, Uri uri, ConnectOptions options) {
  const Result<SocketAddress> address = unix_address(uri.path);
  if (!address) co_return address.error();
  Task<Result<UniqueFd>> connecting =
      connect_socket(loop, *address, uri.text, options.limits.connect_timeout);
  Result<UniqueFd> fd = co_await connecting;
  if (!fd) co_return fd.error();
  co_return over_socket(loop, std::move(*fd), options, uri.text);
}

// Tries the addresses of a name in order; the last failure is the one that is told.
Task<ConnectResult> connect_tcp(Loop& loop, Uri uri, ConnectOptions options) {
  Task<Result<std::vector<SocketAddress>>> resolving =
      resolve(loop, uri.host, uri.port, options.limits.connect_timeout);
  const Result<std::vector<SocketAddress>> addresses = co_await resolving;
  if (!addresses) co_return addresses.error();
  Error last(ErrorKind::connection_failed, uri.host + " has no address");
  for (const SocketAddress& address : *addresses) {
    Task<Result<UniqueFd>> connecting =
        connect_socket(loop, address, uri.text, options.limits.connect_timeout);
    Result<UniqueFd> fd = co_await connecting;
    if (fd) {
      set_no_delay(fd->get());
      co_return over_socket(loop, std::move(*fd), options, uri.text);
    }
    last = fd.error();
  }
  co_return last;
}

}  // namespace

Task<ConnectResult> connect_child(Loop& loop, ProcessSpec spec, ConnectOptions options) {
  Task<Result<std::shared_ptr<Child>>> spawning =
      Child::spawn(loop, std::move(spec), options.limits, options.log);
  Result<std::shared_ptr<Child>> child = co_await spawning;
  if (!child) co_return child.error();
  co_return ChildConnection::create(loop, std::move(*child), stream_options(options, {}));
}

Task<ConnectResult> connect_stream(Loop& loop, Uri uri, ConnectOptions options) {
  switch (uri.scheme) {
    case Uri::Scheme::stdio: {
      if (uri.words.empty()) co_return connect_own_stdio(loop, std::move(options));
      ProcessSpec spec;
      spec.command = uri.words.front();
      spec.args.assign(uri.words.begin() + 1, uri.words.end());
      Task<ConnectResult> connecting = connect_child(loop, std::move(spec), std::move(options));
      ConnectResult made = co_await connecting;
      co_return made;
    }
    case Uri::Scheme::tcp: {
      Task<ConnectResult> connecting = connect_tcp(loop, std::move(uri), std::move(options));
      ConnectResult made = co_await connecting;
      co_return made;
    }
    case Uri::Scheme::unix_socket: {
      Task<ConnectResult> connecting = connect_unix(loop, std::move(uri), std::move(options));
      ConnectResult made = co_await connecting;
      co_return made;
    }
    default: break;
  }
  co_return Error(ErrorKind::validation, "`" + uri.text + "` is not an address of a byte stream");
}

}  // namespace fairlead
