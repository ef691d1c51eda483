// fairlead serve: the gateway. Servers of a file behind one endpoint, over HTTP or on stdin and stdout.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <csignal>

#include "cli/common.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/http/endpoint.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/mcp/serve.hpp"

namespace fairlead::cli {

namespace {

struct ServeCommand {
  CommonOptions common;
  std::string config;
  std::string listen;
  std::string terminator_manifest;
  bool stdio = false;
};

// With nothing to serve there is still something to see.
Result<gateway::Config> demo_config() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::spawn, "cannot find out which program this is");
  ProcessSpec demo;
  demo.command = std::string(self, static_cast<std::size_t>(length));
  demo.args = {"demo"};
  demo.name = "demo";
  demo.stderr_mode = StderrMode::log;
  gateway::Config config;
  pool::ServerSpec spec;
  spec.name = "demo";
  spec.reach = std::move(demo);
  config.servers.push_back(std::move(spec));
  return config;
}

Result<gateway::Config> chosen_config(const ServeCommand& command) {
  Result<gateway::Config> config =
      command.config.empty() ? demo_config() : gateway::load_config(command.config);
  if (!config) return config;
  if (!command.listen.empty()) config->listen = command.listen;
  if (!command.terminator_manifest.empty()) config->terminator_manifest = command.terminator_manifest;
  return config;
}

class Serving {
 public:
  Serving(Loop& loop, gateway::Config config, const ServeCommand& command)
      : loop_(loop), config_(std::move(config)), log_(command.common.log()), stdio_(command.stdio) {}

  int run() {
    Result<Signals> signals = Signals::watch(loop_, {SIGTERM, SIGINT}, [this](int) { stop(); });
    if (!signals) return report(signals.error());
    Result<std::shared_ptr<gateway::Gateway>> made = gateway::Gateway::create(loop_, config_, log_);
    if (!made) return report(made.error());
    gateway_ = std::move(*made);
    const Result<void> started = stdio_ ? serve_stdio() : serve_http();
    if (!started) {
      static_cast<void>(loop_.block_on(ended(this)));
      return report(started.error());
    }
    loop_.run_until([this] { return done_; });
    return kDone;
  }

 private:
  Result<void> serve_stdio() {
    ConnectResult stdio = connect_own_stdio(loop_);
    if (!stdio) return stdio.error();
    peer_ = mcp::serve(gateway_->front(), *stdio, Limits(), log_);
    loop_.spawn(until_closed(this));
    return {};
  }

  Result<void> serve_http() {
    http::ServerOptions options;
    options.log = log_;
    options.drain_grace = config_.drain_grace;
    options.allowed_origins = config_.allowed_origins;
    if (!config_.allowed_hosts.empty()) options.allowed_hosts = config_.allowed_hosts;
    if (!config_.tls_certificate.empty())
      options.tls = http::TlsFiles{config_.tls_certificate, config_.tls_key};
    Result<std::shared_ptr<http::Server>> server =
        http::Server::listen(loop_, config_.listen, std::move(options));
    if (!server) return server.error();
    http_ = std::move(*server);
    http::EndpointOptions endpoint;
    endpoint.log = log_;
    mcp::HttpApplicationOptions application;
    application.log = log_;
    endpoint_ = http::Endpoint::create(
        loop_, mcp::http_application(gateway_->front(), std::move(application)), std::move(endpoint));
    http_->route("/mcp", endpoint_->handler());
    http_->route("/sse", endpoint_->sse_handler("/messages"));
    http_->route("/messages", endpoint_->messages_handler());
    http_->route("/health", [gateway = gateway_](std::shared_ptr<http::Exchange> exchange) {
      exchange->respond(http::Response::json(200, gateway->health().bytes()));
    });
    log_.info("serving", {{"endpoint", (config_.tls_certificate.empty() ? "http://" : "https://") +
                                           http_->address() + "/mcp"},
                          {"servers", std::to_string(config_.servers.size())}});
    return {};
  }

  static Task<void> until_closed(Serving* self) {
    const bool closed = co_await self->peer_->finished().wait(self->loop_, Clock::duration::max());
    static_cast<void>(closed);
    self->stop();
  }

  void stop() {
    if (std::exchange(stopping_, true)) return;
    log_.info("shutting down", {});
    loop_.spawn(wind_down(this));
  }

  static Task<void> wind_down(Serving* self) {
    if (self->http_) {
      Task<void> draining = self->http_->drain();
      co_await draining;
      self->endpoint_->close();
    }
    if (self->peer_) {
      Task<void> closing = self->peer_->shutdown(self->config_.drain_grace);
      co_await closing;
    }
    Task<int> rest = ended(self);
    const int status = co_await rest;
    static_cast<void>(status);
    self->done_ = true;
  }

  static Task<int> ended(Serving* self) {
    Task<void> stopping = self->gateway_->shutdown(self->config_.drain_grace);
    co_await stopping;
    co_return kDone;
  }

  Loop& loop_;
  gateway::Config config_;
  Log log_;
  bool stdio_;
  std::shared_ptr<gateway::Gateway> gateway_;
  std::shared_ptr<http::Server> http_;
  std::shared_ptr<http::Endpoint> endpoint_;
  std::shared_ptr<Peer> peer_;
  bool stopping_ = false;
  bool done_ = false;
};

int execute(const ServeCommand& command) {
  if (command.stdio) {
    if (const std::optional<Error> missing = missing_stdio()) return report(*missing);
  }
  fill_standard_streams();
  Result<gateway::Config> config = chosen_config(command);
  if (!config) return report(config.error());
  Loop loop;
  return Serving(loop, std::move(*config), command).run();
}

}  // namespace

void add_serve(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "serve", "Put MCP servers behind one endpoint: the gateway. Without a config, a demo server");
  auto serve = std::make_shared<ServeCommand>();
  command->add_option("--config", serve->config, "TOML, or the mcpServers JSON of a desktop client")
      ->envname("FAIRLEAD_CONFIG");
  command->add_option("--listen", serve->listen, "HOST:PORT or unix:/PATH [127.0.0.1:8808]")
      ->envname("FAIRLEAD_LISTEN");
  command->add_flag("--stdio", serve->stdio, "Serve on stdin and stdout instead, for a desktop client");
  command
      ->add_option("--terminator-manifest", serve->terminator_manifest,
                   "Name every process that is started in this file, for `fairlead terminate`")
      ->envname("FAIRLEAD_TERMINATOR_MANIFEST");
  serve->common.add_log_to(*command);
  command->callback([serve, &status] { status = execute(*serve); });
}

}  // namespace fairlead::cli
