// How a client connects to its server, and how it comes back to a server it has lost.
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "http/url.hpp"
#include "mcp/client_session.hpp"
#include "mcp/dialect.hpp"

namespace fairlead::mcp {

namespace {

// Whether a client whose connection to `uri` is lost may make another one.
bool may_return(const std::string& uri, Reconnect when) {
  const Result<Uri> parsed = Uri::parse(uri);
  if (!parsed || when == Reconnect::never) return false;
  const bool stdio = parsed->scheme == Uri::Scheme::stdio;
  if (stdio && parsed->words.empty()) return false;  // our own streams: there is only one pair
  return stdio || when == Reconnect::always;
}

// The server in an EraCache: all paths of an HTTP origin are one server, every command line is another.
std::string era_key_of(const std::string& uri) {
  const Result<http::Url> url = http::Url::parse(uri);
  return url && url->scheme.starts_with("http") ? url->origin() : uri;
}

// What a handshake that failed is called. One that ended otherwise than by the protocol has its name already.
std::string_view handshake_code(const Error& error) {
  if (error.detail().code == failure::exited) return failure::exited_in_handshake;
  if (!error.detail().code.empty()) return error.detail().code;
  if (error.kind() == ErrorKind::timeout) return failure::handshake_timeout;
  return error.kind() == ErrorKind::parse ? failure::noise_on_stdout : failure::handshake_failed;
}

// What a server hears whose client has been let go of.
Task<Answer> nobody() {
  co_return Error::rpc(rpc::kInternalError, "The client is gone");
}

Error closed_meanwhile() {
  return Error(ErrorKind::closed, "the client was closed while it connected");
}

}  // namespace

// ---- coming by a server ---------------------------------------------------------------------------------

void ClientSession::attach(std::shared_ptr<Connection> connection) {
  auto methods = std::make_shared<Methods>();
  std::weak_ptr<Client> weak = weak_from_this();
  methods->otherwise([weak](Request request) -> Task<Answer> {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client ? client->serve(std::move(request)) : nobody();
  });
  PeerOptions peer_options;
  peer_options.limits = options_.connect.limits;
  peer_options.log = options_.connect.log;
  peer_options.noise = Noise::skip;
  peer_options.dialect = dialect();
  // A modern server sends no requests; one that does gets no answer (a client must not send any).
  peer_options.ignore_request = [weak](const rpc::Message&) {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client && is_modern(client->revision_);
  };
  peer_options.on_ending = [weak] {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    // No peer yet: the connection was closed when it came, and whoever connects is told.
    if (client && client->peer_ && client->options_.handlers.ended && client->end_reason())
      client->options_.handlers.ended(*client->end_reason());
  };
  connection_ = connection;
  peer_ = Peer::start(std::move(connection), std::move(methods), std::move(peer_options));
}

Task<Result<void>> ClientSession::settle_on(std::shared_ptr<Connection> connection) {
  attach(std::move(connection));
  settled_by_ = Clock::now() + options_.handshake_timeout;
  Task<Result<void>> settling = settle_era();
  const Result<void> settled = co_await settling;
  if (settled) co_return settled;
  eras_->forget(era_key_);
  Task<void> dropping = drop_connection();
  co_await dropping;
  co_return connection_->explained(settled.error(), handshake_code(settled.error()));
}

Task<Result<void>> ClientSession::dial() {
  if (closing_) co_return closed_meanwhile();
  Task<ConnectResult> connecting =
      connector_ ? connector_(loop_, options_.connect) : transport::connect(loop_, uri_, options_.connect);
  ConnectResult connection = co_await connecting;
  if (!connection) co_return connection.error();
  if (closing_) {
    (*connection)->close();
    Task<void> settling = (*connection)->settled();
    co_await settling;
    co_return closed_meanwhile();
  }
  Task<Result<void>> settling = settle_on(std::move(*connection));
  Result<void> settled = co_await settling;
  co_return settled;
}

Task<Result<void>> ClientSession::connect_to(std::string uri) {
  const auto keep = self();
  uri_ = std::move(uri);
  if (options_.era_key.empty()) era_key_ = era_key_of(uri_);
  if (options_.eras) eras_ = options_.eras;
  Task<Result<void>> connecting = connect_now();
  Result<void> connected = co_await connecting;
  returns_ = may_return(uri_, options_.reconnect);
  co_return connected;
}

Task<Result<void>> ClientSession::connect_by(Connector connector) {
  const auto keep = self();
  connector_ = std::move(connector);
  Task<Result<void>> connecting = connect_now();
  Result<void> connected = co_await connecting;
  co_return connected;
}

// A server that the probe has harmed is started once more and not probed.
Task<Result<void>> ClientSession::connect_now() {
  Task<Result<void>> dialing = dial();
  Result<void> dialed = co_await dialing;
  if (dialed || !probe_did_harm_) co_return dialed;
  options_.connect.log.info("connecting again without a probe", {{"reason", dialed.error().message()}});
  unprobed_ = true;
  Task<Result<void>> again = dial();
  dialed = co_await again;
  unprobed_ = false;
  co_return dialed;
}

Task<void> ClientSession::drop_connection() {
  const std::shared_ptr<Connection> connection = connection_;
  connection->close();
  Task<void> settling = connection->settled();
  co_await settling;
}

Task<void> ClientSession::close() {
  const auto keep = self();
  closing_ = true;
  if (connection_) {
    Task<void> dropping = drop_connection();
    co_await dropping;
  }
  if (const std::shared_ptr<Return> returning = returning_) {
    const bool over = co_await returning->over.wait(loop_, Clock::duration::max());
    static_cast<void>(over);
  }
}

// ---- coming back ----------------------------------------------------------------------------------------

// What was under way is lost and has failed. The first request after that brings the client back; those that
// come meanwhile wait for it. It runs by itself, so that it does not end with the request that began it, and
// all it waits for has a deadline.
Task<Result<void>> ClientSession::come_back() {
  std::shared_ptr<Return> returning = returning_;
  if (!returning) {
    returning = std::make_shared<Return>();
    returning_ = returning;
    loop_.spawn(return_to_server(self(), returning));
  }
  const bool over = co_await returning->over.wait(loop_, Clock::duration::max());
  static_cast<void>(over);
  co_return returning->outcome;
}

Task<void> ClientSession::return_to_server(std::shared_ptr<ClientSession> self,
                                           std::shared_ptr<Return> returning) {
  const Error lost = *self->peer_->end_reason();
  const Log& log = self->options_.connect.log;
  log.warning("connection lost, connecting again", {{"server", self->uri_}, {"reason", lost.to_string()}});
  Task<void> dropping = self->drop_connection();
  co_await dropping;
  Task<Result<void>> connecting = self->connect_to(self->uri_);
  const Result<void> connected = co_await connecting;
  if (connected) {
    self->cache_.clear();
    Task<void> listening = self->listen_again();
    co_await listening;
    log.info("connected again",
             {{"server", self->uri_}, {"revision", std::string(to_string(self->revision_))}});
    if (self->options_.handlers.reconnected) self->options_.handlers.reconnected(lost);
  }
  returning->outcome = connected;
  self->returning_ = nullptr;
  returning->over.set();
}

}  // namespace fairlead::mcp
