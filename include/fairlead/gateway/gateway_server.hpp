// GatewayServer: a gateway together with its transport, which is an HTTP listener with the routes of the
// gateway's endpoints and of its health, or one connection such as stdin and stdout. Starts, reloads and
// stops the gateway and the transport in the right order.
//
// Example:
//   auto server = gateway::GatewayServer::listen(loop, config);
//   if (!server) return report(server.error());
//   loop.run_until([] { return interrupted; });
//   (*server)->stop();
//   loop.run_until([&] { return (*server)->stopped().is_set(); });
//
// All calls are made on the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/http/authenticator.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::gateway {

class AttachedClients;
class GatewayRoutes;
class SlowTurnLog;

// A session of a client over HTTP, or a WebSocket.
struct SessionInfo {
  SessionInfo() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;         // not the id that the client uses, which must stay secret
  std::string endpoint;   // the path, such as "/mcp"
  std::string transport;  // "http", "sse" or "websocket"
  std::string revision;   // empty if unknown
  std::string client;     // the name and version that the client has sent; empty if unknown
  PrincipalPtr principal;
  registry::Time since{};
  registry::Time last_request{};  // `since` if unknown
};

struct GatewayServerOptions {
  GatewayServerOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  // Authenticates every request on every route. If null, every client is accepted, and listen() rejects
  // addresses that other machines can reach, unless `insecure_no_auth` is set.
  std::shared_ptr<http::Authenticator> authenticator;
  bool insecure_no_auth = false;  // allows every address without an authenticator
  std::size_t max_connections = http::ServerOptions().max_connections;  // of HTTP clients, for listen()
  // The path of a Unix socket at which serve() also listens, for other processes of this user; empty: none.
  // The gateway then stops when its own client and the last attached process have gone.
  std::string private_socket;
  // If true, the servers are changed by Gateway::put_server() and not by a file: reload() leaves them alone.
  bool servers_from_registry = false;
  // Adds routes before those of the gateway server, and may replace none of these: of all routes that match a
  // path, the longest is used. Called when the gateway exists, if it listens.
  std::function<void(http::Server&, Gateway&)> add_routes;
  std::vector<std::string> public_paths;  // see http::ServerOptions::public_paths
  // See http::ServerOptions::rejection_response.
  std::function<std::optional<http::Response>(std::string_view target, int status, std::string_view message)>
      rejection_response;
  // Returns why the gateway is not ready although it serves calls, such as a database that cannot be reached;
  // nullopt if it is ready. Called for each request of /readyz.
  std::function<std::optional<std::string>()> readiness_problem;
  // How many servers are added right after the start, for the line in the log.
  std::size_t servers_added_later = 0;
};

class GatewayServer : public std::enable_shared_from_this<GatewayServer> {
 public:
  // Listens at `config.listen`, then starts the gateway. If listening fails, no MCP server is started. Fails
  // with kind validation for an address that other machines can reach if clients are not authenticated.
  static Result<std::shared_ptr<GatewayServer>> listen(Loop& loop, Config config,
                                                       GatewayServerOptions options = GatewayServerOptions());
  // Serves the gateway on the connection `client`, and stops when this connection ends. The client is
  // anonymous if `principal` is null.
  static Result<std::shared_ptr<GatewayServer>> serve(Loop& loop, Config config,
                                                      std::shared_ptr<Connection> client,
                                                      PrincipalPtr principal,
                                                      GatewayServerOptions options = GatewayServerOptions());
  ~GatewayServer();
  GatewayServer(const GatewayServer&) = delete;
  GatewayServer& operator=(const GatewayServer&) = delete;

  Gateway& gateway() const noexcept { return *gateway_; }
  // Returns the URL for clients, such as "http://127.0.0.1:8808/mcp", or "unix:/PATH /mcp"; empty if this
  // does not listen.
  std::string url() const;

  // Reads the TLS certificate again, on another thread, and applies the servers of a new configuration (see
  // Gateway::reload()). Returns the keys that have changed but take effect only after a restart, separated by
  // commas. On failure nothing has changed.
  Task<Result<std::string>> reload(Config next);
  // Applies the keys of Gateway::apply(), and drain_grace.
  void apply(const Config& config);
  // Ends the sessions, streams and WebSockets of the clients for which `selected` returns true, for example
  // because their access was revoked. Requests in progress of modern clients continue.
  void end_sessions(const std::function<bool(const Principal&)>& selected);
  std::vector<SessionInfo> sessions() const;
  // Ends the session with this SessionInfo::id. Returns false if there is none.
  bool end_session(std::string_view id);
  // Starts to drain: accepts no new requests, waits up to `drain_grace` for calls in progress, then closes
  // connections and stops the servers. A second call of stop() ends the wait: calls in progress are cancelled
  // at once.
  void stop();
  bool stopping() const noexcept { return stopping_; }
  // Returns the event that is set when the shutdown is complete.
  Event& stopped() noexcept { return stopped_; }

 private:
  GatewayServer(Loop& loop, Config config, GatewayServerOptions options);

  Result<void> open_listener();
  // A failure is logged: the gateway then serves its own client only.
  void open_private_socket();
  Result<void> start_gateway();
  void add_routes();
  static Task<Result<std::string>> apply_config(std::shared_ptr<GatewayServer> self, Config next);
  static Task<void> stop_when_client_disconnects(std::shared_ptr<GatewayServer> self);
  static Task<void> shut_down(std::shared_ptr<GatewayServer> self);
  static Task<void> drain_http(std::shared_ptr<GatewayServer> self);

  Loop& loop_;
  Config config_;  // as given at the start; reload() does not change it
  GatewayServerOptions options_;
  std::unique_ptr<SlowTurnLog> slow_turn_log_;
  std::shared_ptr<Gateway> gateway_;
  std::shared_ptr<http::Server> http_;         // null if this does not listen
  std::shared_ptr<GatewayRoutes> routes_;      // null if this does not listen
  std::shared_ptr<AttachedClients> attached_;  // null unless there is a private socket
  std::shared_ptr<Peer> peer_;                 // of that connection; null if this listens
  Event http_drained_;                         // drain_http() has ended
  Event stopped_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
