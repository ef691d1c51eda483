// How a client comes by its server and finds its era, and how it comes back to a server it has lost.
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "http/url.hpp"
#include "mcp/client_session.hpp"
#include "protocol/envelope.hpp"

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

std::string http_origin(const std::string& uri) {
  const Result<http::Url> url = http::Url::parse(uri);
  return url && url->scheme.starts_with("http") ? url->origin() : std::string();
}

bool is_modern_refusal(const Error& error) {
  const std::int64_t code = error.detail().rpc_code.value_or(0);
  return error.kind() == ErrorKind::remote && (code == rpc::kMethodNotFound || code == kUnsupportedVersion);
}

// What a handshake that failed is called. One that ended otherwise than by the protocol has its name already.
std::string_view handshake_code(const Error& error) {
  if (error.detail().code == failure::exited) return failure::exited_in_handshake;
  if (!error.detail().code.empty()) return error.detail().code;
  if (error.kind() == ErrorKind::timeout) return failure::handshake_timeout;
  return error.kind() == ErrorKind::parse ? failure::noise_on_stdout : failure::handshake_failed;
}

Error closed_meanwhile() {
  return Error(ErrorKind::closed, "the client was closed while it connected");
}

}  // namespace

// ---- eras of servers -------------------------------------------------------------------------------------

bool EraCache::is_legacy(const std::string& origin) const {
  const std::lock_guard lock(mutex_);
  return legacy_.contains(origin);
}

void EraCache::remember(const std::string& origin, bool legacy) {
  const std::lock_guard lock(mutex_);
  if (!legacy) {
    legacy_.erase(origin);
  } else if (legacy_.size() < kMostOrigins) {
    legacy_.insert(origin);
  }
}

// ---- coming by a server ---------------------------------------------------------------------------------

Task<Result<void>> ClientSession::settle_era() {
  died_of_probe_ = false;
  has_no_discover_ = false;
  const bool pinned_to_legacy = options_.pinned && !is_modern(*options_.pinned);
  const bool known_legacy = !origin_.empty() && options_.eras && options_.eras->is_legacy(origin_);
  if (speaks_legacy_ || pinned_to_legacy || (!options_.pinned && (known_legacy || !options_.probe))) {
    Task<Result<void>> settling = settle_legacy();
    Result<void> settled = co_await settling;
    if (settled || !known_legacy || pinned_to_legacy) co_return settled;
  } else if (!options_.probe) {
    revision_ = kNewest;
    co_return Result<void>();
  }
  Task<Result<Probe>> probing = probe();
  const Result<Probe> probed = co_await probing;
  if (!probed) co_return probed.error();
  if (*probed == Probe::modern) co_return Result<void>();
  if (*probed == Probe::gone && options_.pinned && end_reason()) co_return *end_reason();
  died_of_probe_ = *probed == Probe::gone && !options_.pinned;
  if (*probed != Probe::legacy || options_.pinned)
    co_return Error(ErrorKind::connection_failed,
                    "the server does not speak revision " + std::string(to_string(kNewest)));
  Task<Result<void>> settling = settle_legacy();
  Result<void> settled = co_await settling;
  // A modern server need not know our question; the handshake no modern server knows.
  if (!settled && has_no_discover_ && is_modern_refusal(settled.error())) {
    revision_ = kNewest;
    co_return Result<void>();
  }
  if (!settled && is_modern_refusal(settled.error())) {
    // It was slow to start, and silent when we asked first.
    Task<Result<Probe>> asking = probe();
    const Result<Probe> again = co_await asking;
    if (again && *again == Probe::modern) co_return Result<void>();
  }
  co_return settled;
}

// The outcome is remembered for the next time, unless it has just proved wrong.
Task<Result<void>> ClientSession::settle_legacy() {
  Task<Result<void>> initializing = initialize(options_.pinned.value_or(kNewestLegacy));
  Result<void> initialized = co_await initializing;
  speaks_legacy_ = static_cast<bool>(initialized);
  if (!origin_.empty() && options_.eras) options_.eras->remember(origin_, speaks_legacy_);
  co_return initialized;
}

Task<Result<void>> ClientSession::settle_on(std::shared_ptr<Connection> connection) {
  attach(std::move(connection));
  settled_by_ = Clock::now() + options_.handshake_timeout;
  Task<Result<void>> settling = settle_era();
  const Result<void> settled = co_await settling;
  if (settled) co_return settled;
  Task<void> dropping = drop_connection();
  co_await dropping;
  co_return connection_->explained(settled.error(), handshake_code(settled.error()));
}

Task<Result<void>> ClientSession::dial() {
  if (closing_) co_return closed_meanwhile();
  Task<ConnectResult> connecting =
      connector_ ? connector_(loop_, options_.connect) : http::connect(loop_, uri_, options_.connect);
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
  origin_ = http_origin(uri_);
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

// A server that dies of the modern question is started once more and spoken to in the legacy way.
Task<Result<void>> ClientSession::connect_now() {
  Task<Result<void>> dialing = dial();
  Result<void> dialed = co_await dialing;
  if (!dialed && died_of_probe_) {
    speaks_legacy_ = true;
    Task<Result<void>> again = dial();
    dialed = co_await again;
  }
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
