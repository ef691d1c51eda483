#include "fairlead/connection/listen.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/uri.hpp"
#include "connection/acceptor.hpp"
#include "connection/sockets.hpp"
#include "connection/stream_connection.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead {

namespace {

std::string listener_address(const Uri& uri, int fd) {
  if (uri.scheme == Uri::Scheme::unix_socket) return uri.text;
  return "tcp:" + join_host_and_port(uri.host, local_port(fd));
}

Result<UniqueFd> open_listening_socket(const Uri& uri, unsigned mode) {
  const Result<SocketAddress> address =
      uri.scheme == Uri::Scheme::unix_socket ? unix_address(uri.path) : numeric_address(uri.host, uri.port);
  if (!address) return address.error();
  return bind_and_listen(*address, uri.text, mode);
}

class SocketListener final : public Listener {
 public:
  SocketListener(Loop& loop, Uri uri, std::string address, StreamConnectOptions options,
                 OnConnection on_connection)
      : loop_(loop),
        uri_(std::move(uri)),
        address_(std::move(address)),
        options_(std::move(options)),
        on_connection_(std::move(on_connection)) {}
  ~SocketListener() override { close(); }

  Result<void> start(UniqueFd socket) {
    auto started = Acceptor::start(loop_, std::move(socket), address_, options_.log,
                                   [this](UniqueFd fd) { on_accepted(std::move(fd)); });
    if (!started) return started.error();
    acceptor_ = std::move(*started);
    return {};
  }

  std::string address() const override { return address_; }

  void close() override {
    if (!acceptor_ || !acceptor_->is_open()) return;
    acceptor_->close();
    if (uri_.scheme == Uri::Scheme::unix_socket) ::unlink(uri_.path.c_str());
  }

 private:
  void on_accepted(UniqueFd fd) {
    if (uri_.scheme == Uri::Scheme::tcp) set_no_delay(fd.get());
    StreamOptions stream;
    stream.framing = options_.framing;
    stream.on_framing_error = options_.on_framing_error;
    stream.limits = options_.limits;
    stream.log = options_.log;
    stream.description = "a client of " + address_;
    stream.responds_after_eof = true;
    stream.reject_http = true;
    auto connection = StreamConnection::create(loop_, std::move(fd), UniqueFd(), std::move(stream));
    if (!connection)
      return options_.log.error("cannot accept a connection", {{"reason", connection.error().message()}});
    if (open_.size() >= std::min(prune_threshold_, options_.limits.max_connections)) remove_closed();
    if (open_.size() >= options_.limits.max_connections) return reject_connection(**connection);
    open_.push_back(*connection);
    on_connection_(std::move(*connection));
  }

  // Called only when the number of connections has doubled or has reached the limit.
  void remove_closed() {
    std::erase_if(open_, [](const std::weak_ptr<Connection>& weak) {
      const auto connection = weak.lock();
      return !connection || connection->closed();
    });
    prune_threshold_ = std::max<std::size_t>(64, 2 * open_.size());
  }

  void reject_connection(Connection& connection) {
    const std::string limit = "max_connections (" + std::to_string(options_.limits.max_connections) + ")";
    fault_log_.write(options_.log, LogLevel::warning, "connection rejected: " + limit + " are open",
                     {{"listener", address_}});
    static_cast<void>(connection.post(rpc::make_error("null", rpc::kServerBusy, limit + " are open")));
    loop_.spawn(close_when_flushed(connection.shared_from_this()));
  }

  static Task<void> close_when_flushed(std::shared_ptr<Connection> connection) {
    const Result<void> sent = co_await connection->wait_drained(0);
    if (sent) connection->close();
  }

  Loop& loop_;
  Uri uri_;
  std::string address_;
  StreamConnectOptions options_;
  OnConnection on_connection_;
  std::shared_ptr<Acceptor> acceptor_;
  LogRateLimit fault_log_;
  std::vector<std::weak_ptr<Connection>> open_;
  std::size_t prune_threshold_ = 64;
};

}  // namespace

Result<std::shared_ptr<Listener>> Listener::listen(Loop& loop, const Uri& uri, StreamConnectOptions options,
                                                   OnConnection on_connection) {
  if (uri.scheme != Uri::Scheme::tcp && uri.scheme != Uri::Scheme::unix_socket) {
    return Error(ErrorKind::validation,
                 "cannot listen on " + uri.text + ": only tcp: and unix: addresses are supported");
  }
  Result<UniqueFd> fd = open_listening_socket(uri, options.socket_mode);
  if (!fd) return fd.error();
  const std::string address = listener_address(uri, fd->get());
  auto listener =
      std::make_shared<SocketListener>(loop, uri, address, std::move(options), std::move(on_connection));
  const Result<void> started = listener->start(std::move(*fd));
  if (!started) return started.error();
  return std::shared_ptr<Listener>(std::move(listener));
}

}  // namespace fairlead
