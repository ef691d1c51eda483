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

std::string name_of(const Uri& uri, int fd) {
  if (uri.scheme == Uri::Scheme::unix_socket) return uri.text;
  return "tcp:" + join_host_and_port(uri.host, local_port(fd));
}

Result<UniqueFd> open_listening_socket(const Uri& uri, unsigned mode) {
  const Result<SocketAddress> address =
      uri.scheme == Uri::Scheme::unix_socket ? unix_address(uri.path) : numeric_address(uri.host, uri.port);
  if (!address) return address.error();
  return listening_socket(*address, uri.text, mode);
}

class SocketListener final : public Listener {
 public:
  SocketListener(Loop& loop, Uri uri, std::string address, ConnectOptions options, OnConnection accept)
      : loop_(loop),
        uri_(std::move(uri)),
        address_(std::move(address)),
        options_(std::move(options)),
        accept_(std::move(accept)) {}
  ~SocketListener() override { close(); }

  Result<void> start(UniqueFd socket) {
    auto started = Acceptor::start(loop_, std::move(socket), address_, options_.log,
                                   [this](UniqueFd fd) { take(std::move(fd)); });
    if (!started) return started.error();
    acceptor_ = std::move(*started);
    return {};
  }

  std::string address() const override { return address_; }

  void close() override {
    if (!acceptor_ || !acceptor_->open()) return;
    acceptor_->close();
    if (uri_.scheme == Uri::Scheme::unix_socket) ::unlink(uri_.path.c_str());
  }

 private:
  void take(UniqueFd fd) {
    if (uri_.scheme == Uri::Scheme::tcp) set_no_delay(fd.get());
    StreamOptions stream;
    stream.framing = options_.framing;
    stream.on_framing_error = options_.on_framing_error;
    stream.limits = options_.limits;
    stream.log = options_.log;
    stream.description = "a client of " + address_;
    stream.answers_after_eof = true;
    stream.refuse_http = true;
    auto made = StreamConnection::create(loop_, std::move(fd), UniqueFd(), std::move(stream));
    if (!made) return options_.log.error("cannot accept", {{"reason", made.error().message()}});
    if (open_.size() >= std::min(count_again_at_, options_.limits.max_connections)) forget_closed();
    if (open_.size() >= options_.limits.max_connections) return turn_away(**made);
    open_.push_back(*made);
    accept_(std::move(*made));
  }

  // Looked through only when their number has doubled, or the limit seems reached.
  void forget_closed() {
    std::erase_if(open_, [](const std::weak_ptr<Connection>& one) {
      const auto connection = one.lock();
      return !connection || connection->closed();
    });
    count_again_at_ = std::max<std::size_t>(64, 2 * open_.size());
  }

  void turn_away(Connection& connection) {
    const std::string limit = "max_connections (" + std::to_string(options_.limits.max_connections) + ")";
    fault_log_.write(options_.log, LogLevel::warning, "turned a client away: " + limit + " are open",
                     {{"listener", address_}});
    static_cast<void>(connection.post(rpc::make_error("null", rpc::kServerBusy, limit + " are open")));
    loop_.spawn(hang_up(connection.shared_from_this()));
  }

  static Task<void> hang_up(std::shared_ptr<Connection> connection) {
    const Result<void> sent = co_await connection->drained(0);
    if (sent) connection->close();
  }

  Loop& loop_;
  Uri uri_;
  std::string address_;
  ConnectOptions options_;
  OnConnection accept_;
  std::shared_ptr<Acceptor> acceptor_;
  LogRateLimit fault_log_;
  std::vector<std::weak_ptr<Connection>> open_;
  std::size_t count_again_at_ = 64;
};

}  // namespace

Result<std::shared_ptr<Listener>> Listener::listen(Loop& loop, const Uri& uri, ConnectOptions options,
                                                   OnConnection accept) {
  if (uri.scheme != Uri::Scheme::tcp && uri.scheme != Uri::Scheme::unix_socket) {
    return Error(ErrorKind::validation, "can listen on tcp: and unix: addresses only, not on " + uri.text);
  }
  Result<UniqueFd> fd = open_listening_socket(uri, options.socket_mode);
  if (!fd) return fd.error();
  const std::string address = name_of(uri, fd->get());
  auto listener = std::make_shared<SocketListener>(loop, uri, address, std::move(options), std::move(accept));
  const Result<void> started = listener->start(std::move(*fd));
  if (!started) return started.error();
  return std::shared_ptr<Listener>(std::move(listener));
}

}  // namespace fairlead
