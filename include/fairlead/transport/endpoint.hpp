// transport::Endpoint: MCP's HTTP transport, the server's side. It hangs on a route and speaks every form
// there is, decided request by request: the stateless modern form, the sessions of the legacy revisions
// (POST, GET, DELETE, resumption), WebSocket, and beside it the HTTP+SSE pair of 2024-11-05. Behind it stands
// an Application that knows nothing of HTTP.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/protocol/header_annotations.hpp"

namespace fairlead::transport {

// A modern request: it stands for itself. Envelope and headers have been checked.
class Standalone {
 public:
  virtual ~Standalone() = default;
  virtual const rpc::Message& message() const noexcept = 0;
  virtual const PrincipalPtr& principal() const noexcept = 0;
  virtual Loop& loop() const noexcept = 0;
  // Set when the client has gone: there is nobody to answer.
  virtual std::stop_token stop() const noexcept = 0;
  // Sends a notification ahead of the answer; the answer becomes a stream of events by it.
  virtual void notify(rpc::Rope notification) = 0;
};

class Application {
 public:
  virtual ~Application() = default;
  // A client of the legacy era, or one on a WebSocket: its messages come and go on `connection`, for as long
  // as that lasts, and all of them are the principal's. Messages are sent with what they concern (see
  // Concerning).
  virtual void serve(std::shared_ptr<Connection> connection, PrincipalPtr principal) = 0;
  // The answer becomes 200, or the status that goes with its code.
  virtual Task<Answer> serve(std::shared_ptr<Standalone> request) = 0;
  // The arguments of a tool that travel as Mcp-Param-* headers; null if this principal has no such tool, or
  // none does. Called for each request: implementations compute it once.
  virtual mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const = 0;
  // The end is near: what would go on for ever, such as subscriptions, is to be ended in its orderly way.
  virtual void ending() {}
  // Lets what is under way on its connections finish and the answers leave, for `grace` at most; closes them.
  virtual Task<void> finish(std::chrono::milliseconds grace);
};

struct EndpointOptions {
  EndpointOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  Limits limits;
  Log log;

  // Of the legacy era, and WebSockets. When they are all taken, a session without a request since its
  // handshake makes room for a new one; or else, for a client that has less than max_client_sessions, an idle
  // session of a client that has more. Otherwise the new one gets 503.
  std::size_t max_sessions = 10'000;
  std::size_t max_client_sessions = 2'500;
  std::chrono::milliseconds session_idle{30 * 60 * 1000};   // without a request or an open stream
  std::size_t max_session_events = 1'000;                   // kept for replay, in all streams of a session
  std::chrono::milliseconds finished_stream_grace{30'000};  // events are kept after their stream's answer
  std::size_t max_session_event_bytes = 4u << 20;
  std::size_t max_event_bytes = 256u << 20;  // of all sessions together
  std::chrono::milliseconds retry{1'000};    // told to clients that poll
  // Comments on quiet streams, pings on WebSockets; and an answer that takes longer becomes a stream.
  std::chrono::milliseconds keep_alive{15'000};
  std::chrono::milliseconds request_timeout{0};  // a request under way; 0: for ever
  bool websocket = true;
};

class Endpoint {
 public:
  static std::shared_ptr<Endpoint> create(Loop& loop, std::shared_ptr<Application> application,
                                          EndpointOptions options = EndpointOptions());
  virtual ~Endpoint() = default;

  // Streamable HTTP and WebSocket: for one path.
  virtual http::Handler handler() = 0;
  // The HTTP+SSE pair: the stream, and where its clients post to (`messages_path` as clients are told).
  virtual http::Handler sse_handler(std::string messages_path) = 0;
  virtual http::Handler messages_handler() = 0;

  virtual std::size_t sessions() const noexcept = 0;
  // From the call on, no session begins, and over HTTP no stream that only listens. The task ends the streams
  // that only listen, in slices. Requests under way go on; Server::drain() waits for those that came over
  // HTTP.
  virtual Task<void> wind_down() = 0;
  // Winds down, waits for what is under way in sessions and on WebSockets, and until its answers have left,
  // for `grace` at most; then closes. Beside Server::drain(), which knows nothing of WebSockets.
  virtual Task<void> finish(std::chrono::milliseconds grace) = 0;
  // Ends all sessions and streams at once. finish() with a grace of 0 lets the loop serve others meanwhile.
  virtual void close() = 0;
};

}  // namespace fairlead::transport
