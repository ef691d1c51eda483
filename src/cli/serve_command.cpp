// fairlead serve: the gateway. Servers of a file behind one endpoint, over HTTP or on stdin and stdout.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <csignal>
#include <iterator>

#include "cli/common.hpp"
#include "cli/hangup.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/process/descriptor_limit.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::cli {

namespace {

constexpr std::chrono::milliseconds kLastWords(1000);  // for the last answers to leave
constexpr std::chrono::seconds kSlowTurnInterval(10);  // between two log lines about slow turns

struct ServeCommand {
  CommonOptions common;
  std::string config;
  std::string listen;
  std::string terminator_manifest;
  std::optional<unsigned> socket_mode;
  bool stdio = false;
  bool insecure_no_auth = false;
};

// With nothing to serve there is still something to see.
Result<gateway::Config> demo_config() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error(ErrorKind::spawn, "cannot find out which program this is");
  pool::Program demo;
  demo.command = std::string(self, static_cast<std::size_t>(length));
  demo.args = {"demo"};
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
  if (command.socket_mode) config->socket_mode = *command.socket_mode;
  if (!command.terminator_manifest.empty()) config->terminator_manifest = command.terminator_manifest;
  return config;
}

// The keys that differ and are read at the start only.
std::string keys_for_restart(const gateway::Config& now, const gateway::Config& next) {
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
  compare("limits", now.limits == next.limits && now.max_frame_bytes == next.max_frame_bytes &&
                        now.max_body_bytes == next.max_body_bytes && now.buffers == next.buffers &&
                        now.max_noise_frames == next.max_noise_frames);
  return keys;
}

bool hangup_is_ignored() {
  struct sigaction action = {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// There is no authentication yet, so whoever reaches the listener may use every server behind it.
Result<void> check_listen_address(const std::string& address, bool insecure_no_auth, const Log& log) {
  const Result<bool> local = http::is_local_address(address);
  if (!local) return local.error();
  if (*local) return {};
  if (!insecure_no_auth)
    return Error(ErrorKind::validation,
                 "refusing to listen on " + address +
                     ": other machines can reach this address, and the gateway does not authenticate its "
                     "clients. Listen on 127.0.0.1, localhost, [::1] or a Unix socket, or pass "
                     "--insecure-no-auth if something else keeps strangers away");
  log.warning("listening beyond this machine without authentication: whoever reaches it may use every server",
              {{"address", address}, {"flag", "--insecure-no-auth"}});
  return {};
}

class Serving {
 public:
  Serving(Loop& loop, gateway::Config config, const ServeCommand& command)
      : loop_(loop),
        config_(std::move(config)),
        command_(command),
        log_(command.common.log()),
        budget_(ByteBudget::create(config_.buffers)),
        stdio_(command.stdio) {}

  int run() {
    Result<Signals> signals = Signals::watch(loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int signal) {
      if (signal == SIGHUP) {
        on_hangup();
      } else {
        stop();
      }
    });
    if (!signals) return report(signals.error());
    loop_.turns().observe(TurnMeter::kDefaultBudget,
                          [this](const TurnMeter::SlowTurn& turn) { on_slow_turn(turn); });
    raise_descriptors();
    const Result<void> opened = stdio_ ? open_stdio() : listen();  // where it cannot be, nothing is started
    if (!opened) return report(opened.error());
    Result<std::shared_ptr<gateway::Gateway>> made = gateway::Gateway::create(loop_, config_, log_);
    if (!made) return report(made.error());
    gateway_ = std::move(*made);
    if (stdio_) {
      serve_stdio();
    } else {
      serve_http();
    }
    loop_.run_until([this] { return done_; });
    return kDone;
  }

 private:
  // Every client and every server takes some. Servers get the limit from before.
  void raise_descriptors() {
    const Result<std::size_t> raised = raise_descriptor_limit();
    if (!raised) return log_.warning("descriptor limit not raised", {{"reason", raised.error().message()}});
    descriptors_ = *raised;
  }

  Result<void> open_stdio() {
    ConnectOptions options;
    options.limits = gateway::frame_limits(config_);
    ConnectResult stdio = connect_own_stdio(loop_, std::move(options));
    if (!stdio) return stdio.error();
    client_ = std::move(*stdio);
    client_->set_account(budget_->account("stdio"));
    return {};
  }

  void serve_stdio() {
    Limits limits = gateway::frame_limits(config_);
    limits.drain_grace = config_.drain_grace;
    peer_ = mcp::serve(gateway_->front(), client_, limits, log_);
    loop_.spawn(until_closed(this));
  }

  Result<void> listen() {
    const Result<void> allowed = check_listen_address(config_.listen, command_.insecure_no_auth, log_);
    if (!allowed) return allowed.error();
    http::ServerOptions options;
    options.log = log_;
    options.drain_grace = config_.drain_grace + kLastWords;
    options.max_body_bytes = config_.max_body_bytes;
    options.budget = budget_;
    // The rest is for servers.
    options.max_connections = std::min(options.max_connections, descriptors_ / 4 * 3);
    options.socket_mode = config_.socket_mode;
    options.max_stream_backlog_bytes =
        std::max<std::size_t>(options.max_stream_backlog_bytes, 2 * config_.max_frame_bytes);
    options.allowed_origins = config_.allowed_origins;
    if (!config_.allowed_hosts.empty()) {
      options.allowed_hosts = {"localhost", "127.0.0.1", "[::1]"};  // nobody is led astray by these
      std::ranges::copy(config_.allowed_hosts, std::back_inserter(*options.allowed_hosts));
    }
    if (!config_.tls_certificate.empty())
      options.tls = http::TlsFiles{config_.tls_certificate, config_.tls_key};
    Result<std::shared_ptr<http::Server>> server =
        http::Server::listen(loop_, config_.listen, std::move(options));
    if (!server) return server.error();
    http_ = std::move(*server);
    return {};
  }

  void serve_http() {
    transport::EndpointOptions endpoint;
    endpoint.log = log_;
    endpoint.limits = gateway::frame_limits(config_);
    mcp::HttpApplicationOptions application;
    application.log = log_;
    application.limits = gateway::frame_limits(config_);
    endpoint_ = transport::Endpoint::create(
        loop_, mcp::http_application(gateway_->front(), std::move(application)), std::move(endpoint));
    http_->route("/mcp", endpoint_->handler());
    http_->route("/sse", endpoint_->sse_handler("/messages"));
    http_->route("/messages", endpoint_->messages_handler());
    http_->route("/health", [gateway = gateway_](std::shared_ptr<http::Exchange> exchange) {
      exchange->respond(http::Response::json(200, gateway->health().bytes()));
    });
    log_.info("serving", {{"endpoint", url()}, {"servers", config_.servers.size()}});
  }

  // While a turn lasts no other client is served. Turns that come faster than they are logged are counted.
  void on_slow_turn(const TurnMeter::SlowTurn& turn) {
    ++slow_turns_;
    const Clock::time_point now = Clock::now();
    if (now < next_slow_turn_line_) return;
    next_slow_turn_line_ = now + kSlowTurnInterval;
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(turn.cpu_time);
    log_.warning("slow turn of the loop", {{"ms", std::to_string(spent.count())},
                                           {"activity", std::string(turn.activity)},
                                           {"turns", std::to_string(std::exchange(slow_turns_, 0))}});
  }

  std::string url() const {
    const std::string address = http_->address();
    if (address.starts_with("unix:")) return address + " /mcp";
    return (config_.tls_certificate.empty() ? "http://" : "https://") + address + "/mcp";
  }

  static Task<void> until_closed(Serving* self) {
    const bool closed = co_await self->peer_->finished().wait(self->loop_, Clock::duration::max());
    static_cast<void>(closed);
    if (!self->stopping_) self->stop();
  }

  // docs/gateway.md, "Reloading". A terminal that closes may be told of more than once.
  void on_hangup() {
    if (stopping_) return;
    const bool closed = terminal_.lost();
    if (!closed && !command_.config.empty()) return reload();
    if (!hangup_ignored_) stop();
  }

  // What cannot be used as a whole is not used in part.
  void reload() {
    const Result<void> reopened = stderr_file_.reopen();
    if (!reopened) log_.warning("log not reopened", {{"reason", reopened.error().message()}});
    Result<gateway::Config> next = chosen_config(command_);
    Result<void> applied = next ? Result<void>() : next.error();
    if (applied && http_ && !config_.tls_certificate.empty()) applied = http_->reload_tls();
    const std::string restart = next ? keys_for_restart(config_, *next) : std::string();
    const std::size_t servers = next ? next->servers.size() : 0;
    if (applied) applied = gateway_->reload(std::move(*next));
    if (!applied) {
      return log_.error("configuration not reloaded, the old one stays",
                        {{"config", command_.config}, {"reason", applied.error().message()}});
    }
    log_.info("configuration reloaded", {{"config", command_.config}, {"servers", std::to_string(servers)}});
    if (servers == 0) log_.warning("no server is configured", {{"config", command_.config}});
    if (!restart.empty()) log_.warning("changes need a restart", {{"keys", restart}});
  }

  void stop() {
    // Asked twice: calls under way are given up at once.
    if (std::exchange(stopping_, true)) return loop_.spawn(gateway_->shutdown(std::chrono::milliseconds(0)));
    log_.info("shutting down", {});
    loop_.spawn(wind_down(this));
  }

  // The gateway lets the calls under way finish and fails the rest when their time is over. So every client
  // has an answer, whatever way it came, before the connections end.
  static Task<void> wind_down(Serving* self) {
    const Clock::time_point until = Clock::now() + self->config_.drain_grace + kLastWords;
    if (self->http_) {
      self->endpoint_->wind_down();
      self->loop_.spawn(drain(self));
    }
    Task<void> stopping = self->gateway_->shutdown(self->config_.drain_grace);
    co_await stopping;
    if (self->http_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      Task<void> finishing = self->endpoint_->finish(std::max(left, kLastWords));
      co_await finishing;
      co_await self->drained_.wait(self->loop_, Clock::duration::max());
    }
    if (self->peer_) {
      Task<void> closing = self->peer_->shutdown(kLastWords);
      co_await closing;
    }
    self->done_ = true;
  }

  static Task<void> drain(Serving* self) {
    Task<void> draining = self->http_->drain();
    co_await draining;
    self->drained_.set();
  }

  Loop& loop_;
  gateway::Config config_;  // as it was at the start
  ServeCommand command_;
  Log log_;
  std::shared_ptr<ByteBudget> budget_;
  bool stdio_;
  std::shared_ptr<gateway::Gateway> gateway_;
  std::size_t descriptors_ = 1024;
  std::shared_ptr<http::Server> http_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  std::shared_ptr<Connection> client_;
  std::shared_ptr<Peer> peer_;
  Event drained_;
  ControllingTerminal terminal_;
  StderrFile stderr_file_;
  bool hangup_ignored_ = hangup_is_ignored();
  Clock::time_point next_slow_turn_line_{};
  std::uint64_t slow_turns_ = 0;  // since the last line about them
  bool stopping_ = false;
  bool done_ = false;
};

int execute(const ServeCommand& command) {
  if (command.stdio) {
    if (const std::optional<Error> missing = missing_stdio()) return report(*missing);
  }
  fill_standard_streams();
  end_orphans_of_killed_keepers(command.common.log());
  Result<gateway::Config> config = chosen_config(command);
  if (!config) return report(config.error());
  if (config->servers.empty())
    command.common.log().warning("no server is configured", {{"config", command.config}});
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
  command->add_flag("--insecure-no-auth", serve->insecure_no_auth,
                    "Allow --listen addresses that other machines can reach, without authentication");
  command
      ->add_option("--terminator-manifest", serve->terminator_manifest,
                   "Name every process that is started in this file, for `fairlead terminate`")
      ->envname("FAIRLEAD_TERMINATOR_MANIFEST");
  add_socket_mode(*command, serve->socket_mode);
  serve->common.add_log_to(*command);
  command->callback([serve, &status] { status = execute(*serve); });
}

}  // namespace fairlead::cli
