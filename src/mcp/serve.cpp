#include "fairlead/mcp/serve.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "fairlead/connection/connect.hpp"
#include "fairlead/loop/signals.hpp"
#include "mcp/server_session.hpp"

namespace fairlead::mcp {

std::shared_ptr<Peer> serve(const Server& server, std::shared_ptr<Connection> connection, Limits limits,
                            Log log, PrincipalPtr principal) {
  if (!principal) principal = Principal::anonymous(connection->description());
  return ServerSession::start(server.state(), std::move(connection),
                              ServerSession::make_settings(limits, std::move(log)), std::move(principal),
                              std::make_shared<SubscriptionQuota>(SubscriptionLimits()));
}

int serve_stdio(const Server& server, Log log) {
  Loop loop;
  std::shared_ptr<Peer> peer;
  Result<Signals> signals = Signals::watch(loop, {SIGTERM, SIGINT}, [&](int) {
    if (peer) loop.spawn(peer->shutdown(Limits().drain_grace));
  });
  ConnectResult stdio = connect_own_stdio(loop);
  if (!signals || !stdio) {
    const Error& problem = signals ? stdio.error() : signals.error();
    std::fprintf(stderr, "%s\n", problem.to_string().c_str());
    return 1;
  }
  peer = serve(server, *stdio, Limits(), std::move(log), Principal::local(::getuid(), "stdio"));
  loop.run_until([&] { return peer->finished().is_set(); });
  const std::optional<Error>& reason = peer->end_reason();
  if (!reason || reason->kind() != ErrorKind::io) return 0;
  std::fprintf(stderr, "%s\n", reason->to_string().c_str());
  return 1;
}

}  // namespace fairlead::mcp
