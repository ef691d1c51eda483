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

// A signal that comes together with the end of the input (Ctrl-C ends a whole pipeline) finds us on our way
// out; it must not become our exit status when nobody watches for it any longer.
void block_for_good(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Serves until it is told to stop, then lets what is under way finish.
class Server {
 public:
  Server(Loop& loop, const RpcCommand& command)
      : loop_(loop), log_(command.common.log()), methods_(system_methods()) {
    connect_.framing = command.common.chosen_framing();
    connect_.limits = command.common.limits();
    connect_.limits.drain_grace = command.grace;
    connect_.log = log_;
    connect_.socket_mode = command.socket_mode.value_or(connect_.socket_mode);
    if (command.on_framing_error == "resync") connect_.on_framing_error = rpc::FramingErrorPolicy::resync;
    listen_ = command.listen;
  }

  int run() {
    block_for_good({SIGTERM, SIGINT});
    Result<Signals> signals = Signals::watch(loop_, {SIGTERM, SIGINT}, [this](int) { stop(); });
    if (!signals) return report(signals.error());
    const Result<void> started = listen_.empty() ? serve_stdio() : serve_listener();
    if (!started) return report(started.error());
    loop_.run_until([this] { return done_; });
    return end_;
  }

 private:
  Result<void> serve_stdio() {
    ConnectResult connection = connect_own_stdio(loop_, connect_);
    if (!connection) return connection.error();
    serve(std::move(*connection));
    return {};
  }

  Result<void> serve_listener() {
    const Result<Uri> uri = Uri::parse(listen_);
    if (!uri) return uri.error();
    auto listener = Listener::listen(loop_, *uri, connect_,
                                     [this](std::shared_ptr<Connection> c) { serve(std::move(c)); });
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    log_.info("listening",
              {{"address", listener_->address()}, {"framing", std::string(to_string(connect_.framing))}});
    return {};
  }

  void serve(std::shared_ptr<Connection> connection) {
    PeerOptions options;
    options.limits = connect_.limits;
    options.log = log_;
    options.request_log_level = LogLevel::info;
    auto peer = Peer::start(std::move(connection), methods_, std::move(options));
    peers_.insert(peer);
    loop_.spawn(wait_for(this, std::move(peer)));
  }

  static Task<void> wait_for(Server* self, std::shared_ptr<Peer> peer) {
    const bool finished = co_await peer->finished().wait(self->loop_, Clock::duration::max());
    static_cast<void>(finished);
    self->peers_.erase(peer);
    self->note_end(*peer);
  }

  void note_end(const Peer& peer) {
    const std::optional<Error>& reason = peer.end_reason();
    if (reason && reason->kind() != ErrorKind::closed) {
      const int status = exit_code(*reason);
      const bool violated = status == kProtocolViolated;
      fault_log_.write(log_, LogLevel::warning,
                       violated ? "the stream could not be followed" : "the connection was lost",
                       {{"reason", reason->message()}});
      if (!listener_) end_ = status;
    }
    finish_when_empty();
  }

  void stop() {
    if (stopping_) return loop_.stop();  // asked twice: at once
    stopping_ = true;
    log_.info("shutting down", {{"connections", peers_.size()}});
    if (listener_) listener_->close();
    for (const std::shared_ptr<Peer>& peer : peers_) loop_.spawn(peer->shutdown(connect_.limits.drain_grace));
    finish_when_empty();
  }

  void finish_when_empty() {
    if (peers_.empty() && (stopping_ || !listener_)) done_ = true;
  }

  Loop& loop_;
  Log log_;
  LogRateLimit fault_log_;
  ConnectOptions connect_;
  std::string listen_;
  std::shared_ptr<const Methods> methods_;
  std::shared_ptr<Listener> listener_;
  std::set<std::shared_ptr<Peer>> peers_;
  bool stopping_ = false;
  bool done_ = false;
  int end_ = kDone;
};

int execute(const RpcCommand& command) {
  const std::optional<Error> missing = missing_stdio();
  if (missing && command.listen.empty()) return report(*missing);
  fill_standard_streams();
  Loop loop;
  return Server(loop, command).run();
}

}  // namespace

void add_rpc(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("rpc", "Serve JSON-RPC 2.0: system.ping and system.echo");
  auto rpc = std::make_shared<RpcCommand>();
  // Not FAIRLEAD_LISTEN: that is for `serve`, which has another syntax for addresses.
  command->add_option("--listen", rpc->listen, "tcp:HOST:PORT or unix:/PATH instead of stdin and stdout")
      ->envname("FAIRLEAD_RPC_LISTEN");
  add_duration(*command, "--grace", rpc->grace,
               "How long requests under way may take to finish at the end [5s]");
  rpc->common.add_framing_to(*command);
  command
      ->add_option(
          "--on-framing-error", rpc->on_framing_error,
          "When an impossible length or head is read: close the connection, or skip to what may be the "
          "next frame")
      ->check(CLI::IsMember({"close", "resync"}))
      ->envname("FAIRLEAD_ON_FRAMING_ERROR")
      ->capture_default_str();
  add_socket_mode(*command, rpc->socket_mode);
  rpc->common.add_log_to(*command);
  command->callback([rpc, &status] { status = execute(*rpc); });
}

}  // namespace fairlead::cli
