// ServeCommand: the options of `fairlead serve`, and the configuration that they select.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "admin/registry_gateway.hpp"
#include "cli/common.hpp"
#include "fairlead/gateway/config.hpp"
#include "fairlead/http/authenticator.hpp"

namespace fairlead::cli {

// The database of a gateway. `options.database` and `options.server` are not set.
struct DatabaseConfig {
  std::string address;  // empty: no database
  admin::RegistryGatewayOptions options;
};

struct ServeConfig {
  gateway::Config gateway;
  DatabaseConfig database;
};

struct ServeCommand {
  CommonOptions common;
  std::string config;
  std::string database;
  std::string auth_mode;
  std::string listen;
  std::string terminator_manifest;
  std::string attach;      // the address of a gateway; empty: this process is the gateway
  std::string token_file;  // for that gateway
  std::string secret_key_file;
  std::string secret_key_command;
  bool core_dumps = false;
  std::optional<unsigned> socket_mode;
  bool stdio = false;
  bool insecure_no_auth = false;

  // Reads the file and the environment. Fails with `validation`, also if the file has servers although there
  // is a database.
  Result<ServeConfig> load() const;
  // Reads the file only, for a reload.
  Result<gateway::Config> load_gateway_config() const;
  // Returns the authenticator of a gateway without a database that listens on `address`; null if clients are
  // not authenticated.
  Result<std::shared_ptr<http::Authenticator>> authenticator(const std::string& address) const;

 private:
  bool has_database() const { return !database.empty() || config.empty(); }
  Result<DatabaseConfig> load_database_config(const std::string& address) const;
  Result<admin::AuthSetting> auth_setting() const;
};

}  // namespace fairlead::cli
