// ClientSession: connecting to the server, and reconnecting after the connection was lost.
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "http/url.hpp"
#include "mcp/client_session.hpp"
#include "mcp/dialect.hpp"

namespace fairlead::mcp {

namespace {

// Returns whether the policy allows a client to reconnect to `uri`.
bool may_reconnect(const std::string& uri, Reconnect policy) {
  const Result<Uri> parsed = Uri::parse(uri);
  if (!parsed || policy == Reconnect::never) return false;
  const bool stdio = parsed->scheme == Uri::Scheme::stdio;
  if (stdio && parsed->argv.empty()) return false;  // stdin and stdout of this process cannot be reopened
  return stdio || policy == Reconnect::always;
}

// Returns the key of a server in an EraCache: the origin of an HTTP URL, otherwise the whole address, such as
// the command line.
std::string era_key_of(const std::string& uri) {
  const Result<http::Url> url = http::Url::parse(uri);
  return url && url->scheme.starts_with("http") ? url->origin() : uri;
}

// Returns the failure code for the error of a failed handshake. Errors of the process or the transport
// already have a code.
std::string_view handshake_failure_code(const Error& error) {
  if (error.detail().failure_code == failure::exited) return failure::exited_in_handshake;
  if (!error.detail().failure_code.empty()) return error.detail().failure_code;
  if (error.kind() == ErrorKind::timeout) return failure::handshake_timeout;
  return error.kind() == ErrorKind::parse ? failure::noise_on_stdout : failure::handshake_failed;
}

// Returns the response to a request that arrives after the client was destroyed.
Task<Answer> respond_client_destroyed() {
  co_return Error::rpc(rpc::kInternalError, "The client was destroyed");
}

Error closed_while_connecting_error() {
  return Error(ErrorKind::closed, "the client was closed while it was connecting");
}

}  // namespace

// ---- connecting -----------------------------------------------------------------------------------------

void ClientSession::start_peer(std::shared_ptr<Connection> connection) {
  auto methods = std::make_shared<Methods>();
  std::weak_ptr<Client> weak = weak_from_this();
  methods->fallback([weak](Request request) -> Task<Answer> {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client ? client->handle_message(std::move(request)) : respond_client_destroyed();
  });
  PeerOptions peer_options;
  peer_options.limits = options_.connect.limits;
  peer_options.log = options_.connect.log;
  peer_options.malformed_frames = MalformedFramePolicy::skip;
  peer_options.dialect = dialect();
  // In the modern era a server must not send requests, and a client must not send responses. So a request of
  // a modern server is ignored.
  peer_options.ignore_request = [weak](const rpc::Message&) {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client && is_modern(client->revision_);
  };
  peer_options.on_draining = [weak] {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    // If peer_ is null, the connection was closed before Peer::start() returned. Then connect() returns the
    // error, and on_ended is not called.
    if (client && client->peer_ && client->options_.handlers.on_ended && client->end_reason())
      client->options_.handlers.on_ended(*client->end_reason());
  };
  connection_ = connection;
  peer_ = Peer::start(std::move(connection), std::move(methods), std::move(peer_options));
}

Task<Result<void>> ClientSession::handshake_on(std::shared_ptr<Connection> connection) {
  start_peer(std::move(connection));
  handshake_deadline_ = Clock::now() + options_.handshake_timeout;
  const Result<void> handshake_result = co_await negotiate_era();
  if (handshake_result) co_return handshake_result;
  era_cache_->erase(era_cache_key_);
  co_await close_connection();
  co_return connection_->with_error_context(handshake_result.error(),
                                            handshake_failure_code(handshake_result.error()));
}

Task<Result<void>> ClientSession::connect_once() {
  if (closing_) co_return closed_while_connecting_error();
  Task<ConnectResult> connecting =
      connector_ ? connector_(loop_, options_.connect) : transport::connect(loop_, uri_, options_.connect);
  ConnectResult connection = co_await connecting;
  if (!connection) co_return connection.error();
  if (closing_) {
    (*connection)->close();
    co_await (*connection)->wait_closed();
    co_return closed_while_connecting_error();
  }
  Result<void> handshake_result = co_await handshake_on(std::move(*connection));
  co_return handshake_result;
}

Task<Result<void>> ClientSession::connect_to(std::string uri) {
  const auto keep_alive = self();
  uri_ = std::move(uri);
  if (options_.era_key.empty()) era_cache_key_ = era_key_of(uri_);
  if (options_.era_cache) era_cache_ = options_.era_cache;
  Result<void> connected = co_await connect_retrying_without_probe();
  may_reconnect_ = may_reconnect(uri_, options_.reconnect);
  co_return connected;
}

Task<Result<void>> ClientSession::connect_with(Connector connector) {
  const auto keep_alive = self();
  connector_ = std::move(connector);
  Result<void> connected = co_await connect_retrying_without_probe();
  co_return connected;
}

Task<Result<void>> ClientSession::connect_retrying_without_probe() {
  Result<void> connected = co_await connect_once();
  if (connected || !retry_without_probe_) co_return connected;
  options_.connect.log.info("reconnecting without a probe", {{"reason", connected.error().message()}});
  skip_probe_ = true;
  connected = co_await connect_once();
  skip_probe_ = false;
  co_return connected;
}

Task<void> ClientSession::close_connection() {
  const std::shared_ptr<Connection> connection = connection_;
  connection->close();
  co_await connection->wait_closed();
}

Task<void> ClientSession::close() {
  const auto keep_alive = self();
  closing_ = true;
  if (connection_) {
    co_await close_connection();
  }
  if (const std::shared_ptr<ReconnectAttempt> attempt = reconnect_attempt_) {
    co_await attempt->done.wait(loop_);
  }
}

// ---- reconnecting ---------------------------------------------------------------------------------------

// When a connection is lost, its pending calls fail. The next request starts a reconnect, and further
// requests wait for that reconnect. The reconnect runs as its own coroutine, so that it continues if the
// request that started it is cancelled. Everything that the coroutine awaits has a deadline.
Task<Result<void>> ClientSession::reconnect() {
  std::shared_ptr<ReconnectAttempt> attempt = reconnect_attempt_;
  if (!attempt) {
    attempt = std::make_shared<ReconnectAttempt>();
    reconnect_attempt_ = attempt;
    loop_.spawn(run_reconnect(self(), attempt));
  }
  co_await attempt->done.wait(loop_);
  co_return attempt->outcome;
}

Task<void> ClientSession::run_reconnect(std::shared_ptr<ClientSession> self,
                                        std::shared_ptr<ReconnectAttempt> attempt) {
  const Error lost = *self->peer_->end_reason();
  const Log& log = self->options_.connect.log;
  log.warning("connection lost, reconnecting", {{"server", self->uri_}, {"reason", lost.to_string()}});
  co_await self->close_connection();
  const Result<void> connected = co_await self->connect_to(self->uri_);
  if (connected) {
    self->cache_.clear();
    co_await self->restore_subscriptions();
    log.info("reconnected", {{"server", self->uri_}, {"revision", std::string(to_string(self->revision_))}});
    if (self->options_.handlers.on_reconnected) self->options_.handlers.on_reconnected(lost);
  }
  attempt->outcome = connected;
  self->reconnect_attempt_ = nullptr;
  attempt->done.set();
}

}  // namespace fairlead::mcp
