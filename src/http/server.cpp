#include "fairlead/http/server.hpp"

#include <sys/socket.h>

#include "connection/acceptor.hpp"
#include "http/byte_stream.hpp"
#include "http/listening_sockets.hpp"
#include "http/server_connection.hpp"
#include "http/server_core.hpp"
#include "loop/run_blocking.hpp"

namespace fairlead::http {

namespace {

// How many connections over max_connections may stay open until their client has read the 503.
constexpr std::size_t kMaxSurplusConnections = 256;

class SocketServer final : public Server, public std::enable_shared_from_this<SocketServer> {
 public:
  SocketServer(Loop& loop, const ListeningSockets& listening, ServerOptions options,
               std::shared_ptr<TlsContext> tls)
      : core_(std::make_shared<ServerCore>(loop, std::move(options), listening.kind)),
        address_(listening.address),
        tls_(std::move(tls)) {
    if (!listening.socket_path.empty()) file_ = SocketFile(listening.socket_path);
  }
  ~SocketServer() override { close(); }

  Result<void> listen_on(std::vector<UniqueFd> sockets) {
    for (UniqueFd& socket : sockets) {
      Result<std::shared_ptr<Acceptor>> started =
          Acceptor::start(core_->loop, std::move(socket), address_, core_->options.log,
                          [this](UniqueFd fd) { accept_connection(std::move(fd)); });
      if (!started) return started.error();
      acceptors_.push_back(std::move(*started));
    }
    return {};
  }

  void route(std::string path, Handler handler) override {
    core_->routes.add(std::move(path), std::move(handler));
  }
  std::string address() const override { return address_; }
  std::size_t connection_count() const noexcept override { return core_->connection_count(); }

  Task<Result<void>> reload_tls() override { return reload_tls_files(shared_from_this()); }

  void set_drain_grace(std::chrono::milliseconds grace) override { drain_grace_ = grace; }

  void stop_accepting() override {
    for (const auto& acceptor : acceptors_) acceptor->close();
    acceptors_.clear();
    file_.remove();
  }

  Task<void> drain() override { return drain_and_close(shared_from_this()); }

  void close() override {
    stop_accepting();
    core_->close_all();
  }

 private:
  static Task<void> drain_and_close(std::shared_ptr<SocketServer> self) {
    self->stop_accepting();
    co_await ServerCore::drain(self->core_);
    co_await self->core_->emptied().wait(self->core_->loop, self->drain_grace_);
    co_await ServerCore::close_connections(self->core_);
    self->close();
  }

  static Task<Result<void>> reload_tls_files(std::shared_ptr<SocketServer> self) {
    const ServerOptions& options = self->core_->options;
    if (!options.tls) co_return Error(ErrorKind::validation, self->address_ + " has no TLS");
    std::move_only_function<Result<std::shared_ptr<TlsContext>>()> read = [files = *options.tls] {
      return make_server_tls_context(files.certificate, files.key);
    };
    Result<std::shared_ptr<TlsContext>> context =
        co_await run_blocking(self->core_->loop, self->tls_file_worker_, std::move(read));
    if (!context) co_return context.error();
    self->tls_ = std::move(*context);
    co_return Result<void>();
  }

  void accept_connection(UniqueFd fd) {
    const bool full = core_->connection_count() >= core_->options.max_connections;
    const bool surplus = full && !core_->evict_for(client_network(remote_address_of(fd.get())));
    if (surplus) warn_of_surplus();
    if (surplus && tls_)
      return;  // rejecting the client over TLS would need a handshake, which costs too much
    if (surplus && core_->surplus_count() >= kMaxSurplusConnections) return reject_connection(fd.get());
    PrincipalPtr peer_principal = principal_of_remote(fd.get());
    Result<std::unique_ptr<ByteStream>> stream = tls_ ? make_tls_stream(core_->loop, std::move(fd), tls_, "")
                                                      : make_plain_stream(core_->loop, std::move(fd));
    if (!stream) {
      return core_->options.log.error("cannot accept a connection", {{"reason", stream.error().message()}});
    }
    auto connection =
        std::make_shared<ServerConnection>(core_, std::move(*stream), std::move(peer_principal), surplus);
    core_->add(connection);
    connection->start();
  }

  // Sends 503 on a socket without waiting. The response is lost if the socket is not writable.
  void reject_connection(int fd) {
    const Response response = refusal_response(503, surplus_message(core_->options));
    ResponseFraming framing;
    framing.content_length = response.body.front().size();
    framing.keep_alive = false;
    std::string message;
    append_head(message, response, framing, core_->date.now());
    message += response.body.front().view();
    static_cast<void>(::send(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }

  void warn_of_surplus() {
    const Clock::time_point now = Clock::now();
    if (now - last_surplus_warning_ < std::chrono::seconds(1)) return;
    last_surplus_warning_ = now;
    core_->options.log.warning("rejected connections: " + surplus_message(core_->options),
                               {{"listener", address_}});
  }

  std::shared_ptr<ServerCore> core_;
  std::chrono::milliseconds drain_grace_ = core_->options.drain_grace;
  std::string address_;
  std::shared_ptr<TlsContext> tls_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  SocketFile file_;
  Clock::time_point last_surplus_warning_;
  // Reads TLS files. It has one thread, so that reloads take effect in the order in which they started.
  Workers tls_file_worker_{Workers::single_thread_limits()};
};

}  // namespace

Result<bool> is_local_address(const std::string& address) {
  const Result<ListenerKind> kind = listener_kind(address);
  if (!kind) return kind.error();
  return *kind != ListenerKind::network;
}

Result<std::shared_ptr<Server>> Server::listen(Loop& loop, const std::string& address,
                                               ServerOptions options) {
  std::shared_ptr<TlsContext> tls;
  if (options.tls) {
    Result<std::shared_ptr<TlsContext>> context =
        make_server_tls_context(options.tls->certificate, options.tls->key);
    if (!context) return context.error();
    tls = std::move(*context);
  }
  if (!options.budget) options.budget = ByteBudget::create();
  Result<ListeningSockets> listening = open_listening_sockets(address, options.socket_mode);
  if (!listening) return listening.error();
  auto server = std::make_shared<SocketServer>(loop, *listening, std::move(options), std::move(tls));
  Result<void> started = server->listen_on(std::move(listening->sockets));
  if (!started) return started.error();
  return std::shared_ptr<Server>(std::move(server));
}

}  // namespace fairlead::http
