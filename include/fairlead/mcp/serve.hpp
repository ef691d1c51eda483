// Serving an MCP server on a stream: our own stdio, a socket, a channel.
#pragma once

#include <memory>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/peer/peer.hpp"

namespace fairlead::mcp {

// Serves one client. The peer ends with the connection; peer->shutdown() ends it in an orderly way.
std::shared_ptr<Peer> serve(const Server& server, std::shared_ptr<Connection> connection, Limits limits = {},
                            Log log = {});

// The whole of main(): serves on stdin and stdout until the client closes them, or SIGTERM or SIGINT. Returns
// an exit status.
int serve_stdio(const Server& server, Log log = {});

}  // namespace fairlead::mcp
