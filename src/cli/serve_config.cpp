#include "cli/serve_config.hpp"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "admin/admin_token.hpp"
#include "admin/authenticator.hpp"
#include "admin/secret_key_source.hpp"

namespace fairlead::cli {

namespace {

constexpr char kAdminTokenVariable[] = "FAIRLEAD_ADMIN_TOKEN";

// Returns the server of a new default database, which is `fairlead demo`.
Result<registry::Server> demo_server() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::spawn, "cannot read /proc/self/exe, the path of this program");
  pool::Program program;
  program.command = std::string(self, static_cast<std::size_t>(length));
  program.args = {"demo"};
  registry::Server server;
  server.name = "demo";
  server.title = "Demo";
  server.description = "A small server to try the gateway with. Remove it when you have added your own.";
  server.spec.name = server.name;
  server.spec.transport = std::move(program);
  return server;
}

// Returns the administrator's token of the environment; empty if it is not set. Overwrites it in the
// environment, because servers of the same user could read it in /proc. A short token is accepted if only
// processes of this machine can connect to `address`.
Result<std::string> take_admin_token(const std::string& address) {
  char* const variable = std::getenv(kAdminTokenVariable);
  if (!variable || *variable == '\0') return std::string();
  std::string token = variable;
  ::explicit_bzero(variable, token.size());
  std::string checked = token;
  const Result<bool> local = http::is_local_address(address);
  if (local && *local) checked.append(http::StaticTokenAuthenticator::kMinTokenBytes, '0');
  const Result<void> usable = http::StaticTokenAuthenticator().add(checked, Principal());
  if (usable) return token;
  return Error(ErrorKind::validation, std::string(kAdminTokenVariable) + ": " + usable.error().message());
}

}  // namespace

Result<gateway::Config> ServeCommand::load_gateway_config() const {
  Result<gateway::Config> loaded = config.empty() ? gateway::Config() : gateway::load_config(config);
  if (!loaded) return loaded;
  if (!listen.empty()) loaded->listen = listen;
  if (socket_mode) loaded->socket_mode = *socket_mode;
  if (!terminator_manifest.empty()) loaded->terminator_manifest = terminator_manifest;
  if (has_database() && !loaded->servers.empty())
    return Error(
        ErrorKind::validation,
        config +
            ": [servers] cannot be used together with a database (--db), which has the servers. "
            "Import them with `fairlead servers import " +
            config +
            "`, or add them with the admin API (docs/admin-api.md), and remove them from the file; or "
            "start without --db");
  return loaded;
}

Result<ServeConfig> ServeCommand::load() const {
  Result<gateway::Config> loaded = load_gateway_config();
  if (!loaded) return loaded.error();
  ServeConfig result;
  result.gateway = std::move(*loaded);
  if (!has_database()) return result;
  Result<DatabaseConfig> database_config = load_database_config(result.gateway.listen);
  if (!database_config) return database_config.error();
  result.database = std::move(*database_config);
  return result;
}

Result<DatabaseConfig> ServeCommand::load_database_config(const std::string& address) const {
  DatabaseConfig result;
  const Result<std::string> state = admin::state_directory();
  if (!state) return state.error();
  result.address = database;
  result.options.admin_token_file = *state + "/admin.token";
  if (database.empty()) {
    result.address = "sqlite:" + *state + "/fairlead.db";
    Result<registry::Server> demo = demo_server();
    if (!demo) return demo.error();
    result.options.seed.push_back(std::move(*demo));
  }
  Result<std::string> token = take_admin_token(address);
  if (!token) return token.error();
  result.options.admin_token = std::move(*token);
  result.options.secret_key.text = admin::take_secret_key_variable();
  result.options.secret_key.file = secret_key_file;
  result.options.secret_key.command = secret_key_command;
  if (!auth_mode.empty()) {
    const Result<admin::AuthSetting> setting = auth_setting();
    if (!setting) return setting.error();
    result.options.auth_setting = *setting;
  }
  return result;
}

Result<admin::AuthSetting> ServeCommand::auth_setting() const {
  if (auth_mode.empty()) return admin::AuthSetting::automatic;
  const std::optional<admin::AuthSetting> setting = admin::parse_auth_setting(auth_mode);
  if (setting) return *setting;
  return Error(ErrorKind::validation, "--auth-mode: `" + auth_mode + "` is none of auto, none, token");
}

Result<std::shared_ptr<http::Authenticator>> ServeCommand::authenticator(const std::string& address) const {
  const Result<admin::AuthSetting> setting = auth_setting();
  if (!setting) return setting.error();
  const Result<std::string> token = take_admin_token(address);
  if (!token) return token.error();
  admin::AuthCircumstances circumstances;
  circumstances.admin_token_is_configured = !token->empty();
  if (admin::effective_auth_mode(*setting, circumstances) == admin::AuthMode::none)
    return std::shared_ptr<http::Authenticator>();
  if (token->empty())
    return Error(ErrorKind::validation,
                 "--auth-mode token: without a database the only token is that of the environment variable " +
                     std::string(kAdminTokenVariable) + ", which is not set");
  return admin::admin_token_authenticator(*token);
}

}  // namespace fairlead::cli
