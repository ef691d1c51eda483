#include "admin/registry_gateway.hpp"

#include <utility>

#include "admin/admin.hpp"
#include "admin/admin_token.hpp"
#include "admin/authenticator.hpp"
#include "admin/gateway_file.hpp"
#include "admin/gateway_settings.hpp"
#include "admin/published_routes.hpp"
#include "admin/registry_sync.hpp"
#include "admin/secret_key_source.hpp"
#include "admin/secret_store.hpp"
#include "fairlead/http/server.hpp"
#include "registry/access.hpp"
#include "registry/configuration.hpp"

namespace fairlead::admin {

RegistryGateway::RegistryGateway(Loop& loop, gateway::Config config, RegistryGatewayOptions options)
    : loop_(loop), config_(std::move(config)), options_(std::move(options)) {}

RegistryGateway::~RegistryGateway() {
  if (admin_) admin_->close();
  if (sync_) sync_->stop();
}

// ---- starting --------------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<RegistryGateway>>> RegistryGateway::open(Loop& loop, gateway::Config config,
                                                                     RegistryGatewayOptions options) {
  std::shared_ptr<RegistryGateway> self(new RegistryGateway(loop, std::move(config), std::move(options)));
  self->options_.server.servers_from_registry = true;
  registry::RegistryOptions registry_options;
  registry_options.log = self->options_.server.log;
  registry_options.seed = self->options_.seed;
  Result<registry::SecretKeyOptions> key =
      co_await secret_key_options(loop, self->options_.secret_key, self->options_.database);
  if (!key) co_return key.error();
  registry_options.secret_key = std::move(*key);
  if (self->options_.offline) registry_options.secret_key.required = false;
  Result<std::shared_ptr<registry::Registry>> registry =
      co_await registry::Registry::open(loop, self->options_.database, std::move(registry_options));
  if (!registry) co_return registry.error();
  self->registry_ = std::move(*registry);
  if (!self->options_.offline) self->database_file_ = sqlite_file_of(self->options_.database);
  // The file of a gateway that has crashed names an address at which nobody listens now.
  if (!self->database_file_.empty()) remove_gateway_file(self->database_file_);
  const Result<void> prepared = self->prepare();
  if (!prepared) {
    co_await self->registry_->close();
    co_return prepared.error();
  }
  co_return self;
}

Result<void> RegistryGateway::prepare() {
  const Result<void> loaded = load_admin_token();
  if (!loaded) return loaded;
  apply_to(*registry_->state().configuration, config_);
  configured_failure_details_ = config_.failure_details;
  config_.authenticated = true;
  config_.secret_store = registry_secret_store(registry_);
  return {};
}

Result<void> RegistryGateway::load_admin_token() {
  admin_token_is_configured_ = !options_.admin_token.empty();
  if (admin_token_is_configured_) return {};
  Result<std::string> token = read_or_create_admin_token(options_.admin_token_file);
  if (!token) return token.error();
  options_.admin_token = std::move(*token);
  options_.server.log.info("administrator's token", {{"file", options_.admin_token_file}});
  return {};
}

Task<Result<std::shared_ptr<RegistryGateway>>> RegistryGateway::listen(Loop& loop, gateway::Config config,
                                                                       RegistryGatewayOptions options) {
  const Result<bool> local = http::is_local_address(config.listen);
  if (!local) co_return local.error();
  Result<std::shared_ptr<RegistryGateway>> opened =
      co_await open(loop, std::move(config), std::move(options));
  if (!opened) co_return opened;
  const std::shared_ptr<RegistryGateway> self = *opened;
  self->reachable_from_other_machines_ = !*local;
  const Result<void> started = self->start_listening();
  if (started) co_return self;
  co_await self->registry_->close();
  co_return started.error();
}

Task<Result<std::shared_ptr<RegistryGateway>>> RegistryGateway::serve(Loop& loop, gateway::Config config,
                                                                      std::shared_ptr<Connection> client,
                                                                      PrincipalPtr principal,
                                                                      RegistryGatewayOptions options) {
  Result<std::shared_ptr<RegistryGateway>> opened =
      co_await open(loop, std::move(config), std::move(options));
  if (!opened) co_return opened;
  const std::shared_ptr<RegistryGateway> self = *opened;
  const Result<void> started = self->start_serving(std::move(client), std::move(principal));
  if (started) co_return self;
  co_await self->registry_->close();
  co_return started.error();
}

Result<void> RegistryGateway::start_listening() {
  const Result<void> allowed = check_address();
  if (!allowed) return allowed;
  *applied_auth_mode_ = auth_mode();
  prepare_listener();
  set_failure_details();
  log_registry();
  Result<std::shared_ptr<gateway::GatewayServer>> server =
      gateway::GatewayServer::listen(loop_, config_, options_.server);
  if (!server) return server.error();
  server_ = std::move(*server);
  start_sync();
  publish_address();
  return {};
}

void RegistryGateway::prepare_listener() {
  AuthOptions auth;
  auth.admin_token = options_.admin_token;
  auth.mode = [mode = applied_auth_mode_] { return *mode; };
  options_.server.authenticator = registry_authenticator(registry_, std::move(auth));
  options_.server.add_routes = [this](http::Server& http, gateway::Gateway& gateway) {
    add_admin_routes(http, gateway);
  };
  options_.server.rejection_response = Admin::rejection_response;
  options_.server.public_paths = {std::string(kPublishedPrefix)};
  options_.server.readiness_problem = [registry = registry_]() -> std::optional<std::string> {
    // The text of the error contains the address of the database, and /readyz needs no token.
    if (!registry->database_problem()) return std::nullopt;
    return "changes of the registry fail (the database cannot be used), calls are served";
  };
}

// Only processes of this user can connect to the private socket, and they may do what the client on stdin and
// stdout may: no token is needed for MCP.
Result<void> RegistryGateway::start_serving(std::shared_ptr<Connection> client, PrincipalPtr principal) {
  log_registry();
  if (!database_file_.empty()) {
    options_.server.private_socket = database_file_ + ".sock";
    *applied_auth_mode_ = AuthMode::none;
    prepare_listener();
  }
  Result<std::shared_ptr<gateway::GatewayServer>> server =
      gateway::GatewayServer::serve(loop_, config_, std::move(client), std::move(principal), options_.server);
  if (!server) return server.error();
  server_ = std::move(*server);
  start_sync();
  publish_address();
  return {};
}

void RegistryGateway::publish_address() {
  const std::string url = server_->url();
  if (database_file_.empty() || url.empty()) return;
  const Result<void> written = write_gateway_file(database_file_, url);
  if (!written)
    options_.server.log.warning("other programs cannot find this gateway by its database",
                                {{"reason", written.error().message()}});
}

void RegistryGateway::add_admin_routes(http::Server& http, gateway::Gateway& gateway) {
  AdminOptions options;
  options.log = options_.server.log;
  options.version = options_.version;
  options.test_pool.client.connect.log = options_.server.log;
  options.test_pool.client.connect.limits = gateway::connection_limits(config_);
  options.test_pool.manifest.path = config_.terminator_manifest;
  options.test_pool.secret_store = config_.secret_store;
  options.spec_of = [registry = registry_](const registry::Server& server) {
    return gateway_spec(server, registry->state());
  };
  const std::weak_ptr<RegistryGateway> weak = weak_from_this();
  options.lists_stored = [weak](std::string server_id) { return lists_stored(weak, std::move(server_id)); };
  options.end_sessions = [weak](const std::function<bool(const Principal&)>& selected) {
    if (const auto self = weak.lock(); self && self->server_) self->server_->end_sessions(selected);
  };
  options.sessions = [weak] {
    const auto self = weak.lock();
    return self && self->server_ ? self->server_->sessions() : std::vector<gateway::SessionInfo>();
  };
  options.end_session = [weak](const std::string& id) {
    const auto self = weak.lock();
    return self && self->server_ && self->server_->end_session(id);
  };
  admin_ = Admin::create(loop_, registry_, gateway, std::move(options));
  admin_->add_routes(http);
}

Task<void> RegistryGateway::lists_stored(std::weak_ptr<RegistryGateway> weak, std::string server_id) {
  const auto self = weak.lock();
  if (self && self->sync_) co_await RegistrySync::lists_stored(self->sync_, std::move(server_id));
}

void RegistryGateway::log_registry() {
  if (options_.offline) return;
  const registry::State& state = registry_->state();
  options_.server.servers_added_later = state.servers.size();
  options_.server.log.info("registry", {{"database", sql::redacted_address(options_.database)},
                                        {"servers", state.servers.size()},
                                        {"endpoints", state.endpoints.size()},
                                        {"users", state.users.size()}});
}

void RegistryGateway::start_sync() {
  if (options_.offline) return;
  sync_ = RegistrySync::start(
      loop_, registry_, server_->gateway(),
      [this](const registry::Configuration& values) { apply_settings(values); }, options_.server.log);
  subscriptions_.push_back(registry_->on_change([this](const registry::Change& change) {
    if (std::holds_alternative<registry::RowChange<registry::User>>(change)) apply_auth_mode();
  }));
  if (admin_) log_auth_mode();
}

Task<Result<std::string>> RegistryGateway::reload(gateway::Config next) {
  apply_to(*registry_->state().configuration, next);
  next.failure_details = config_.failure_details;
  return server_->reload(std::move(next));
}

void RegistryGateway::stop() {
  if (admin_) admin_->close();
  server_->stop();
}

Task<void> RegistryGateway::close() {
  const auto self = shared_from_this();
  subscriptions_.clear();
  if (sync_) sync_->stop();
  if (!database_file_.empty()) remove_gateway_file(database_file_);
  co_await registry_->close();
}

// ---- authentication --------------------------------------------------------------------------------------

// The mode of the settings. check_address() accepts it, or the gateway does not start.
AuthMode RegistryGateway::configured_auth_mode() const {
  const AuthSetting stored =
      parse_auth_setting(registry_->state().configuration->string("auth.mode")).value_or(AuthSetting::token);
  AuthCircumstances circumstances;
  circumstances.admin_token_is_configured = admin_token_is_configured_;
  circumstances.any_user_exists = registry_->state().users.size() > 0;
  circumstances.reachable_from_other_machines = reachable_from_other_machines_;
  return effective_auth_mode(options_.auth_setting.value_or(stored), circumstances);
}

// While other machines can reach the gateway, a change of the settings does not open it to all of them. At a
// private socket, the permissions of its file take the place of tokens.
AuthMode RegistryGateway::auth_mode() const {
  if (!options_.server.private_socket.empty()) return AuthMode::none;
  if (reachable_from_other_machines_ && !options_.server.insecure_no_auth) return AuthMode::token;
  return configured_auth_mode();
}

Result<void> RegistryGateway::check_address() const {
  if (!reachable_from_other_machines_ || configured_auth_mode() == AuthMode::token ||
      options_.server.insecure_no_auth)
    return {};
  return Error(ErrorKind::validation,
               "refusing to listen on " + config_.listen +
                   ": other machines can reach this address, and auth.mode is \"none\". Set it to \"token\", "
                   "listen on 127.0.0.1, localhost, [::1] or a Unix socket, or pass --insecure-no-auth if a "
                   "firewall or a proxy restricts access");
}

// If tokens are required from now on, clients that have connected without one are disconnected.
void RegistryGateway::apply_auth_mode() {
  const AuthMode mode = auth_mode();
  if (std::exchange(*applied_auth_mode_, mode) == mode) return;
  log_auth_mode();
  set_failure_details();
  server_->apply(config_);
  if (mode == AuthMode::token)
    server_->end_sessions(
        [](const Principal& principal) { return principal.issuer != registry::kRegistryIssuer; });
}

void RegistryGateway::log_auth_mode() const {
  const AuthMode mode = *applied_auth_mode_;
  options_.server.log.info("authentication", {{"mode", to_string(mode)}});
  if (mode == AuthMode::none && reachable_from_other_machines_)
    options_.server.log.warning(
        "listening beyond this machine without authentication: every client that reaches it can use every "
        "server",
        {{"address", config_.listen}, {"flag", "--insecure-no-auth"}});
}

// Without tokens, and if only this machine can reach the gateway, every client may see why a server fails.
void RegistryGateway::set_failure_details() {
  config_.failure_details = configured_failure_details_;
  if (configured_failure_details_ != gateway::FailureDetails::automatic) return;
  const bool everyone = auth_mode() == AuthMode::none && !reachable_from_other_machines_;
  config_.failure_details =
      everyone ? gateway::FailureDetails::everyone : gateway::FailureDetails::administrators;
}

void RegistryGateway::apply_settings(const registry::Configuration& values) {
  apply_to(values, config_);
  configured_failure_details_ = config_.failure_details;
  set_failure_details();
  server_->apply(config_);
  apply_auth_mode();
}

}  // namespace fairlead::admin
