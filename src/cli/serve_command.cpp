// fairlead serve: the gateway. Puts the servers of a database or of a configuration file behind one endpoint,
// over HTTP or on stdin and stdout.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "admin/admin_token.hpp"
#include "admin/gateway_file.hpp"
#include "admin/registry_gateway.hpp"
#include "cli/attach.hpp"
#include "cli/common.hpp"
#include "cli/hangup.hpp"
#include "cli/serve_config.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/loop/workers.hpp"
#include "fairlead/process/descriptor_limit.hpp"
#include "process/core_dumps.hpp"

namespace fairlead::cli {

namespace {

// How long `serve --stdio` waits until the gateway that has locked the database has published its address.
constexpr std::chrono::milliseconds kAttachTimeout{15'000};
constexpr std::chrono::milliseconds kAttachRetryDelay{50};

bool hangup_is_ignored() {
  struct sigaction action = {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void log_config_warnings(const Log& log, const gateway::Config& config) {
  for (const std::string& warning : config.warnings) log.warning("configuration", {{"problem", warning}});
}

class GatewayRunner {
 public:
  GatewayRunner(Loop& loop, const ServeCommand& command)
      : loop_(loop), command_(command), log_(command.common.log()) {}

  int run(ServeConfig config) {
    Result<Signals> signals =
        Signals::watch(loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int signal) { on_signal(signal); });
    if (!signals) return report(signals.error());
    raise_limit();
    if (!command_.attach.empty()) return attach_to(command_.attach);
    ServerResult server = config.database.address.empty() ? start(std::move(config.gateway))
                                                          : start_with_database(std::move(config));
    if (attachment_) return run_attachment();
    if (!server) return report(server.error());
    server_ = std::move(*server);
    if (interrupted_) stop();
    loop_.run_until([this] { return server_->stopped().is_set(); });
    if (with_database_) loop_.block_on(with_database_->close());
    return kSuccess;
  }

 private:
  using ServerResult = Result<std::shared_ptr<gateway::GatewayServer>>;
  using Opened = Result<std::shared_ptr<admin::RegistryGateway>>;

  // Raises the limit on descriptors, because every client and every server needs some. Server processes are
  // started with the original limit.
  void raise_limit() {
    const Result<std::size_t> raised = raise_descriptor_limit();
    if (!raised) return log_.warning("descriptor limit not raised", {{"reason", raised.error().message()}});
    descriptor_limit_ = *raised;
  }

  gateway::GatewayServerOptions options() const {
    gateway::GatewayServerOptions options;
    options.log = log_;
    options.max_connections = std::min(options.max_connections,
                                       descriptor_limit_ / 4 * 3);  // the other descriptors are for servers
    options.insecure_no_auth = command_.insecure_no_auth;
    return options;
  }

  ConnectResult open_stdio(const gateway::Config& config) {
    StreamConnectOptions connect;
    connect.limits = gateway::connection_limits(config);
    return connect_own_stdio(loop_, std::move(connect));
  }
  static PrincipalPtr stdio_client() { return Principal::local(::getuid(), "stdio"); }

  // Starts a gateway without a database.
  ServerResult start(gateway::Config config) {
    if (command_.stdio) {
      ConnectResult stdio = open_stdio(config);
      if (!stdio) return stdio.error();
      return gateway::GatewayServer::serve(loop_, std::move(config), std::move(*stdio), stdio_client(),
                                           options());
    }
    gateway::GatewayServerOptions server_options = options();
    Result<std::shared_ptr<http::Authenticator>> authenticator = command_.authenticator(config.listen);
    if (!authenticator) return authenticator.error();
    server_options.authenticator = std::move(*authenticator);
    return with_remedy(gateway::GatewayServer::listen(loop_, std::move(config), std::move(server_options)));
  }

  ServerResult start_with_database(ServeConfig config) {
    admin::RegistryGatewayOptions database = std::move(config.database.options);
    database.database = std::move(config.database.address);
    database.server = options();
    database.version = FAIRLEAD_VERSION;
    Opened opened = command_.stdio ? open_for_stdio(config.gateway, database)
                                   : loop_.block_on(admin::RegistryGateway::listen(
                                         loop_, std::move(config.gateway), std::move(database)));
    if (!opened) return with_remedy(opened.error());
    with_database_ = std::move(*opened);
    return with_database_->server();
  }

  // If another gateway serves the database, attaches to that. It may still be starting, or end meanwhile.
  Opened open_for_stdio(const gateway::Config& config, const admin::RegistryGatewayOptions& database) {
    ConnectResult stdio = open_stdio(config);
    if (!stdio) return stdio.error();
    const Clock::time_point deadline = Clock::now() + kAttachTimeout;
    while (true) {
      Opened opened =
          loop_.block_on(admin::RegistryGateway::serve(loop_, config, *stdio, stdio_client(), database));
      if (opened || !admin::is_database_in_use(opened.error())) return opened;
      const std::string file = admin::sqlite_file_of(database.database);
      if (const std::optional<admin::ServingGateway> gateway = admin::find_serving_gateway(file)) {
        const Result<void> attached = attach_to_serving(*gateway, std::move(*stdio), database);
        if (!attached) return attached.error();
        return opened;
      }
      if (interrupted_ || Clock::now() > deadline) return opened;
      loop_.block_on(pause());
    }
  }
  Task<void> pause() { co_await sleep_for(loop_, kAttachRetryDelay); }

  // The client is a program of the user who owns the state directory, so it may use the token there.
  Result<void> attach_to_serving(const admin::ServingGateway& gateway, std::shared_ptr<Connection> stdio,
                                 const admin::RegistryGatewayOptions& database) {
    Result<AttachAddress> address = parse_attach_address(gateway.url);
    if (!address) return address.error();
    Result<std::string> token = read_client_token(command_.token_file);
    if (!token) return token.error();
    std::string source = token->empty() ? "none" : "given";
    if (token->empty() && probe_gateway(*address) == 401) {
      const Result<std::string> stored = database.admin_token.empty()
                                             ? admin::read_admin_token(database.admin_token_file)
                                             : Result<std::string>(database.admin_token);
      if (stored) *token = *stored;
      if (stored) source = "administrator's";
    }
    log_.info("another gateway serves the database; attaching to it",
              {{"gateway", gateway.url}, {"pid", gateway.pid}, {"token", source}});
    start_attachment(std::move(stdio), std::move(*address), std::move(*token));
    return {};
  }

  int attach_to(const std::string& url) {
    Result<AttachAddress> address = parse_attach_address(url);
    if (!address) return report(address.error());
    Result<std::string> token = read_client_token(command_.token_file);
    if (!token) return report(token.error());
    ConnectResult stdio = open_stdio(gateway::Config());
    if (!stdio) return report(stdio.error());
    log_.info("attaching", {{"gateway", url}});
    start_attachment(std::move(*stdio), std::move(*address), std::move(*token));
    return run_attachment();
  }

  void start_attachment(std::shared_ptr<Connection> stdio, AttachAddress address, std::string token) {
    AttachOptions attach;
    attach.address = std::move(address);
    attach.token = std::move(token);
    attach.limits = gateway::connection_limits(gateway::Config());
    attach.log = log_;
    attachment_ = Attachment::start(std::move(stdio), std::move(attach));
    if (interrupted_) attachment_->stop();
  }

  int run_attachment() {
    loop_.run_until([this] { return attachment_->finished().is_set(); });
    return kSuccess;
  }

  static ServerResult with_remedy(ServerResult server) {
    if (server) return server;
    const bool database_in_use = admin::is_database_in_use(server.error());
    if (!database_in_use && server.error().detail().os_error != EADDRINUSE) return server;
    return Error(server.error()).with([&](ErrorDetail& detail) {
      detail.remedy =
          database_in_use
              ? "Stop that process, or choose another database with --db."
              : "End the program that listens there, or choose another address with --listen HOST:PORT.";
    });
  }

  // A signal may arrive while the database is being opened; then there is no server yet.
  void on_signal(int signal) {
    if (attachment_) {
      if (signal != SIGHUP || !hangup_ignored_) attachment_->stop();
    } else if (!server_) {
      interrupted_ = interrupted_ || signal != SIGHUP;
    } else if (signal == SIGHUP) {
      on_hangup();
    } else {
      stop();
    }
  }

  void stop() {
    if (with_database_) return with_database_->stop();
    server_->stop();
  }

  // See docs/gateway.md, "Reloading". SIGHUP may arrive more than once for one closed terminal.
  void on_hangup() {
    if (server_->stopping()) return;
    const bool closed = terminal_.detect_loss();
    if (!closed && !command_.config.empty()) return reload();
    if (!hangup_ignored_) stop();
  }

  // Reads the file on another thread, because a large file takes long. The loop thread serves clients
  // meanwhile.
  void reload() {
    const Result<void> reopened = stderr_file_.reopen();
    if (!reopened) log_.warning("log file not reopened", {{"reason", reopened.error().message()}});
    const Result<void> reading = config_loader_.submit([this] {
      loop_.post([this, next = command_.load_gateway_config()]() mutable { apply_config(std::move(next)); });
    });
    if (!reading) report_not_reloaded(reading.error());
  }

  void apply_config(Result<gateway::Config> next) {
    if (server_->stopping()) return;
    if (!next) return report_not_reloaded(next.error());
    loop_.spawn(reload_server(std::move(*next)));
  }

  // A configuration is applied completely or not at all.
  Task<void> reload_server(gateway::Config next) {
    const std::size_t servers = next.servers.size();
    log_config_warnings(log_, next);
    Task<Result<std::string>> reloading =
        with_database_ ? with_database_->reload(std::move(next)) : server_->reload(std::move(next));
    const Result<std::string> restart = co_await reloading;
    if (server_->stopping()) co_return;
    if (!restart && restart.error().kind() == ErrorKind::cancelled)
      co_return log_.info("configuration replaced by a later one", {{"config", command_.config}});
    if (!restart) co_return report_not_reloaded(restart.error());
    log_.info("configuration reloaded", {{"config", command_.config}, {"servers", std::to_string(servers)}});
    if (servers == 0 && !with_database_)
      log_.warning("no server is configured", {{"config", command_.config}});
    if (!restart->empty()) log_.warning("changes need a restart", {{"keys", *restart}});
  }

  void report_not_reloaded(const Error& reason) {
    log_.error("configuration not reloaded, the old one stays",
               {{"config", command_.config}, {"reason", reason.message()}});
  }

  Loop& loop_;
  ServeCommand command_;
  Log log_;
  std::shared_ptr<gateway::GatewayServer> server_;         // null: not started yet
  std::shared_ptr<admin::RegistryGateway> with_database_;  // null: the servers are those of a file
  std::shared_ptr<Attachment> attachment_;                 // null: this process is the gateway
  bool interrupted_ = false;                               // before the server was started
  std::size_t descriptor_limit_ = 1024;
  ControllingTerminal terminal_;
  StderrFile stderr_file_;
  bool hangup_ignored_ = hangup_is_ignored();
  // One thread, so that configurations are applied in the order in which they were read.
  Workers config_loader_{Workers::single_thread_limits()};
};

int execute(const ServeCommand& command) {
  if (command.stdio) {
    if (const std::optional<Error> missing = missing_stdio_error()) return report(*missing);
  }
  if (!command.attach.empty()) {
    if (!command.stdio) return report(Error(ErrorKind::validation, "--attach needs --stdio"));
    Loop loop;
    return GatewayRunner(loop, command).run(ServeConfig());
  }
  // At the limit of a file's size, a write of the database fails instead of ending the process. Server
  // processes are started with the default disposition.
  ::signal(SIGXFSZ, SIG_IGN);
  // Values of secrets that are in use are in the memory of the gateway and of its servers.
  if (!command.core_dumps) disable_core_dumps();
  enable_orphan_cleanup(command.common.log());
  Result<ServeConfig> config = command.load();
  if (!config) return report(config.error());
  log_config_warnings(command.common.log(), config->gateway);
  if (config->gateway.servers.empty() && config->database.address.empty())
    command.common.log().warning("no server is configured", {{"config", command.config}});
  Loop loop;
  return GatewayRunner(loop, command).run(std::move(*config));
}

}  // namespace

void add_serve(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "serve",
      "Run the gateway: MCP servers behind one endpoint. The servers are in a database and are changed while "
      "the gateway runs, or, with --config, in a file");
  auto serve = std::make_shared<ServeCommand>();
  command
      ->add_option("--config", serve->config,
                   "Configuration file: TOML, or the mcpServers JSON of a desktop client")
      ->envname("FAIRLEAD_CONFIG");
  command
      ->add_option("--db", serve->database,
                   "Database: sqlite:PATH or postgresql://… [without --config: fairlead/fairlead.db in "
                   "$XDG_STATE_HOME]")
      ->envname("FAIRLEAD_DB");
  command
      ->add_option("--auth-mode", serve->auth_mode,
                   "Whether clients need a token: none, token, or auto [auth.mode in the database, or auto]")
      ->envname("FAIRLEAD_AUTH_MODE");
  command->add_option("--listen", serve->listen, "HOST:PORT or unix:/PATH [127.0.0.1:8808]")
      ->envname("FAIRLEAD_LISTEN");
  command->add_flag("--stdio", serve->stdio, "Serve on stdin and stdout instead, for a desktop client");
  command->add_option("--attach", serve->attach,
                      "With --stdio: forward to the gateway at this URL instead of starting servers. "
                      "http://…/mcp, https://…/mcp, or unix:/PATH");
  command->add_option("--token-file", serve->token_file,
                      "With --attach: file with the token for the gateway [the variable FAIRLEAD_TOKEN]");
  command->add_flag("--insecure-no-auth", serve->insecure_no_auth,
                    "Allow --listen addresses that other machines can reach, without authentication");
  command
      ->add_option("--secret-key-file", serve->secret_key_file,
                   "File of the key that encrypts secrets [with SQLite: DATABASE.key]. See also the variable "
                   "FAIRLEAD_SECRET_KEY")
      ->envname("FAIRLEAD_SECRET_KEY_FILE");
  command
      ->add_option("--secret-key-command", serve->secret_key_command,
                   "Command that prints the key that encrypts secrets")
      ->envname("FAIRLEAD_SECRET_KEY_COMMAND");
  command->add_flag("--core-dumps", serve->core_dumps,
                    "Allow core dumps of the gateway and its servers, which contain secrets in use");
  command
      ->add_option("--terminator-manifest", serve->terminator_manifest,
                   "Record every process that is started in this file, for `fairlead terminate`")
      ->envname("FAIRLEAD_TERMINATOR_MANIFEST");
  add_socket_mode(*command, serve->socket_mode);
  serve->common.add_log_to(*command);
  command->callback([serve, &status] { status = execute(*serve); });
}

}  // namespace fairlead::cli
