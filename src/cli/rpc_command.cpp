// fairlead rpc: a small JSON-RPC 2.0 server on stdin/stdout or a socket.
#include <CLI/CLI.hpp>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <set>

#include "cli/common.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/connection/listen.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/signals.hpp"
#include "fairlead/peer/peer.hpp"

namespace fairlead::cli {

namespace {

struct RpcCommand {
  CommonOptions common;
  std::string listen;
  std::optional<unsigned> socket_mode;
  std::string on_framing_error = "close";
  std::chrono::milliseconds grace = Limits().drain_grace;
};

std::shared_ptr<const Methods> system_methods() {
  auto methods = std::make_shared<Methods>();
  methods->on("system.ping", [](const Request&) { return json::string("pong"); });
  methods->on("system.echo", [](const Request& request) {
    const json::Raw params = request.params();
    return params.absent() ? json::Raw::null() : params;
  });
  return methods;
}

// Blocks the signals until the process ends. Ctrl-C sends a signal to a whole pipeline, so a signal can
// arrive after the input has ended, when this process is exiting and no longer handles signals. It must not
// kill the process, whose exit status would then be wrong.
void block_signals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Serves until a signal arrives or stdin ends. Then drains: requests in progress may finish within the grace
// period.
class RpcServer {
 public:
  RpcServer(Loop& loop, const RpcCommand& command)
      : loop_(loop), log_(command.common.log()), methods_(system_methods()) {
    connect_options_.framing = command.common.selected_framing();
    connect_options_.limits = command.common.limits();
    connect_options_.limits.drain_grace = command.grace;
    connect_options_.log = log_;
    connect_options_.socket_mode = command.socket_mode.value_or(connect_options_.socket_mode);
    if (command.on_framing_error == "resync")
      connect_options_.on_framing_error = rpc::FramingErrorPolicy::resync;
    listen_address_ = command.listen;
  }

  int run() {
    block_signals({SIGTERM, SIGINT});
    Result<Signals> signals = Signals::watch(loop_, {SIGTERM, SIGINT}, [this](int) { stop(); });
    if (!signals) return report(signals.error());
    const Result<void> started = listen_address_.empty() ? serve_stdio() : serve_listener();
    if (!started) return report(started.error());
    loop_.run_until([this] { return done_; });
    return exit_status_;
  }

 private:
  Result<void> serve_stdio() {
    ConnectResult connection = connect_own_stdio(loop_, connect_options_);
    if (!connection) return connection.error();
    serve(std::move(*connection));
    return {};
  }

  Result<void> serve_listener() {
    const Result<Uri> uri = Uri::parse(listen_address_);
    if (!uri) return uri.error();
    auto listener = Listener::listen(loop_, *uri, connect_options_,
                                     [this](std::shared_ptr<Connection> c) { serve(std::move(c)); });
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    log_.info("listening", {{"address", listener_->address()},
                            {"framing", std::string(to_string(connect_options_.framing))}});
    return {};
  }

  void serve(std::shared_ptr<Connection> connection) {
    PeerOptions options;
    options.limits = connect_options_.limits;
    options.log = log_;
    options.request_log_level = LogLevel::info;
    auto peer = Peer::start(std::move(connection), methods_, std::move(options));
    peers_.insert(peer);
    loop_.spawn(wait_for(this, std::move(peer)));
  }

  static Task<void> wait_for(RpcServer* self, std::shared_ptr<Peer> peer) {
    co_await peer->finished().wait(self->loop_);
    self->peers_.erase(peer);
    self->on_peer_end(*peer);
  }

  void on_peer_end(const Peer& peer) {
    const std::optional<Error>& reason = peer.end_reason();
    if (reason && reason->kind() != ErrorKind::closed) {
      const int status = exit_code(*reason);
      const bool violated = status == kProtocolViolated;
      fault_log_.write(log_, LogLevel::warning,
                       violated ? "connection closed: protocol violation" : "connection lost",
                       {{"reason", reason->message()}});
      if (!listener_) exit_status_ = status;
    }
    finish_when_empty();
  }

  void stop() {
    if (stopping_) return loop_.stop();  // a second signal stops at once
    stopping_ = true;
    log_.info("shutting down", {{"connections", peers_.size()}});
    if (listener_) listener_->close();
    for (const std::shared_ptr<Peer>& peer : peers_)
      loop_.spawn(peer->shutdown(connect_options_.limits.drain_grace));
    finish_when_empty();
  }

  void finish_when_empty() {
    if (peers_.empty() && (stopping_ || !listener_)) done_ = true;
  }

  Loop& loop_;
  Log log_;
  LogRateLimit fault_log_;
  StreamConnectOptions connect_options_;
  std::string listen_address_;
  std::shared_ptr<const Methods> methods_;
  std::shared_ptr<Listener> listener_;
  std::set<std::shared_ptr<Peer>> peers_;
  bool stopping_ = false;
  bool done_ = false;  // all connections have ended
  int exit_status_ = kSuccess;
};

int execute(const RpcCommand& command) {
  const std::optional<Error> missing = missing_stdio_error();
  if (missing && command.listen.empty()) return report(*missing);
  Loop loop;
  return RpcServer(loop, command).run();
}

}  // namespace

void add_rpc(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("rpc", "Serve JSON-RPC 2.0: system.ping and system.echo");
  auto rpc = std::make_shared<RpcCommand>();
  // Not FAIRLEAD_LISTEN: that is for `serve`, whose address syntax differs.
  command->add_option("--listen", rpc->listen, "tcp:HOST:PORT or unix:/PATH instead of stdin and stdout")
      ->envname("FAIRLEAD_RPC_LISTEN");
  add_duration(*command, "--grace", rpc->grace,
               "How long requests in progress may take to finish at shutdown [5s]");
  rpc->common.add_framing_to(*command);
  command
      ->add_option(
          "--on-framing-error", rpc->on_framing_error,
          "What to do after an invalid frame length or header: close the connection, or search for the "
          "next frame")
      ->check(CLI::IsMember({"close", "resync"}))
      ->envname("FAIRLEAD_ON_FRAMING_ERROR")
      ->capture_default_str();
  add_socket_mode(*command, rpc->socket_mode);
  rpc->common.add_log_to(*command);
  command->callback([rpc, &status] { status = execute(*rpc); });
}

}  // namespace fairlead::cli
