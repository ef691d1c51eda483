// Functions that serve a Server to clients: on a stream connection (the process's stdio, a socket, a channel)
// or over HTTP.
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

class SubscriptionQuota;

// Serves one client on `connection`. If `principal` is null, the client is anonymous. The returned peer
// finishes when the connection ends; peer->shutdown() drains it.
std::shared_ptr<Peer> serve(const Server& server, std::shared_ptr<Connection> connection, Limits limits = {},
                            Log log = {}, PrincipalPtr principal = nullptr);

// Serves on stdin and stdout until the client closes them or the process receives SIGTERM or SIGINT; after a
// signal the server drains. Creates and runs its own loop. Returns the exit status for main(): 1 after
// printing an error to stderr if stdin cannot be read or stdout cannot be written.
int serve_stdio(const Server& server, Log log = {});

// Options of http_application(), which makes a transport::Application for a transport::Endpoint from a
// Server.
struct HttpApplicationOptions {
  HttpApplicationOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions
  Limits limits;
  Log log;
  // Limits on subscriptions over all connections. Each subscribed resource counts as one, and so does a
  // subscriptions/listen stream without resources.
  std::size_t max_subscriptions = 40'000;         // of all clients together
  std::size_t max_client_subscriptions = 10'000;  // of one principal, or of one address if it is anonymous
  // Several applications share these limits if they have the same quota. Null: the application has its own.
  std::shared_ptr<SubscriptionQuota> quota;
};
// Returns a quota with the limits of `options`.
std::shared_ptr<SubscriptionQuota> make_subscription_quota(const HttpApplicationOptions& options);
std::shared_ptr<transport::Application> http_application(
    const Server& server, HttpApplicationOptions options = HttpApplicationOptions());

struct HttpOptions {
  HttpOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string path = "/mcp";
  // The two paths of the HTTP+SSE transport of revision 2024-11-05. This transport is not served if
  // `sse_path` is empty.
  std::string sse_path = "/sse";
  std::string messages_path = "/messages";
  http::ServerOptions server;
  transport::EndpointOptions endpoint;
  HttpApplicationOptions application;
  // Called with the URL, including the actual port, once clients can connect. If empty, the URL is written to
  // stderr.
  std::function<void(const std::string& url)> on_listening;
};

// Listens on `address` ("127.0.0.1:3000", "localhost:0", "unix:/PATH") and serves until the process receives
// SIGTERM or SIGINT. After the first signal the server drains; a second signal ends it at once. Creates and
// runs its own loop. Returns the exit status for main().
int serve_http(const Server& server, const std::string& address, HttpOptions options = HttpOptions());

}  // namespace fairlead::mcp
