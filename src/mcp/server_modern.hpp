// Serves the requests of the modern era. Each request is independent of all others, on every transport.
#pragma once

#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/peer/methods.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"
#include "mcp/subscriptions.hpp"

namespace fairlead::mcp {

// The data that all modern requests share: of one stream connection, or of all HTTP endpoints of a server.
struct ModernServer {
  ModernServer(std::shared_ptr<ServerState> server_state,
               std::shared_ptr<SubscriptionRegistry> open_subscriptions, Log log_sink)
      : server(std::move(server_state)),
        subscriptions(std::move(open_subscriptions)),
        log(std::move(log_sink)) {}

  std::shared_ptr<ServerState> server;
  std::shared_ptr<SubscriptionRegistry> subscriptions;
  Log log;
};

// Serves one request. `facts` are the facts of its message; `link` sends messages to the client.
// request.peer() is not used and may be null.
Task<Answer> serve_modern(std::shared_ptr<const ModernServer> modern, Request request,
                          std::shared_ptr<const CallFacts> facts, std::shared_ptr<ClientLink> link);

// Serves a request without a coroutine; see Backend::serve_directly(). REQUIRES: may_serve_directly().
bool serve_modern_directly(const ModernServer& modern, const rpc::Message& message,
                           const std::stop_token& stop, std::shared_ptr<const CallFacts> facts,
                           std::shared_ptr<ClientLink> link, const std::shared_ptr<Responder>& responder);

}  // namespace fairlead::mcp
