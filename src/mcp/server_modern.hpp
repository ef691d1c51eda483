// The modern half of a server: every request stands for itself, on whatever it came.
#pragma once

#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/peer/methods.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"
#include "mcp/subscriptions.hpp"

namespace fairlead::mcp {

struct ModernServer {
  ModernServer(std::shared_ptr<ServerState> offered, std::shared_ptr<Subscriptions> open, Log to)
      : server(std::move(offered)), subscriptions(std::move(open)), log(std::move(to)) {}

  std::shared_ptr<ServerState> server;
  std::shared_ptr<Subscriptions> subscriptions;
  Log log;
};

// Serves one request (its peer is not asked for), of which `facts` are known; `link` leads back to whoever
// sent it.
Task<Answer> serve_modern(std::shared_ptr<const ModernServer> modern, Request request,
                          std::shared_ptr<const CallFacts> facts, std::shared_ptr<ClientLink> link);

}  // namespace fairlead::mcp
