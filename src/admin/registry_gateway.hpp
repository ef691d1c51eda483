// RegistryGateway: a gateway whose servers, endpoints, users and configuration are in a database. Opens the
// registry, starts the gateway with its HTTP listener or its one connection, adds the admin API, and keeps
// both in step. Private to the library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/auth_mode.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

class Admin;
class RegistrySync;

// Where the key that encrypts secrets is from: the first of these that is set. With an SQLite database and
// none of them, it is in the file DATABASE.key, which is created if it does not exist.
struct SecretKeySource {
  SecretKeySource() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::shared_ptr<const registry::SecretText> text;  // the value of FAIRLEAD_SECRET_KEY
  std::string command;                               // its stdout; run by /bin/sh
  std::string file;
  // If false, the gateway starts although it does not have the key of the database.
  bool required = true;
};

struct RegistryGatewayOptions {
  RegistryGatewayOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string version = "0";           // of the program
  std::string database;                // "sqlite:PATH" or "postgresql://…"
  std::vector<registry::Server> seed;  // see registry::RegistryOptions
  // Overrides the value of `auth.mode` in the database.
  std::optional<AuthSetting> auth_setting;
  // The administrator's token; `auth.mode` is `token` then, unless it is set explicitly. If empty, the token
  // is that in the file `admin_token_file`, which is created if it does not exist.
  std::string admin_token;
  std::string admin_token_file;
  // The gateway starts no server and offers none: for a command that uses the admin API on a database that no
  // gateway serves.
  bool offline = false;
  SecretKeySource secret_key;
  // `authenticator`, `add_routes` and `readiness_problem` are set by RegistryGateway.
  gateway::GatewayServerOptions server;
};

class RegistryGateway : public std::enable_shared_from_this<RegistryGateway> {
 public:
  // Opens the database, listens at `config.listen`, and serves the servers of the database. `config.servers`
  // must be empty; the values of the configuration in the database replace those of `config`. Fails with
  // `validation` for an address that other machines can reach if clients are not authenticated, and as
  // registry::Registry::open() and gateway::GatewayServer::listen() do.
  static Task<Result<std::shared_ptr<RegistryGateway>>> listen(Loop& loop, gateway::Config config,
                                                               RegistryGatewayOptions options);
  // Serves the connection `client`; see gateway::GatewayServer::serve(). With an SQLite database it also
  // listens at PATH.sock, for other processes of this user.
  static Task<Result<std::shared_ptr<RegistryGateway>>> serve(Loop& loop, gateway::Config config,
                                                              std::shared_ptr<Connection> client,
                                                              PrincipalPtr principal,
                                                              RegistryGatewayOptions options);
  ~RegistryGateway();
  RegistryGateway(const RegistryGateway&) = delete;
  RegistryGateway& operator=(const RegistryGateway&) = delete;

  const std::shared_ptr<gateway::GatewayServer>& server() const noexcept { return server_; }
  registry::Registry& registry() const noexcept { return *registry_; }
  // Does what gateway::GatewayServer::reload() does, for the keys that are not in the database.
  // `next.servers` must be empty.
  Task<Result<std::string>> reload(gateway::Config next);
  // Does what gateway::GatewayServer::stop() does; ends the event streams of the admin API first.
  void stop();
  // Closes the database. Called when server()->stopped() is set.
  Task<void> close();

 private:
  RegistryGateway(Loop& loop, gateway::Config config, RegistryGatewayOptions options);

  static Task<Result<std::shared_ptr<RegistryGateway>>> open(Loop& loop, gateway::Config config,
                                                             RegistryGatewayOptions options);
  // Reads the administrator's token and applies the values of the configuration to config_.
  Result<void> prepare();
  Result<void> load_admin_token();
  Result<void> check_address() const;
  // Sets the options of an HTTP listener: its routes, and who may use them.
  void prepare_listener();
  Result<void> start_listening();
  Result<void> start_serving(std::shared_ptr<Connection> client, PrincipalPtr principal);
  void add_admin_routes(http::Server& http, gateway::Gateway& gateway);
  void log_registry();
  void start_sync();
  // Names this gateway in the file that other programs find it by, see gateway_file.hpp.
  void publish_address();

  static Task<void> lists_stored(std::weak_ptr<RegistryGateway> weak, std::string server_id);

  AuthMode configured_auth_mode() const;
  AuthMode auth_mode() const;
  // Called when auth_mode() may have changed.
  void apply_auth_mode();
  void log_auth_mode() const;
  void set_failure_details();
  void apply_settings(const registry::Configuration& values);

  Loop& loop_;
  gateway::Config config_;  // with the values of the database
  RegistryGatewayOptions options_;
  bool admin_token_is_configured_ = false;
  bool reachable_from_other_machines_ = false;
  gateway::FailureDetails configured_failure_details_ = gateway::FailureDetails::automatic;
  // Shared with the authenticator, which reads it for each request.
  std::shared_ptr<AuthMode> applied_auth_mode_ = std::make_shared<AuthMode>(AuthMode::token);
  std::shared_ptr<registry::Registry> registry_;
  std::shared_ptr<gateway::GatewayServer> server_;
  std::shared_ptr<Admin> admin_;  // null if this does not listen
  std::string database_file_;     // canonical path of an SQLite database; empty for others
  std::shared_ptr<RegistrySync> sync_;
  std::vector<std::shared_ptr<void>> subscriptions_;
};

}  // namespace fairlead::admin
