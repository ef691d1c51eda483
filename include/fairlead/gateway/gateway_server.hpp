// GatewayServer: a gateway and the way its clients reach it: an HTTP listener with the routes /mcp, /sse,
// /messages and /health, or one connection such as stdin and stdout. It starts, reloads and stops both in the
// right order.
//
//   Result<std::shared_ptr<GatewayServer>> server = GatewayServer::listen(loop, config, options);
//   …
//   (*server)->stop();
//   loop.run_until([&] { return (*server)->stopped().is_set(); });
//
// It lives on one loop.
#pragma once

#include <memory>
#include <string>

#include "fairlead/base/log.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/http/authenticator.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::gateway {

class SlowTurnLog;

struct GatewayServerOptions {
  GatewayServerOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  Log log;
  // Decides about every request on every route. Absent: every client is let in, and addresses that other
  // machines can reach are refused, unless `insecure_no_auth`.
  std::shared_ptr<http::Authenticator> authenticator;
  bool insecure_no_auth = false;
  std::size_t max_connections = http::ServerOptions().max_connections;
};

class GatewayServer : public std::enable_shared_from_this<GatewayServer> {
 public:
  // Listens at `config.listen`, then starts the gateway: where it cannot listen, no server is started. Kind
  // validation for an address that other machines can reach without authentication.
  static Result<std::shared_ptr<GatewayServer>> listen(Loop& loop, Config config,
                                                       GatewayServerOptions options = GatewayServerOptions());
  // Serves one client, and stops when its connection ends. Without a principal it is anonymous.
  static Result<std::shared_ptr<GatewayServer>> serve(Loop& loop, Config config,
                                                      std::shared_ptr<Connection> client,
                                                      PrincipalPtr principal,
                                                      GatewayServerOptions options = GatewayServerOptions());
  ~GatewayServer();
  GatewayServer(const GatewayServer&) = delete;
  GatewayServer& operator=(const GatewayServer&) = delete;

  Gateway& gateway() const noexcept { return *gateway_; }
  // Where clients reach it: "http://127.0.0.1:8808/mcp"; empty when it serves a connection.
  std::string url() const;

  // Reads the TLS certificate again, on another thread, and applies the servers of a new configuration.
  // Returns the keys that have changed and need a restart, separated by commas. On failure nothing has
  // changed.
  Task<Result<std::string>> reload(Config next);
  // Begins nothing new, lets calls under way finish for `drain_grace` at most, then closes connections and
  // stops the servers. Called again: calls under way are given up at once.
  void stop();
  bool stopping() const noexcept { return stopping_; }
  // Set when everything has ended.
  Event& stopped() noexcept { return stopped_; }

 private:
  GatewayServer(Loop& loop, Config config, GatewayServerOptions options);

  Result<void> open_listener();
  Result<void> start_gateway();
  void add_routes();
  static Task<void> answer_health(std::shared_ptr<Gateway> gateway, std::shared_ptr<http::Exchange> exchange);
  static Task<Result<std::string>> apply(std::shared_ptr<GatewayServer> self, Config next);
  static Task<void> wait_for_client(std::shared_ptr<GatewayServer> self);
  static Task<void> wind_down(std::shared_ptr<GatewayServer> self);
  static Task<void> drain(std::shared_ptr<GatewayServer> self);

  Loop& loop_;
  Config config_;  // as it was at the start
  GatewayServerOptions options_;
  std::unique_ptr<SlowTurnLog> slow_turns_;
  std::shared_ptr<Gateway> gateway_;
  std::shared_ptr<http::Server> http_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  std::shared_ptr<Peer> peer_;
  Event drained_;
  Event stopped_;
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
