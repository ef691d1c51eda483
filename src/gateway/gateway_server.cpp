#include "fairlead/gateway/gateway_server.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fairlead/mcp/serve.hpp"
#include "gateway/attached_clients.hpp"
#include "gateway/gateway_routes.hpp"
#include "gateway/slow_turn_log.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::chrono::milliseconds kFlushTimeout(1000);  // for sending the last responses

// Rejects an address that other machines can reach if there is no authentication: every client that reaches
// the listener could use every server.
Result<void> check_address(const std::string& address, const GatewayServerOptions& options) {
  const Result<bool> local = http::is_local_address(address);
  if (!local) return local.error();
  if (*local || options.authenticator) return {};
  if (!options.insecure_no_auth)
    return Error(
        ErrorKind::validation,
        "refusing to listen on " + address +
            ": other machines can reach this address, and the gateway does not authenticate its "
            "clients. Set FAIRLEAD_ADMIN_TOKEN to a token that they need, listen on 127.0.0.1, localhost, "
            "[::1] or a Unix socket, or pass --insecure-no-auth if a firewall or a proxy restricts "
            "access");
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
  options.rejection_response = given.rejection_response;
  options.public_paths = given.public_paths;
  options.drain_grace = config.drain_grace + kFlushTimeout;
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

// Returns the configuration of the gateway, which depends on whether clients are authenticated.
Config for_gateway(Config config, const GatewayServerOptions& options) {
  config.authenticated = config.authenticated || options.authenticator != nullptr;
  if (options.authenticator && config.failure_details == FailureDetails::automatic)
    config.failure_details = FailureDetails::administrators;
  return config;
}

// Returns the keys whose values differ and that are read only when the gateway server starts.
std::string changed_restart_keys(const Config& current, const Config& next) {
  std::string keys;
  const auto compare = [&](std::string_view key, bool same) {
    if (!same) keys += (keys.empty() ? "" : ", ") + std::string(key);
  };
  compare("listen", current.listen == next.listen);
  compare("socket_mode", current.socket_mode == next.socket_mode);
  compare("allowed_hosts", current.allowed_hosts == next.allowed_hosts);
  compare("allowed_origins", current.allowed_origins == next.allowed_origins);
  compare("tls_certificate", current.tls_certificate == next.tls_certificate);
  compare("tls_key", current.tls_key == next.tls_key);
  compare("terminator_manifest", current.terminator_manifest == next.terminator_manifest);
  compare("drain_grace", current.drain_grace == next.drain_grace);
  compare("failure_details", current.failure_details == next.failure_details);
  compare("limits", current.limits == next.limits && current.max_frame_bytes == next.max_frame_bytes &&
                        current.max_body_bytes == next.max_body_bytes && current.buffers == next.buffers &&
                        current.max_noise_frames == next.max_noise_frames);
  return keys;
}

}  // namespace

GatewayServer::GatewayServer(Loop& loop, Config config, GatewayServerOptions options)
    : loop_(loop), config_(std::move(config)), options_(std::move(options)) {
  slow_turn_log_ = std::make_unique<SlowTurnLog>(loop, options_.log);
}

GatewayServer::~GatewayServer() {
  if (http_) http_->close();
}

Result<std::shared_ptr<GatewayServer>> GatewayServer::listen(Loop& loop, Config config,
                                                             GatewayServerOptions options) {
  std::shared_ptr<GatewayServer> server(new GatewayServer(loop, std::move(config), std::move(options)));
  const Result<void> opened = server->open_listener();
  if (!opened) return opened.error();
  const Result<void> started = server->start_gateway();
  if (!started) return started.error();
  server->add_routes();
  return server;
}

Result<std::shared_ptr<GatewayServer>> GatewayServer::serve(Loop& loop, Config config,
                                                            std::shared_ptr<Connection> client,
                                                            PrincipalPtr principal,
                                                            GatewayServerOptions options) {
  // The client has started this process, so it may see all details.
  if (config.failure_details == FailureDetails::automatic) config.failure_details = FailureDetails::everyone;
  std::shared_ptr<GatewayServer> server(new GatewayServer(loop, std::move(config), std::move(options)));
  server->open_private_socket();
  const Result<void> started = server->start_gateway();
  if (!started) return started.error();
  if (server->http_) server->add_routes();
  client->set_account(ByteBudget::create(server->config_.buffers)->account("stdio"));
  Limits limits = connection_limits(server->config_);
  limits.drain_grace = server->config_.drain_grace;
  server->peer_ = mcp::serve(server->gateway_->front(), std::move(client), limits, server->options_.log,
                             std::move(principal));
  loop.spawn(stop_when_client_disconnects(server));
  return server;
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

void GatewayServer::open_private_socket() {
  if (options_.private_socket.empty()) return;
  Config config = config_;  // the keys that concern networks do not apply
  config.tls_certificate.clear();
  config.allowed_hosts.clear();
  config.allowed_origins.clear();
  config.socket_mode = 0600;
  Result<std::shared_ptr<http::Server>> server =
      http::Server::listen(loop_, "unix:" + options_.private_socket, http_options(config, options_));
  if (!server)
    return options_.log.warning("other processes cannot attach to this gateway",
                                {{"reason", server.error().message()}});
  http_ = std::move(*server);
  attached_ = std::make_shared<AttachedClients>();
  attached_->add_route(*http_);
}

Result<void> GatewayServer::start_gateway() {
  Result<std::shared_ptr<Gateway>> gateway =
      Gateway::create(loop_, for_gateway(config_, options_), options_.log);
  if (!gateway) return gateway.error();
  gateway_ = std::move(*gateway);
  return {};
}

void GatewayServer::add_routes() {
  transport::EndpointOptions endpoint;
  endpoint.log = options_.log;
  endpoint.limits = connection_limits(config_);
  routes_ = GatewayRoutes::create(loop_, gateway_, std::move(endpoint), options_);
  if (options_.add_routes) options_.add_routes(*http_, *gateway_);
  routes_->add_to(*http_);
  const std::size_t servers = config_.servers.size() + options_.servers_added_later;
  options_.log.info("serving", {{"endpoint", url()}, {"servers", servers}});
}

std::string GatewayServer::url() const {
  if (!http_) return {};
  const std::string address = http_->address();
  if (address.starts_with("unix:")) return address + " /mcp";
  return (config_.tls_certificate.empty() ? "http://" : "https://") + address + "/mcp";
}

// ---- reloading -------------------------------------------------------------------------------------------

Task<Result<std::string>> GatewayServer::reload(Config next) {
  return apply_config(shared_from_this(), std::move(next));
}

// Every step that can fail precedes the first change.
Task<Result<std::string>> GatewayServer::apply_config(std::shared_ptr<GatewayServer> self, Config next) {
  const bool with_servers = !self->options_.servers_from_registry;
  const Result<void> usable = with_servers ? self->gateway_->check_reload(next) : Result<void>();
  if (!usable) co_return usable.error();
  if (self->http_ && !self->config_.tls_certificate.empty()) {
    const Result<void> read = co_await self->http_->reload_tls();
    if (!read) co_return read.error();
  }
  std::string restart_keys = changed_restart_keys(self->config_, next);
  if (!with_servers) co_return restart_keys;
  const Result<void> applied = co_await self->gateway_->reload(std::move(next));
  if (!applied) co_return applied.error();
  co_return restart_keys;
}

void GatewayServer::apply(const Config& config) {
  config_.drain_grace = config.drain_grace;
  if (http_) http_->set_drain_grace(config.drain_grace + kFlushTimeout);
  gateway_->apply(for_gateway(config, options_));
}

// ---- sessions --------------------------------------------------------------------------------------------

void GatewayServer::end_sessions(const std::function<bool(const Principal&)>& selected) {
  if (!routes_) return;
  routes_->endpoint().end_sessions(
      [&](const transport::Application&, const Principal& principal) { return selected(principal); });
}

std::vector<SessionInfo> GatewayServer::sessions() const {
  return routes_ ? routes_->sessions() : std::vector<SessionInfo>();
}

bool GatewayServer::end_session(std::string_view id) {
  return routes_ && routes_->endpoint().end_session(id);
}

// ---- stopping --------------------------------------------------------------------------------------------

Task<void> GatewayServer::stop_when_client_disconnects(std::shared_ptr<GatewayServer> self) {
  co_await self->peer_->finished().wait(self->loop_);
  if (self->attached_ && self->attached_->count() > 0 && !self->stopping_)
    self->options_.log.info("the client has gone; serving the attached processes until the last has gone",
                            {{"attached", self->attached_->count()}});
  if (self->attached_) co_await self->attached_->none().wait(self->loop_);
  if (!self->stopping_) self->stop();
}

void GatewayServer::stop() {
  if (std::exchange(stopping_, true)) return loop_.spawn(gateway_->shutdown(std::chrono::milliseconds(0)));
  if (routes_) routes_->set_stopping();
  if (attached_) attached_->finish();
  options_.log.info("shutting down", {});
  loop_.spawn(shut_down(shared_from_this()));
}

// Gateway::shutdown() waits for the calls in progress and fails those that exceed the grace period. So on
// every transport a client has the responses to its calls before its connection is closed.
Task<void> GatewayServer::shut_down(std::shared_ptr<GatewayServer> self) {
  const Clock::time_point deadline = Clock::now() + self->config_.drain_grace + kFlushTimeout;
  if (self->http_) {
    self->http_->stop_accepting();
    self->loop_.spawn(drain_http(self));
  }
  co_await self->gateway_->shutdown(self->config_.drain_grace);
  if (self->http_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    co_await self->routes_->endpoint().drain(std::max(left, kFlushTimeout));
    co_await self->http_drained_.wait(self->loop_);
  }
  if (self->peer_) {
    co_await self->peer_->shutdown(kFlushTimeout);
  }
  self->stopped_.set();
}

Task<void> GatewayServer::drain_http(std::shared_ptr<GatewayServer> self) {
  // Ends the event streams first: their connections are then idle, and http_->drain() closes idle
  // connections.
  co_await self->routes_->endpoint().begin_drain();
  co_await self->http_->drain();
  self->http_drained_.set();
}

}  // namespace fairlead::gateway
