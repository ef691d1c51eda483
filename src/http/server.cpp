#include "fairlead/http/server.hpp"

#include <sys/socket.h>

#include "connection/acceptor.hpp"
#include "http/byte_stream.hpp"
#include "http/listening.hpp"
#include "http/server_connection.hpp"
#include "http/server_core.hpp"
#include "loop/run_blocking.hpp"

namespace fairlead::http {

namespace {

constexpr std::size_t kMaxSurplus =
    256;  // clients that are waited for after they were told that there are too many

class SocketServer final : public Server, public std::enable_shared_from_this<SocketServer> {
 public:
  SocketServer(Loop& loop, const Listening& listening, ServerOptions options, std::shared_ptr<TlsContext> tls)
      : core_(std::make_shared<ServerCore>(loop, std::move(options), listening.kind)),
        address_(listening.address),
        tls_(std::move(tls)) {
    if (!listening.path.empty()) file_ = SocketFile(listening.path);
  }
  ~SocketServer() override { close(); }

  Result<void> listen_on(std::vector<UniqueFd> sockets) {
    for (UniqueFd& socket : sockets) {
      Result<std::shared_ptr<Acceptor>> started =
          Acceptor::start(core_->loop, std::move(socket), address_, core_->options.log,
                          [this](UniqueFd fd) { take(std::move(fd)); });
      if (!started) return started.error();
      acceptors_.push_back(std::move(*started));
    }
    return {};
  }

  void route(std::string path, Handler handler) override {
    core_->routes.add(std::move(path), std::move(handler));
  }
  std::string address() const override { return address_; }
  std::size_t connections() const noexcept override { return core_->count(); }

  Task<Result<void>> reload_tls() override { return read_and_use_tls(shared_from_this()); }

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
    Task<void> closing_idle = ServerCore::drain(self->core_);
    co_await closing_idle;
    co_await self->core_->emptied().wait(self->core_->loop, self->core_->options.drain_grace);
    Task<void> closing = ServerCore::close_connections(self->core_);
    co_await closing;
    self->close();
  }

  static Task<Result<void>> read_and_use_tls(std::shared_ptr<SocketServer> self) {
    const ServerOptions& options = self->core_->options;
    if (!options.tls) co_return Error(ErrorKind::validation, self->address_ + " has no TLS");
    std::move_only_function<Result<std::shared_ptr<TlsContext>>()> read = [files = *options.tls] {
      return server_tls(files.certificate, files.key);
    };
    Task<Result<std::shared_ptr<TlsContext>>> reading =
        run_blocking(self->core_->loop, self->tls_reader_, std::move(read));
    Result<std::shared_ptr<TlsContext>> made = co_await reading;
    if (!made) co_return made.error();
    self->tls_ = std::move(*made);
    co_return Result<void>();
  }

  void take(UniqueFd fd) {
    const bool full = core_->count() >= core_->options.max_connections;
    const bool surplus = full && !core_->evict_for(network_of_remote(name_of_remote(fd.get())));
    if (surplus) warn_of_surplus();
    if (surplus && tls_) return;  // a handshake for a refusal is more than there is to give
    if (surplus && core_->surplus() >= kMaxSurplus) return turn_away(fd.get());
    PrincipalPtr peer = principal_of_peer(fd.get());
    Result<std::unique_ptr<ByteStream>> stream =
        tls_ ? tls_stream(core_->loop, std::move(fd), tls_, "") : plain_stream(core_->loop, std::move(fd));
    if (!stream) {
      return core_->options.log.error("cannot take a connection", {{"reason", stream.error().message()}});
    }
    auto connection = std::make_shared<ServerConnection>(core_, std::move(*stream), std::move(peer), surplus);
    core_->add(connection);
    connection->start();
  }

  // Said at once or not at all.
  void turn_away(int fd) {
    const Response response = refusal_response(503, surplus_message(core_->options));
    HeadFraming framing;
    framing.size = response.body.front().size();
    framing.keep_alive = false;
    std::string answer;
    write_head(answer, response, framing, core_->date.now());
    answer += response.body.front().view();
    static_cast<void>(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }

  void warn_of_surplus() {
    const Clock::time_point now = Clock::now();
    if (now - warned_ < std::chrono::seconds(1)) return;
    warned_ = now;
    core_->options.log.warning("turned clients away: " + surplus_message(core_->options),
                               {{"listener", address_}});
  }

  std::shared_ptr<ServerCore> core_;
  std::string address_;
  std::shared_ptr<TlsContext> tls_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  SocketFile file_;
  Clock::time_point warned_;
  Workers tls_reader_{
      Workers::one_thread()};  // one thread, so that the files that were read last are used last
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
    Result<std::shared_ptr<TlsContext>> made = server_tls(options.tls->certificate, options.tls->key);
    if (!made) return made.error();
    tls = std::move(*made);
  }
  if (!options.budget) options.budget = ByteBudget::create();
  Result<Listening> listening = open_listening(address, options.socket_mode);
  if (!listening) return listening.error();
  auto server = std::make_shared<SocketServer>(loop, *listening, std::move(options), std::move(tls));
  Result<void> started = server->listen_on(std::move(listening->sockets));
  if (!started) return started.error();
  return std::shared_ptr<Server>(std::move(server));
}

}  // namespace fairlead::http
