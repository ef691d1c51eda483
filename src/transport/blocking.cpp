#include "fairlead/blocking.hpp"

#include "connection/loop_thread.hpp"
#include "fairlead/peer/peer.hpp"

namespace fairlead::blocking {

namespace {

Task<void> close_and_wait(std::shared_ptr<fairlead::Connection> connection) {
  connection->close();
  co_await connection->wait_closed();
}

Task<Result<json::Raw>> do_call(std::shared_ptr<fairlead::Peer> peer, std::string method, json::Raw params,
                                CallOptions options) {
  Result<json::Raw> result = co_await peer->call(method, std::move(params), std::move(options));
  co_return result;
}

Task<Result<void>> do_notify(std::shared_ptr<fairlead::Peer> peer, std::string method, json::Raw params) {
  Result<void> sent = co_await peer->notify(method, params);
  co_return sent;
}

Task<Result<void>> do_send(std::shared_ptr<fairlead::Connection> connection, rpc::Rope message) {
  Result<void> sent = co_await connection->send(std::move(message));
  co_return sent;
}

Task<Result<rpc::Message>> do_receive(std::shared_ptr<fairlead::Connection> connection) {
  Result<rpc::Message> message = co_await connection->receive();
  co_return message;
}

Task<std::optional<ChildInfo>> child_of(std::shared_ptr<fairlead::Connection> connection) {
  co_return connection->child();
}

Task<void> start_peer(std::shared_ptr<fairlead::Connection> connection,
                      std::shared_ptr<const Methods> methods, PeerOptions options,
                      std::shared_ptr<fairlead::Peer>& out) {
  out = fairlead::Peer::start(std::move(connection), std::move(methods), std::move(options));
  co_return;
}

}  // namespace

struct Connection::Impl {
  LoopThread thread;
  std::shared_ptr<fairlead::Connection> connection;

  ~Impl() {
    if (connection) thread.wait_for(close_and_wait(std::move(connection)));
  }
};

Connection::Connection(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Connection> Connection::connect(std::string_view uri, transport::ConnectOptions options) {
  auto impl = std::make_unique<Impl>();
  Loop& loop = impl->thread.loop();
  ConnectResult connection =
      impl->thread.wait_for(transport::connect(loop, std::string(uri), std::move(options)));
  if (!connection) return connection.error();
  impl->connection = std::move(*connection);
  return Connection(std::move(impl));
}

Result<void> Connection::send(std::string_view value) {
  Result<json::Raw> valid = json::Raw::parse(value);
  if (!valid) return valid.error();
  return impl_->thread.wait_for(do_send(impl_->connection, rpc::Rope(valid->bytes(), valid->is_one_line())));
}

Result<rpc::Message> Connection::receive() {
  return impl_->thread.wait_for(do_receive(impl_->connection));
}

std::optional<ChildInfo> Connection::child() const {
  return impl_->thread.wait_for(child_of(impl_->connection));
}

void Connection::close() {
  impl_->connection->close();
}

bool Connection::closed() const noexcept {
  return impl_->connection->closed();
}

struct Peer::Impl {
  LoopThread thread;
  std::shared_ptr<Workers> workers;
  std::shared_ptr<fairlead::Connection> connection;
  std::shared_ptr<fairlead::Peer> peer;

  ~Impl() {
    if (!connection) return;
    thread.wait_for(close_and_wait(std::move(connection)));
    // A Peer must be destroyed on its loop thread.
    thread.loop().post([peer = std::move(peer)] {});
  }
};

Peer::Peer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Peer::Peer(Peer&&) noexcept = default;
Peer& Peer::operator=(Peer&&) noexcept = default;
Peer::~Peer() = default;

Result<Peer> Peer::connect(std::string_view uri, transport::ConnectOptions options,
                           std::shared_ptr<const Methods> methods) {
  auto impl = std::make_unique<Impl>();
  Loop& loop = impl->thread.loop();
  PeerOptions peer_options;
  peer_options.limits = options.limits;
  peer_options.log = options.log;
  // A child process may print other text on stdout.
  peer_options.malformed_frames = MalformedFramePolicy::skip;
  peer_options.workers = impl->workers = std::make_shared<Workers>(options.limits);
  ConnectResult connection =
      impl->thread.wait_for(transport::connect(loop, std::string(uri), std::move(options)));
  if (!connection) return connection.error();
  impl->connection = std::move(*connection);
  impl->thread.wait_for(
      start_peer(impl->connection, std::move(methods), std::move(peer_options), impl->peer));
  return Peer(std::move(impl));
}

Result<json::Raw> Peer::call(std::string_view method, std::string_view params,
                             std::optional<std::chrono::milliseconds> timeout) {
  Result<json::Raw> valid = json::Raw::parse_optional(params);
  if (!valid) return valid.error();
  CallOptions options;
  options.timeout = timeout;
  return impl_->thread.wait_for(
      do_call(impl_->peer, std::string(method), std::move(*valid), std::move(options)));
}

Result<void> Peer::notify(std::string_view method, std::string_view params) {
  Result<json::Raw> valid = json::Raw::parse_optional(params);
  if (!valid) return valid.error();
  return impl_->thread.wait_for(do_notify(impl_->peer, std::string(method), std::move(*valid)));
}

std::optional<ChildInfo> Peer::child() const {
  return impl_->thread.wait_for(child_of(impl_->connection));
}

void Peer::close() {
  impl_->peer->close();
}

bool Peer::closed() const noexcept {
  return impl_->peer->closed();
}

}  // namespace fairlead::blocking
