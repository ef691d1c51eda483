// fairlead serve: the gateway. Puts the servers of a configuration file behind one endpoint, over HTTP or on
// stdin and stdout.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "cli/common.hpp"
#include "cli/hangup.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/loop/workers.hpp"
#include "fairlead/process/descriptor_limit.hpp"

namespace fairlead::cli {

namespace {

struct ServeCommand {
  CommonOptions common;
  std::string config;
  std::string listen;
  std::string terminator_manifest;
  std::optional<unsigned> socket_mode;
  bool stdio = false;
  bool insecure_no_auth = false;
};

// Returns the configuration that is used without --config: one server, which is `fairlead demo`.
Result<gateway::Config> demo_config() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::spawn, "cannot read /proc/self/exe, the path of this program");
  pool::Program demo;
  demo.command = std::string(self, static_cast<std::size_t>(length));
  demo.args = {"demo"};
  gateway::Config config;
  pool::ServerSpec spec;
  spec.name = "demo";
  spec.transport = std::move(demo);
  config.servers.push_back(std::move(spec));
  return config;
}

Result<gateway::Config> load_command_config(const ServeCommand& command) {
  Result<gateway::Config> config =
      command.config.empty() ? demo_config() : gateway::load_config(command.config);
  if (!config) return config;
  if (!command.listen.empty()) config->listen = command.listen;
  if (command.socket_mode) config->socket_mode = *command.socket_mode;
  if (!command.terminator_manifest.empty()) config->terminator_manifest = command.terminator_manifest;
  return config;
}

bool hangup_is_ignored() {
  struct sigaction action = {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

class GatewayRunner {
 public:
  GatewayRunner(Loop& loop, const ServeCommand& command)
      : loop_(loop), command_(command), log_(command.common.log()) {}

  int run(gateway::Config config) {
    Result<Signals> signals = Signals::watch(loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int signal) {
      if (signal == SIGHUP) {
        on_hangup();
      } else {
        server_->stop();
      }
    });
    if (!signals) return report(signals.error());
    raise_limit();
    ServerResult server = command_.stdio ? serve_stdio(std::move(config)) : listen(std::move(config));
    if (!server) return report(server.error());
    server_ = std::move(*server);
    loop_.run_until([this] { return server_->stopped().is_set(); });
    return kSuccess;
  }

 private:
  using ServerResult = Result<std::shared_ptr<gateway::GatewayServer>>;

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

  ServerResult serve_stdio(gateway::Config config) {
    StreamConnectOptions connect;
    connect.limits = gateway::connection_limits(config);
    ConnectResult stdio = connect_own_stdio(loop_, std::move(connect));
    if (!stdio) return stdio.error();
    return gateway::GatewayServer::serve(loop_, std::move(config), std::move(*stdio),
                                         Principal::local(::getuid(), "stdio"), options());
  }

  ServerResult listen(gateway::Config config) {
    ServerResult server = gateway::GatewayServer::listen(loop_, std::move(config), options());
    if (server || server.error().detail().os_error != EADDRINUSE) return server;
    return Error(server.error()).with([](ErrorDetail& detail) {
      detail.remedy =
          "End the program that listens there, or choose another address with --listen HOST:PORT.";
    });
  }

  // See docs/gateway.md, "Reloading". SIGHUP may arrive more than once for one closed terminal.
  void on_hangup() {
    if (server_->stopping()) return;
    const bool closed = terminal_.detect_loss();
    if (!closed && !command_.config.empty()) return reload();
    if (!hangup_ignored_) server_->stop();
  }

  // Reads the file on another thread, because a large file takes long. The loop thread serves clients
  // meanwhile.
  void reload() {
    const Result<void> reopened = stderr_file_.reopen();
    if (!reopened) log_.warning("log file not reopened", {{"reason", reopened.error().message()}});
    const Result<void> reading = config_loader_.submit([this] {
      loop_.post([this, next = load_command_config(command_)]() mutable { apply_config(std::move(next)); });
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
    const Result<std::string> restart = co_await server_->reload(std::move(next));
    if (server_->stopping()) co_return;
    if (!restart && restart.error().kind() == ErrorKind::cancelled)
      co_return log_.info("configuration replaced by a later one", {{"config", command_.config}});
    if (!restart) co_return report_not_reloaded(restart.error());
    log_.info("configuration reloaded", {{"config", command_.config}, {"servers", std::to_string(servers)}});
    if (servers == 0) log_.warning("no server is configured", {{"config", command_.config}});
    if (!restart->empty()) log_.warning("changes need a restart", {{"keys", *restart}});
  }

  void report_not_reloaded(const Error& reason) {
    log_.error("configuration not reloaded, the old one stays",
               {{"config", command_.config}, {"reason", reason.message()}});
  }

  Loop& loop_;
  ServeCommand command_;
  Log log_;
  std::shared_ptr<gateway::GatewayServer> server_;
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
  open_closed_standard_streams();
  enable_orphan_cleanup(command.common.log());
  Result<gateway::Config> config = load_command_config(command);
  if (!config) return report(config.error());
  if (config->servers.empty())
    command.common.log().warning("no server is configured", {{"config", command.config}});
  Loop loop;
  return GatewayRunner(loop, command).run(std::move(*config));
}

}  // namespace

void add_serve(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "serve", "Run the gateway: MCP servers behind one endpoint. Without --config, it runs a demo server");
  auto serve = std::make_shared<ServeCommand>();
  command
      ->add_option("--config", serve->config,
                   "Configuration file: TOML, or the mcpServers JSON of a desktop client")
      ->envname("FAIRLEAD_CONFIG");
  command->add_option("--listen", serve->listen, "HOST:PORT or unix:/PATH [127.0.0.1:8808]")
      ->envname("FAIRLEAD_LISTEN");
  command->add_flag("--stdio", serve->stdio, "Serve on stdin and stdout instead, for a desktop client");
  command->add_flag("--insecure-no-auth", serve->insecure_no_auth,
                    "Allow --listen addresses that other machines can reach, without authentication");
  command
      ->add_option("--terminator-manifest", serve->terminator_manifest,
                   "Record every process that is started in this file, for `fairlead terminate`")
      ->envname("FAIRLEAD_TERMINATOR_MANIFEST");
  add_socket_mode(*command, serve->socket_mode);
  serve->common.add_log_to(*command);
  command->callback([serve, &status] { status = execute(*serve); });
}

}  // namespace fairlead::cli
