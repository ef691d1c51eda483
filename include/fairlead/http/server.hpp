// http::Server: an HTTP/1.1 server with routes. The handler of a route gets an Exchange for each complete
// request, and sends the response through it, at once or as a stream. The server handles sockets, TLS, limits
// and timeouts.
//
// Not thread-safe: the server calls handlers on its loop thread, and all methods must be called on that
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
#include "fairlead/rpc/rope.hpp"

namespace fairlead {
class ByteStream;  // internal: a socket, plain or TLS
}

namespace fairlead::http {

class Authenticator;

// What a handler derives from the head of a request and keeps in Request::attachment.
class HeadAttachment {
 public:
  virtual ~HeadAttachment() = default;
};

struct Request {
  std::string method;  // "POST"
  std::string target;  // path and query as in the request line: "/mcp?x=1"
  Headers headers;
  Bytes body;           // the complete body, with the chunked transfer coding removed
  std::string remote;   // address of the client, for logs: "127.0.0.1:4711"
  bool secure = false;  // whether the request was received over TLS
  // The identity of the client that the authenticator established. If the server has no authenticator:
  // anonymous, or on a Unix socket the user that runs the client's process. Never null in a handler.
  PrincipalPtr principal;
  // Set by a handler to facts that follow from method, target and headers alone. Null for a new head. If the
  // next request on the connection repeats the head, except for the digits of Content-Length, it has the same
  // attachment. The server may drop it while a response is streamed.
  mutable std::shared_ptr<const HeadAttachment> attachment;

  std::string_view path() const noexcept;   // the target without its query
  std::string_view query() const noexcept;  // the part of the target after `?`
};

struct Response {
  int status = 200;
  Headers headers;          // the server adds Content-Length, Date and Connection
  std::vector<Bytes> body;  // the parts of the body; they are sent with the head in one gathered write

  Response() {}  // NOLINT: not an aggregate, see StreamConnectOptions
  explicit Response(int code) : status(code) {}
  static Response json(int status, Bytes body);
  static Response text(int status, std::string_view body);
};

// One request and its response. The handler responds once: with respond(), or with start(), write() and
// finish(), or with upgrade(). If the last reference to an exchange is dropped before the handler has
// responded, the server logs an error and responds with 500. Calls after the response, or after the client
// has disconnected, have no effect.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const noexcept = 0;
  virtual Loop& loop() const noexcept = 0;

  virtual void respond(Response response) = 0;
  // Responds with `body` and no header field but Content-Type. Does the same as respond() with such a
  // Response, but at less cost.
  virtual void respond_with(int status, std::string_view content_type, const rpc::Rope& body);

  // start(), write() and finish() send a streamed response of unknown length, in chunks. The head is sent
  // with the data of the first write() or with finish(), but at the latest at the end of this turn of the
  // loop. Data that is available in the same turn is thus sent in one write.
  virtual void start(Response head) = 0;
  virtual void write(std::vector<Bytes> parts) = 0;
  virtual void finish() = 0;
  // Closes the connection without completing the response.
  virtual void abort() = 0;
  // Returns the number of bytes of a streamed response that have not been written to the socket yet.
  virtual std::size_t backlog() const noexcept = 0;

  // Responds with `head` (status 101) and transfers the socket to the caller, which continues with another
  // protocol. `read_ahead` has the bytes of the other protocol that the server has already read from the
  // socket. `stream` is null if the client has disconnected.
  struct Upgraded {
    std::unique_ptr<ByteStream> stream;
    std::string read_ahead;
  };
  virtual Upgraded upgrade(Response head) = 0;

  // Calls `callback` once, on the loop thread, when the client disconnects before the response is finished. A
  // client that closes its sending side (half-close) counts as disconnected. A client that sends further
  // requests on the connection (pipelining) does not.
  virtual void when_disconnected(std::move_only_function<void()> callback) = 0;
  virtual bool disconnected() const noexcept = 0;

  // Returns the client's account in the server's byte budget; null if the exchange has none.
  virtual std::shared_ptr<ByteAccount> account() const { return nullptr; }
  // Stops charging the body of the request to the client; a large head remains charged until the response. A
  // handler that uses the body for longer than until the response calls this and charges the body to
  // account() itself.
  virtual void release_body_charge() {}
};

// Called on the loop thread for each request to the path of a route.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct TlsFiles {
  std::string certificate;  // path of a PEM file with the certificate, followed by its chain
  std::string key;          // path of a PEM file with the private key
};

struct ServerOptions {
  ServerOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  // Limits. A comment such as "413" is the status of the response to a request that exceeds the limit; the
  // body of the response names the limit. A duration of 0 means no limit.
  std::size_t max_body_bytes = 4u << 20;  // 413
  // Limits the memory for requests and responses. Requests are charged to this budget until they have a
  // response, and responses until the client has read them. A request that exceeds the limit per client gets
  // 429, one that exceeds the limit of all clients together gets 503. Null: the server creates a budget with
  // the default limits. Several servers can share a budget.
  std::shared_ptr<ByteBudget> budget;
  std::size_t max_header_bytes = 32u << 10;  // request line and header fields: 431
  std::size_t max_connections = 10'000;      // connections beyond this number get 503 and are closed
  // When max_connections are open, a new connection from a network that has fewer connections than this
  // evicts an idle connection of a network that has more. A network is an IPv4 address or an IPv6 /64 prefix.
  std::size_t max_client_connections = 2'500;
  // Limits the unwritten bytes of one streamed response; the connection is closed when it is exceeded.
  std::size_t max_stream_backlog_bytes = 16u << 20;
  // Time from the first byte of the request head to its end: 408.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};  // without any further byte of the body: 408
  // A request whose body arrives slower than this, measured over each body_rate_window, gets 408. 0: no
  // minimum rate.
  std::size_t min_body_bytes_per_second = 1'000;
  std::chrono::milliseconds body_rate_window{10'000};
  std::chrono::milliseconds keep_alive_timeout{75'000};  // for the next request on an open connection: closed
  std::chrono::milliseconds write_stall{60'000};         // the client reads nothing for this long: closed
  std::chrono::milliseconds drain_grace{5'000};          // how long drain() waits for responses in progress
  // Authenticates every request on every route (see http/authenticator.hpp). Null: no authentication.
  std::shared_ptr<Authenticator> authenticator;
  std::chrono::milliseconds authentication_timeout{10'000};  // for one request: 503

  // Returns the response by which the server itself rejects a malformed or too large request, for paths whose
  // clients expect another form than a JSON-RPC error; nullopt for the others. `target` is empty if the
  // request line has not arrived. The status is that of the rejection.
  std::function<std::optional<Response>(std::string_view target, int status, std::string_view message)>
      rejection_response;

  unsigned socket_mode = 0600;  // permissions of the file of a Unix socket
  std::optional<TlsFiles> tls;
  // Hosts that requests may name in Host, without ports; an empty list allows every host. Requests for other
  // hosts get 403. If unset, a loopback listener allows localhost, 127.0.0.1 and [::1]; a Unix socket allows
  // every host; any other listener allows localhost and every IP address. IP addresses are safe, because a
  // web page that reaches this server by DNS rebinding sends its host name in Host.
  std::optional<std::vector<std::string>> allowed_hosts;
  // Origins of web pages that may send requests, such as "https://app.example"; "*" allows all. If there is a
  // list of allowed hosts, their origins are allowed too, with any port; otherwise the origin with the host
  // and port in Host is. Requests from other origins get 403. Responses to allowed origins have CORS headers.
  std::vector<std::string> allowed_origins;
  // Paths below which web pages of every origin may read. Their handlers also get preflight requests, and set
  // the CORS headers.
  std::vector<std::string> public_paths;
};

// Returns whether a server that listens on `address` is reachable from this machine only: a loopback address
// or a Unix socket. Fails like Server::listen() if `address` is malformed.
Result<bool> is_local_address(const std::string& address);

class Server {
 public:
  // `address` is "HOST:PORT" (port 0: any free port), "[::1]:80", or "unix:/PATH". "localhost:PORT" listens
  // on 127.0.0.1 and ::1. Fails with `validation` if the address is malformed or the TLS files are unusable,
  // and with `connection_failed` if the address cannot be bound.
  static Result<std::shared_ptr<Server>> listen(Loop& loop, const std::string& address,
                                                ServerOptions options = ServerOptions());
  virtual ~Server() = default;

  // Calls `handler` for requests to exactly this path or, if `path` ends in "/*", for requests to every path
  // below it. If several routes match, the one with the longest path is used. Requests that match no route
  // get 404.
  virtual void route(std::string path, Handler handler) = 0;
  // Returns the address that the server listens on, with the actual port: "127.0.0.1:8808".
  virtual std::string address() const = 0;
  // Returns the number of open connections. Upgraded connections are not counted.
  virtual std::size_t connection_count() const noexcept = 0;
  // Reloads the certificate and the key on another thread; new connections use them. If the files are
  // unusable, the call fails and the server continues to use the previous ones. Concurrent reloads take
  // effect in the order in which they started.
  virtual Task<Result<void>> reload_tls() = 0;
  // Changes ServerOptions::drain_grace for a later drain().
  virtual void set_drain_grace(std::chrono::milliseconds grace) = 0;
  // Stops accepting connections. Open connections are not affected.
  virtual void stop_accepting() = 0;
  // Stops accepting connections, waits up to drain_grace for responses in progress, then closes all
  // connections, in slices.
  virtual Task<void> drain() = 0;
  // Stops accepting connections and closes all open ones, within this call.
  virtual void close() = 0;
};

}  // namespace fairlead::http
