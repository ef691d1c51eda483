// http::Server: an HTTP/1.1 listener with routes. What hangs on a route sees whole requests and answers them
// through an Exchange, at once or as a stream; sockets, TLS, limits and timeouts are this file's business.
//
// Everything happens on the loop the server was made on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fairlead/base/byte_budget.hpp"
#include "fairlead/base/bytes.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/http/headers.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead {
class ByteStream;  // private: a socket, plain or TLS
}

namespace fairlead::http {

class Authenticator;

struct Request {
  std::string method;  // "POST"
  std::string target;  // as in the request line: "/mcp?x=1"
  Headers headers;
  Bytes body;          // whole, chunks taken apart
  std::string remote;  // who asks, for logs: "127.0.0.1:4711"
  bool secure = false;
  // The client, as the authenticator established it; without one anonymous, or the user at the other end of a
  // Unix socket. Never null in a handler.
  PrincipalPtr principal;

  std::string_view path() const noexcept;   // of the target, without the query
  std::string_view query() const noexcept;  // behind the `?`
};

struct Response {
  int status = 200;
  Headers headers;          // Content-Length, Date and Connection are written by the server
  std::vector<Bytes> body;  // sent in one gathered write with the head

  Response() {}  // NOLINT: not an aggregate, see ConnectOptions
  explicit Response(int code) : status(code) {}
  static Response json(int status, Bytes body);
  static Response text(int status, std::string_view body);
};

// One request and the way back to whoever asked. Answer it once: respond(), or start() … finish(), or
// upgrade(). An exchange let go of without an answer is answered with 500 and logged.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const noexcept = 0;
  virtual Loop& loop() const noexcept = 0;

  virtual void respond(Response response) = 0;

  // An answer of unknown length, in chunks. The head waits for the first write(), finish() or the end of this
  // turn of the loop, so that what is ready together leaves together.
  virtual void start(Response head) = 0;
  virtual void write(std::vector<Bytes> parts) = 0;
  virtual void finish() = 0;
  // Ends the connection in the midst of an answer.
  virtual void abort() = 0;
  // Bytes of this answer that the operating system has not taken yet.
  virtual std::size_t backlog() const noexcept = 0;

  // The socket itself, for what speaks another protocol from here on (101). `early` is what had been read
  // beyond the request. No stream: the client has gone.
  struct Upgraded {
    std::unique_ptr<ByteStream> stream;
    std::string early;
  };
  virtual Upgraded upgrade(Response head) = 0;

  // Called once, on the loop, when the client has gone before the answer was finished. Having finished
  // sending counts as having gone; further requests on the connection do not.
  virtual void when_gone(std::function<void()> told) = 0;
  virtual bool gone() const noexcept = 0;

  // What the client is charged with in the server's budget; null where there is none.
  virtual std::shared_ptr<ByteAccount> account() const { return nullptr; }
  // The body is no longer charged to it by this exchange, only a large head is: a handler that keeps the body
  // longer than the exchange, or shorter, charges it itself.
  virtual void release_charge() {}
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct TlsFiles {
  std::string certificate;  // PEM, with its chain
  std::string key;          // PEM
};

struct ServerOptions {
  ServerOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  Log log;
  // Limits; each refusal names its own. A time of 0 is none.
  std::size_t max_body_bytes = 4u << 20;  // 413
  // Charged with request bodies, until they are answered, and with unread answers: over the limit of a client
  // 429, over that of all clients 503. Absent: one with the default limits. Servers may share one.
  std::shared_ptr<ByteBudget> budget;
  std::size_t max_header_bytes = 32u << 10;  // request line and fields: 431
  std::size_t max_connections = 10'000;      // a further connection gets 503 and is closed
  // When max_connections are open, a newcomer from an address with fewer than this gets the place of an idle
  // connection from an address with more.
  std::size_t max_client_connections = 2'500;
  std::size_t max_stream_backlog_bytes = 16u << 20;  // of one answer: a client that does not read loses it
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the end of the head: 408
  std::chrono::milliseconds body_timeout{30'000};    // without a byte of the body: 408
  // A body that is slower than this, measured over each body_rate_window, gets 408. 0: any rate will do.
  std::size_t min_body_bytes_per_second = 1'000;
  std::chrono::milliseconds body_rate_window{10'000};
  std::chrono::milliseconds keep_alive_timeout{75'000};  // between two requests
  std::chrono::milliseconds write_stall{60'000};         // the client takes nothing at all for this long
  std::chrono::milliseconds drain_grace{5'000};
  // Asked for every request on every route (http/authenticator.hpp). Absent: every request is let in.
  std::shared_ptr<Authenticator> authenticator;
  std::chrono::milliseconds authentication_timeout{10'000};  // 503

  unsigned socket_mode = 0600;  // permissions of a Unix socket's file
  std::optional<TlsFiles> tls;
  // Names this server answers to, without ports; an empty list: any name. Requests for others are refused
  // with 403. Unset, a loopback listener answers to localhost, 127.0.0.1 and [::1], a Unix socket to any
  // name, and another listener to every IP address and to localhost: a page that DNS rebinding has led here
  // comes with a name.
  std::optional<std::vector<std::string>> allowed_hosts;
  // Origins of pages that may ask, as "https://app.example"; "*": all. Those of the allowed hosts may, in any
  // port (where hosts are not listed: those of the host and port that are asked); others are refused with
  // 403. CORS headers are sent for the ones that may.
  std::vector<std::string> allowed_origins;
};

// Whether only this machine can reach a server that listens on `address`: a loopback address or a Unix
// socket. Fails like Server::listen() when it is not an address.
Result<bool> is_local_address(const std::string& address);

class Server {
 public:
  // `address` is "HOST:PORT" (port 0: any), "[::1]:80", or "unix:/PATH". "localhost:P" listens on both
  // loopbacks. Kind connection_failed when it cannot be had.
  static Result<std::shared_ptr<Server>> listen(Loop& loop, const std::string& address,
                                                ServerOptions options = ServerOptions());
  virtual ~Server() = default;

  // Exactly this path, or, when it ends in "/*", everything below. The longest match wins; nothing: 404.
  virtual void route(std::string path, Handler handler) = 0;
  // Where it listens, with the real port: "127.0.0.1:8808".
  virtual std::string address() const = 0;
  // Open, without those that were upgraded.
  virtual std::size_t connections() const noexcept = 0;
  // Reads certificate and key again, on another thread; new connections have them. The old ones stay when
  // these are unusable. Reloads take effect in the order in which they began.
  virtual Task<Result<void>> reload_tls() = 0;
  // Accepts no more connections. Those that are open go on.
  virtual void stop_accepting() = 0;
  // Stops accepting, lets answers under way finish for drain_grace at most, then closes, in slices.
  virtual Task<void> drain() = 0;
  virtual void close() = 0;
};

}  // namespace fairlead::http
