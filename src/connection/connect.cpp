#include "connection/child_connection.hpp"
#include "connection/connect_stream.hpp"
#include "connection/sockets.hpp"
#include "connection/stream_connection.hpp"

namespace fairlead {

namespace {

StreamOptions stream_options(const StreamConnectOptions& options, std::string description) {
  StreamOptions result;
  result.framing = options.framing;
  result.on_framing_error = options.on_framing_error;
  result.limits = options.limits;
  result.log = options.log;
  result.description = std::move(description);
  return result;
}

ConnectResult connection_over_socket(Loop& loop, UniqueFd fd, const StreamConnectOptions& options,
                                     const std::string& name) {
  auto connection = StreamConnection::create(loop, std::move(fd), UniqueFd(), stream_options(options, name));
  if (!connection) return connection.error();
  return std::shared_ptr<Connection>(std::move(*connection));
}

Task<ConnectResult> connect_unix(Loop& loop, Uri uri, StreamConnectOptions options) {
  const Result<SocketAddress> address = unix_address(uri.path);
  if (!address) co_return address.error();
  Result<UniqueFd> fd = co_await connect_socket(loop, *address, uri.text, options.limits.connect_timeout);
  if (!fd) co_return fd.error();
  co_return connection_over_socket(loop, std::move(*fd), options, uri.text);
}

// Tries the addresses of a name in order. Fails with the error of the last one.
Task<ConnectResult> connect_tcp(Loop& loop, Uri uri, StreamConnectOptions options) {
  const Result<std::vector<SocketAddress>> addresses =
      co_await resolve(loop, uri.host, uri.port, options.limits.connect_timeout);
  if (!addresses) co_return addresses.error();
  Error last_error(ErrorKind::connection_failed, uri.host + " has no address");
  for (const SocketAddress& address : *addresses) {
    Result<UniqueFd> fd = co_await connect_socket(loop, address, uri.text, options.limits.connect_timeout);
    if (fd) {
      set_no_delay(fd->get());
      co_return connection_over_socket(loop, std::move(*fd), options, uri.text);
    }
    last_error = fd.error();
  }
  co_return last_error;
}

}  // namespace

Task<ConnectResult> connect_child(Loop& loop, ProcessSpec spec, StreamConnectOptions options) {
  Result<std::shared_ptr<Child>> child =
      co_await Child::spawn(loop, std::move(spec), options.limits, options.log);
  if (!child) co_return child.error();
  co_return ChildConnection::create(loop, std::move(*child), stream_options(options, {}));
}

Task<ConnectResult> connect_stream(Loop& loop, Uri uri, StreamConnectOptions options) {
  switch (uri.scheme) {
    case Uri::Scheme::stdio: {
      if (uri.argv.empty()) co_return connect_own_stdio(loop, std::move(options));
      ProcessSpec spec;
      spec.command = uri.argv.front();
      spec.args.assign(uri.argv.begin() + 1, uri.argv.end());
      ConnectResult connection = co_await connect_child(loop, std::move(spec), std::move(options));
      co_return connection;
    }
    case Uri::Scheme::tcp: {
      ConnectResult connection = co_await connect_tcp(loop, std::move(uri), std::move(options));
      co_return connection;
    }
    case Uri::Scheme::unix_socket: {
      ConnectResult connection = co_await connect_unix(loop, std::move(uri), std::move(options));
      co_return connection;
    }
    default: break;
  }
  co_return Error(ErrorKind::validation, "`" + uri.text + "` is not a stdio:, tcp: or unix: address");
}

}  // namespace fairlead
