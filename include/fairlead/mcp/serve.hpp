// Serving an MCP server: on a stream (our own stdio, a socket, a channel), or over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::mcp {

// Serves one client; without a principal it is anonymous. The peer ends with the connection; peer->shutdown()
// ends it in an orderly way.
std::shared_ptr<Peer> serve(const Server& server, std::shared_ptr<Connection> connection, Limits limits = {},
                            Log log = {}, PrincipalPtr principal = nullptr);

// The whole of main(): serves on stdin and stdout until the client closes them, or SIGTERM or SIGINT. Returns
// an exit status.
int serve_stdio(const Server& server, Log log = {});

// The server as the Application of a transport::Endpoint.
struct HttpApplicationOptions {
  HttpApplicationOptions() {}  // NOLINT: not an aggregate, see ConnectOptions
  Limits limits;
  Log log;
  // Resources that are subscribed to, and streams of changes without resources; on all connections.
  std::size_t max_subscriptions = 40'000;         // of all clients together
  std::size_t max_client_subscriptions = 10'000;  // of one principal, or address if it is anonymous
};
std::shared_ptr<transport::Application> http_application(
    const Server& server, HttpApplicationOptions options = HttpApplicationOptions());

struct HttpOptions {
  HttpOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::string path = "/mcp";
  // The HTTP+SSE pair of 2024-11-05; empty: not offered.
  std::string sse_path = "/sse";
  std::string messages_path = "/messages";
  http::ServerOptions server;
  transport::EndpointOptions endpoint;
  HttpApplicationOptions application;
  // Told the URL, with the real port, once clients can connect. Absent: it is written to stderr.
  std::function<void(const std::string& url)> listening;
};

// The whole of main(): listens at `address` ("127.0.0.1:3000", "localhost:0", "unix:/PATH") and serves until
// SIGTERM or SIGINT; then lets requests under way finish. Returns an exit status.
int serve_http(const Server& server, const std::string& address, HttpOptions options = HttpOptions());

}  // namespace fairlead::mcp
