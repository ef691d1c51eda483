#include "cli/direct_gateway.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "admin/registry_gateway.hpp"
#include "cli/gateway_finder.hpp"
#include "cli/serve_config.hpp"
#include "fairlead/loop/timer.hpp"
#include "process/core_dumps.hpp"
#include "registry/tokens.hpp"

namespace fairlead::cli {

namespace {

constexpr std::chrono::milliseconds kDatabaseRetryInterval{100};
constexpr std::size_t kMaxTemporaryPathBytes = 60;  // the path of a Unix socket has at most 107 bytes

// Creates a directory that only this user can enter.
Result<std::string> create_socket_directory() {
  std::error_code unusable;
  std::string parent = std::filesystem::temp_directory_path(unusable).string();
  if (unusable || parent.size() > kMaxTemporaryPathBytes) parent = P_tmpdir;
  std::string path = parent + "/fairlead-XXXXXX";
  if (::mkdtemp(path.data())) return path;
  return Error::from_errno(ErrorKind::io, "cannot create a directory in " + parent, errno);
}

Result<ServeConfig> direct_config(const std::string& database) {
  ServeCommand command;
  command.common.log_level = "warning";
  command.database = database;
  command.secret_key_file = environment_value("FAIRLEAD_SECRET_KEY_FILE");
  command.secret_key_command = environment_value("FAIRLEAD_SECRET_KEY_COMMAND");
  return command.load();
}

// A misspelt path must not create a database, and a key for its secrets. The default database is created by
// any command.
std::optional<Error> missing_database(const GatewayTarget& target, const GatewayChoice& choice) {
  if (target.is_default_database || choice.may_create_database) return std::nullopt;
  constexpr std::string_view kScheme = "sqlite:";
  if (!target.database.starts_with(kScheme)) return std::nullopt;
  const std::string file = target.database.substr(kScheme.size());
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return std::nullopt;
  return Error(ErrorKind::validation, "there is no database `" + file + "`").with([&](ErrorDetail& detail) {
    detail.remedy = "Check the path. `fairlead serve --db " + target.database +
                    "` creates a database, and so does a command that adds to it.";
  });
}

Task<void> wait_before_retry(Loop& loop) {
  co_await sleep_for(loop, kDatabaseRetryInterval);
}

Error with_gateway_hint(const Error& error) {
  return Error(error).with([](ErrorDetail& detail) {
    detail.remedy =
        "If a gateway uses it, name the address at which that gateway listens with --gateway URL; if another "
        "command does, wait until it has ended.";
  });
}

}  // namespace

DirectGateway::~DirectGateway() {
  if (directory_.empty()) return;
  ::unlink((directory_ + "/admin.sock").c_str());
  ::rmdir(directory_.c_str());
}

Task<Result<std::unique_ptr<DirectGateway>>> DirectGateway::open(Loop& loop, const std::string& database) {
  disable_core_dumps();  // it has the key of the secrets
  Result<ServeConfig> config = direct_config(database);
  if (!config) co_return config.error();
  std::unique_ptr<DirectGateway> self(new DirectGateway);
  Result<std::string> directory = create_socket_directory();
  if (!directory) co_return directory.error();
  self->directory_ = std::move(*directory);
  Result<std::string> token = registry::generate_token();
  if (!token) co_return token.error();
  self->address_.token = std::move(*token);
  self->address_.url = "unix:" + self->directory_ + "/admin.sock";
  self->address_.direct = true;
  config->gateway.listen = self->address_.url;
  admin::RegistryGatewayOptions options = std::move(config->database.options);
  options.database = std::move(config->database.address);
  options.admin_token = self->address_.token;
  options.offline = true;
  options.version = FAIRLEAD_VERSION;
  options.server.log = Log::to_stderr(LogLevel::warning, LogFormat::text);
  Result<std::shared_ptr<admin::RegistryGateway>> gateway =
      co_await admin::RegistryGateway::listen(loop, std::move(config->gateway), std::move(options));
  if (!gateway) co_return gateway.error();
  self->gateway_ = std::move(*gateway);
  co_return self;
}

Task<void> DirectGateway::close(Loop& loop) {
  gateway_->stop();
  co_await gateway_->server()->stopped().wait(loop);
  co_await gateway_->close();
}

Task<Result<OpenedGateway>> open_gateway(Loop& loop, const GatewayChoice& choice) {
  const Result<GatewayTarget> target = find_gateway(choice);
  if (!target) co_return target.error();
  OpenedGateway opened;
  opened.address = target->address;
  if (target->database.empty()) co_return opened;
  if (const std::optional<Error> missing = missing_database(*target, choice)) co_return *missing;
  const std::string database = target->is_default_database ? std::string() : target->database;
  const Clock::time_point deadline = Clock::now() + kMaxDatabaseWait;
  while (true) {
    Result<std::unique_ptr<DirectGateway>> direct = co_await DirectGateway::open(loop, database);
    if (direct) {
      opened.address = (*direct)->address();
      opened.direct = std::move(*direct);
      co_return opened;
    }
    if (!is_database_in_use(direct.error())) co_return direct.error();
    const std::optional<GatewayAddress> serving = serving_gateway(*target);
    if (serving) {
      opened.address = *serving;
      co_return opened;
    }
    if (Clock::now() > deadline) co_return with_gateway_hint(direct.error());
    co_await wait_before_retry(loop);
  }
}

}  // namespace fairlead::cli
