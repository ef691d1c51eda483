// transport::Endpoint: the server side of MCP's HTTP transport, for a route of an http::Server. It decides
// for each HTTP request how to serve it: as a stateless request of the modern era, as part of a session of
// the legacy era (see docs/glossary.md for eras), or as a WebSocket. The HTTP+SSE transport of revision
// 2024-11-05 has separate handlers. The endpoint passes messages to an Application, which is independent of
// HTTP.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/protocol/header_annotations.hpp"

namespace fairlead::transport {

// A request of the modern era, which belongs to no session. The endpoint has validated its HTTP headers and
// its envelope (the `_meta` members that every modern request carries).
class StatelessRequest {
 public:
  virtual ~StatelessRequest() = default;
  virtual const rpc::Message& message() const noexcept = 0;
  virtual const PrincipalPtr& principal() const noexcept = 0;
  virtual Loop& loop() const noexcept = 0;
  // Returns a token on which stop is requested when the client disconnects or the request times out. From
  // then on no response can be sent.
  virtual std::stop_token stop() const noexcept = 0;
  // Sends a notification before the response, which makes the HTTP response an event stream. Does nothing if
  // the client does not accept event streams.
  virtual void notify(rpc::Rope notification) = 0;
};

// Serves the messages that an Endpoint receives. All functions are called on the loop thread.
class Application {
 public:
  virtual ~Application() = default;
  // Serves a session of the legacy era or a WebSocket until `connection` is closed. All messages from the
  // client are sent by `principal`. Each message to the client must name the request that it belongs to (see
  // RelatedRequest).
  virtual void serve(std::shared_ptr<Connection> connection, PrincipalPtr principal) = 0;
  // Serves one stateless request. The endpoint sends a result with HTTP status 200, and an error with the
  // status for its code.
  virtual Task<Answer> serve(std::shared_ptr<StatelessRequest> request) = 0;
  // Serves one stateless request without a coroutine, which costs less: returns true, and responds before or
  // after it returns. Returns false, without an effect, if serve() must be called.
  virtual bool serve_directly(const std::shared_ptr<StatelessRequest>& request,
                              const std::shared_ptr<Responder>& responder) {
    static_cast<void>(request), static_cast<void>(responder);
    return false;
  }
  // Returns which arguments of a tool the client must repeat in Mcp-Param-* headers. Returns null if
  // `principal` has no such tool or the tool has no such arguments. Called for each request, so
  // implementations should precompute the result.
  virtual mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const = 0;
  // Called when the endpoint starts to drain, and again when it closes. The application ends requests that
  // would otherwise never end, such as subscriptions.
  virtual void on_drain() {}
  // Ends the subscriptions of the clients for which `selected` returns true, which would otherwise continue
  // until the client ends them. Other requests in progress continue.
  virtual void end_subscriptions(const std::function<bool(const Principal&)>& selected);
  // Waits for at most `grace` until the requests on the connections that serve() was called with have
  // finished and their responses have been sent; then closes these connections.
  virtual Task<void> drain(std::chrono::milliseconds grace);
};

struct EndpointOptions {
  EndpointOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Limits limits;
  Log log;

  // Limits the number of legacy sessions, HTTP+SSE sessions and WebSockets together. When the limit is
  // reached, a new session evicts an idle legacy session that has had no request since its handshake. If
  // there is none, and the client has fewer sessions than max_client_sessions, the new session evicts an idle
  // legacy session of a client that has more. Otherwise the new session is rejected with 503.
  std::size_t max_sessions = 10'000;
  std::size_t max_client_sessions = 2'500;
  // A session without a request or an open stream ends after this time.
  std::chrono::milliseconds session_idle{30 * 60 * 1000};
  std::size_t max_session_events = 1'000;  // events retained for replay, of all streams of a session
  // After the last response on a stream, its events are retained for this time, so that a client can resume
  // it.
  std::chrono::milliseconds finished_stream_grace{30'000};
  std::size_t max_session_event_bytes = 4u << 20;  // size of the retained events of a session
  std::size_t max_total_event_bytes = 256u << 20;  // size of the retained events of all sessions together
  // The delay before a reconnect that the endpoint requests from clients.
  std::chrono::milliseconds retry{1'000};
  // Interval of comments on idle event streams and of pings on WebSockets. If the response to a request takes
  // longer than this, the endpoint sends it as an event stream, provided that the client accepts one.
  std::chrono::milliseconds keep_alive{15'000};
  std::chrono::milliseconds request_timeout{0};  // 0: requests do not time out
  bool websocket = true;                         // whether clients may open a WebSocket
};

// A session or WebSocket, for operators.
struct SessionSummary {
  SessionSummary() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;         // not the id that the client uses, which must stay secret
  std::string transport;  // "http", "sse" or "websocket"
  std::shared_ptr<const Application> application;
  PrincipalPtr principal;
  std::string revision;  // empty if unknown
  std::string client;    // name and version that the client has sent; empty if unknown
  Clock::time_point since{};
  Clock::time_point last_request{};  // `since` if unknown
};

// Not thread-safe: all functions must be called on the loop thread.
class Endpoint {
 public:
  // `application` serves the requests of handler(), sse_handler() and messages_handler(). It may be null if
  // these are not used.
  static std::shared_ptr<Endpoint> create(Loop& loop, std::shared_ptr<Application> application,
                                          EndpointOptions options = EndpointOptions());
  virtual ~Endpoint() = default;

  // Returns the handler of a route that serves Streamable HTTP and WebSocket.
  virtual http::Handler handler() = 0;
  // Return the two handlers of the HTTP+SSE transport: sse_handler() for the route on which clients open
  // their event stream, messages_handler() for the route to which they POST messages. `messages_path` is the
  // path of the second route; the first handler sends it to clients.
  virtual http::Handler sse_handler(std::string messages_path) = 0;
  virtual http::Handler messages_handler() = 0;

  // Serve one exchange as the handlers above do, but with another application, so that several applications
  // share the limits of this endpoint. A session belongs to the application with which it was created: a
  // request with another application does not find it. `application` is kept alive by its sessions.
  virtual void serve(std::shared_ptr<http::Exchange> exchange,
                     const std::shared_ptr<Application>& application) = 0;
  virtual void serve_sse(std::shared_ptr<http::Exchange> exchange,
                         const std::shared_ptr<Application>& application,
                         const std::string& messages_path) = 0;
  virtual void serve_messages(std::shared_ptr<http::Exchange> exchange,
                              const std::shared_ptr<Application>& application) = 0;
  // Ends the sessions, WebSockets and subscriptions of the clients for which `selected` returns true.
  using ClientSelector = std::function<bool(const Application& application, const Principal& principal)>;
  virtual void end_sessions(const ClientSelector& selected) = 0;
  // Ends the session with the id in SessionSummary. Returns false if there is none.
  virtual bool end_session(std::string_view id) = 0;
  virtual std::vector<SessionSummary> sessions() const = 0;

  // Returns the number of open legacy sessions, HTTP+SSE sessions and WebSockets.
  virtual std::size_t session_count() const noexcept = 0;
  // From the time of the call, the endpoint rejects new sessions and new streams on which a client only
  // listens (a GET, or subscriptions/listen). The returned task ends the open streams of that kind, in
  // slices. Requests in progress continue; Server::drain() waits for those that were received over HTTP.
  virtual Task<void> begin_drain() = 0;
  // Does what begin_drain() does, unless that has been called. Then waits for at most `grace` until the
  // requests of sessions and WebSockets have finished and their responses have been sent, and ends all
  // sessions. Call it in addition to Server::drain(), which does not wait for WebSockets.
  virtual Task<void> drain(std::chrono::milliseconds grace) = 0;
  // Ends all sessions and streams within this call. drain() with a grace of 0 ends them in slices instead.
  virtual void close() = 0;
};

}  // namespace fairlead::transport
