#include "fairlead/gateway/gateway_server.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fairlead/mcp/serve.hpp"
#include "gateway/slow_turn_log.hpp"
#include "http/response_head.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::chrono::milliseconds kLastAnswers(1000);  // for the last answers to leave

// Without authentication, every client that reaches the listener may use every server behind it.
Result<void> check_address(const std::string& address, const GatewayServerOptions& options) {
  const Result<bool> local = http::is_local_address(address);
  if (!local) return local.error();
  if (*local || options.authenticator) return {};
  if (!options.insecure_no_auth)
    return Error(ErrorKind::validation,
                 "refusing to listen on " + address +
                     ": other machines can reach this address, and the gateway does not authenticate its "
                     "clients. Listen on 127.0.0.1, localhost, [::1] or a Unix socket, or pass "
                     "--insecure-no-auth if a firewall or a proxy restricts access");
  options.log.warning(
      "listening beyond this machine without authentication: every client that reaches it can use every "
      "server",
      {{"address", address}, {"flag", "--insecure-no-auth"}});
  return {};
}

http::ServerOptions http_options(const Config& config, const GatewayServerOptions& given) {
  http::ServerOptions options;
  options.log = given.log;
  options.authenticator = given.authenticator;
  options.drain_grace = config.drain_grace + kLastAnswers;
  options.max_body_bytes = config.max_body_bytes;
  options.budget = ByteBudget::create(config.buffers);
  options.max_connections = given.max_connections;
  options.socket_mode = config.socket_mode;
  options.max_stream_backlog_bytes =
      std::max<std::size_t>(options.max_stream_backlog_bytes, 2 * config.max_frame_bytes);
  options.allowed_origins = config.allowed_origins;
  if (!config.allowed_hosts.empty()) {
    options.allowed_hosts = {"localhost", "127.0.0.1", "[::1]"};  // DNS rebinding cannot use these names
    std::ranges::copy(config.allowed_hosts, std::back_inserter(*options.allowed_hosts));
  }
  if (!config.tls_certificate.empty()) options.tls = http::TlsFiles{config.tls_certificate, config.tls_key};
  return options;
}

// The keys that differ and are read at the start only.
std::string keys_for_restart(const Config& now, const Config& next) {
  std::string keys;
  const auto compare = [&](std::string_view key, bool same) {
    if (!same) keys += (keys.empty() ? "" : ", ") + std::string(key);
  };
  compare("listen", now.listen == next.listen);
  compare("socket_mode", now.socket_mode == next.socket_mode);
  compare("allowed_hosts", now.allowed_hosts == next.allowed_hosts);
  compare("allowed_origins", now.allowed_origins == next.allowed_origins);
  compare("tls_certificate", now.tls_certificate == next.tls_certificate);
  compare("tls_key", now.tls_key == next.tls_key);
  compare("terminator_manifest", now.terminator_manifest == next.terminator_manifest);
  compare("drain_grace", now.drain_grace == next.drain_grace);
  compare("failure_details", now.failure_details == next.failure_details);
  compare("limits", now.limits == next.limits && now.max_frame_bytes == next.max_frame_bytes &&
                        now.max_body_bytes == next.max_body_bytes && now.buffers == next.buffers &&
                        now.max_noise_frames == next.max_noise_frames);
  return keys;
}

}  // namespace

GatewayServer::GatewayServer(Loop& loop, Config config, GatewayServerOptions options)
    : loop_(loop), config_(std::move(config)), options_(std::move(options)) {
  slow_turns_ = std::make_unique<SlowTurnLog>(loop, options_.log);
}

GatewayServer::~GatewayServer() {
  if (http_) http_->close();
}

Result<std::shared_ptr<GatewayServer>> GatewayServer::listen(Loop& loop, Config config,
                                                             GatewayServerOptions options) {
  std::shared_ptr<GatewayServer> made(new GatewayServer(loop, std::move(config), std::move(options)));
  const Result<void> opened = made->open_listener();
  if (!opened) return opened.error();
  const Result<void> started = made->start_gateway();
  if (!started) return started.error();
  made->add_routes();
  return made;
}

Result<std::shared_ptr<GatewayServer>> GatewayServer::serve(Loop& loop, Config config,
                                                            std::shared_ptr<Connection> client,
                                                            PrincipalPtr principal,
                                                            GatewayServerOptions options) {
  // The client started this process: it may know what the process knows.
  if (config.failure_details == FailureDetails::automatic) config.failure_details = FailureDetails::everyone;
  std::shared_ptr<GatewayServer> made(new GatewayServer(loop, std::move(config), std::move(options)));
  const Result<void> started = made->start_gateway();
  if (!started) return started.error();
  client->set_account(ByteBudget::create(made->config_.buffers)->account("stdio"));
  Limits limits = frame_limits(made->config_);
  limits.drain_grace = made->config_.drain_grace;
  made->peer_ = mcp::serve(made->gateway_->front(), std::move(client), limits, made->options_.log,
                           std::move(principal));
  loop.spawn(wait_for_client(made));
  return made;
}

// ---- starting --------------------------------------------------------------------------------------------

Result<void> GatewayServer::open_listener() {
  const Result<void> allowed = check_address(config_.listen, options_);
  if (!allowed) return allowed.error();
  Result<std::shared_ptr<http::Server>> server =
      http::Server::listen(loop_, config_.listen, http_options(config_, options_));
  if (!server) return server.error();
  http_ = std::move(*server);
  return {};
}

Result<void> GatewayServer::start_gateway() {
  Config config = config_;
  config.authenticated = config.authenticated || options_.authenticator != nullptr;
  if (options_.authenticator && config.failure_details == FailureDetails::automatic)
    config.failure_details = FailureDetails::administrators;
  Result<std::shared_ptr<Gateway>> made = Gateway::create(loop_, std::move(config), options_.log);
  if (!made) return made.error();
  gateway_ = std::move(*made);
  return {};
}

void GatewayServer::add_routes() {
  transport::EndpointOptions endpoint;
  endpoint.log = options_.log;
  endpoint.limits = frame_limits(config_);
  mcp::HttpApplicationOptions application;
  application.log = options_.log;
  application.limits = frame_limits(config_);
  endpoint_ = transport::Endpoint::create(
      loop_, mcp::http_application(gateway_->front(), std::move(application)), std::move(endpoint));
  http_->route("/mcp", endpoint_->handler());
  http_->route("/sse", endpoint_->sse_handler("/messages"));
  http_->route("/messages", endpoint_->messages_handler());
  http_->route("/health", [weak = weak_from_this()](const std::shared_ptr<http::Exchange>& exchange) {
    if (const auto self = weak.lock()) self->loop_.spawn(answer_health(self->gateway_, exchange));
  });
  http_->route("/*", [](const std::shared_ptr<http::Exchange>& exchange) {
    exchange->respond(http::refusal_response(404, "Not Found: MCP is at /mcp, the status at /health"));
  });
  options_.log.info("serving", {{"endpoint", url()}, {"servers", config_.servers.size()}});
}

// docs/gateway.md, "Health".
Task<void> GatewayServer::answer_health(std::shared_ptr<Gateway> gateway,
                                        std::shared_ptr<http::Exchange> exchange) {
  std::stop_source gone;
  exchange->when_gone([gone]() mutable { gone.request_stop(); });
  Task<Result<HealthPtr>> making = gateway->health_for(*exchange->request().principal, gone.get_token());
  const Result<HealthPtr> made = co_await making;
  if (!made) {
    exchange->respond(http::refusal_response(503, made.error().to_string()));
    co_return;
  }
  const Health& health = **made;
  const bool serves = health.status == HealthStatus::ok || health.status == HealthStatus::degraded;
  http::Response response = http::Response::json(serves ? 200 : 503, Bytes());
  response.body = health.report;
  exchange->respond(std::move(response));
}

std::string GatewayServer::url() const {
  if (!http_) return {};
  const std::string address = http_->address();
  if (address.starts_with("unix:")) return address + " /mcp";
  return (config_.tls_certificate.empty() ? "http://" : "https://") + address + "/mcp";
}

// ---- reloading -------------------------------------------------------------------------------------------

Task<Result<std::string>> GatewayServer::reload(Config next) {
  return apply(shared_from_this(), std::move(next));
}

// Whatever can fail comes before the first change.
Task<Result<std::string>> GatewayServer::apply(std::shared_ptr<GatewayServer> self, Config next) {
  const Result<void> usable = self->gateway_->check_reload(next);
  if (!usable) co_return usable.error();
  if (self->http_ && !self->config_.tls_certificate.empty()) {
    Task<Result<void>> reading = self->http_->reload_tls();
    const Result<void> read = co_await reading;
    if (!read) co_return read.error();
  }
  std::string restart = keys_for_restart(self->config_, next);
  Task<Result<void>> applying = self->gateway_->reload(std::move(next));
  const Result<void> applied = co_await applying;
  if (!applied) co_return applied.error();
  co_return restart;
}

// ---- stopping --------------------------------------------------------------------------------------------

Task<void> GatewayServer::wait_for_client(std::shared_ptr<GatewayServer> self) {
  const bool closed = co_await self->peer_->finished().wait(self->loop_, Clock::duration::max());
  static_cast<void>(closed);
  if (!self->stopping_) self->stop();
}

void GatewayServer::stop() {
  if (std::exchange(stopping_, true)) return loop_.spawn(gateway_->shutdown(std::chrono::milliseconds(0)));
  options_.log.info("shutting down", {});
  loop_.spawn(wind_down(shared_from_this()));
}

// The gateway lets the calls under way finish and fails the rest when their time is over. So every client has
// an answer, whatever way it came, before the connections end.
Task<void> GatewayServer::wind_down(std::shared_ptr<GatewayServer> self) {
  const Clock::time_point until = Clock::now() + self->config_.drain_grace + kLastAnswers;
  if (self->http_) {
    self->http_->stop_accepting();
    self->loop_.spawn(drain(self));
  }
  Task<void> stopping = self->gateway_->shutdown(self->config_.drain_grace);
  co_await stopping;
  if (self->http_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    Task<void> finishing = self->endpoint_->finish(std::max(left, kLastAnswers));
    co_await finishing;
    const bool drained = co_await self->drained_.wait(self->loop_, Clock::duration::max());
    static_cast<void>(drained);
  }
  if (self->peer_) {
    Task<void> closing = self->peer_->shutdown(kLastAnswers);
    co_await closing;
  }
  self->stopped_.set();
}

Task<void> GatewayServer::drain(std::shared_ptr<GatewayServer> self) {
  // Ends the streams before the drain, which then finds their connections idle.
  Task<void> winding_down = self->endpoint_->wind_down();
  co_await winding_down;
  Task<void> draining = self->http_->drain();
  co_await draining;
  self->drained_.set();
}

}  // namespace fairlead::gateway
