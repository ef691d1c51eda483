// HttpClient: sends HTTP requests and streams their responses. It keeps idle connections for reuse, and
// handles proxies, redirects and authorization. Not thread-safe: all functions are called on one loop thread.
// Private to src/http and src/transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/redactor.hpp"
#include "fairlead/http/client_options.hpp"
#include "http/client_connection.hpp"
#include "http/client_proxy.hpp"
#include "http/repeated_head.hpp"
#include "http/url.hpp"

namespace fairlead::http {

class HttpClient;

// An exchange whose request was sent by a DirectExchange, and which HttpClient::send() continues.
struct BegunExchange {
  std::unique_ptr<HttpClientConnection> connection;  // has started to write the request
  ResponseParser parser;                             // of the part of the response that has been read
  std::string body;                                  // the data of the body in that part
  Result<void> parsed;                               // the result of the parser
};

// A request that the client sends.
struct ClientRequest {
  ClientRequest(std::string verb, Url target) : method(std::move(verb)), url(std::move(target)) {}

  std::string method;
  Url url;
  Headers headers;  // HttpClient adds Host, Content-Length and ClientOptions::headers
  std::vector<Bytes> body;
  std::span<const Bytes> shared_body;             // if not empty, it is sent instead of `body`
  std::shared_ptr<const void> shared_body_owner;  // keeps shared_body alive
  std::function<void()> on_written;  // called at most once, when the whole request is written to the socket
  // Time limit for the arrival of the response head, counted from the end of the request; 0: no limit.
  std::chrono::milliseconds response_timeout{0};

  std::unique_ptr<BegunExchange> begun;  // if not null, the request has been sent on its connection

  std::span<const Bytes> body_parts() const noexcept { return shared_body.empty() ? body : shared_body; }
};

// Returns the media type in Content-Type, without parameters.
std::string_view media_type_of(const Headers& headers) noexcept;

// Counts an exchange against ClientOptions::max_exchanges.
class ExchangePermit {
 public:
  explicit ExchangePermit(std::shared_ptr<HttpClient> client);
  ExchangePermit(ExchangePermit&&) noexcept = default;
  ~ExchangePermit() { release(); }
  void release() noexcept;
  // REQUIRES: not released.
  HttpClient& client() const noexcept { return *client_; }

 private:
  std::shared_ptr<HttpClient> client_;  // null: released
};

// A response: its head, and its body, which is read as it arrives. When the body has been read to its end,
// the connection is returned to the idle connections of the client. Destroying the response before that
// closes the connection.
class ClientResponse {
 public:
  // REQUIRES: `parser` has parsed the head of the response, and the data of `body` after it.
  ClientResponse(std::shared_ptr<HttpClient> client, std::unique_ptr<HttpClientConnection> connection,
                 ResponseParser parser, std::string body, std::shared_ptr<CancellableWaiter> waiter,
                 ExchangePermit permit);
  ~ClientResponse();

  int status() const noexcept { return parser_.head().status; }
  // Returns the reason phrase of the status line.
  const std::string& reason() const noexcept { return parser_.head().reason; }
  const Headers& headers() const noexcept { return parser_.head().headers; }
  // Returns the redactor to apply to text of this response that is quoted in errors.
  const Redactor& redactor() const noexcept;
  // Returns the media type in Content-Type, without parameters and in lower case.
  std::string media_type() const;
  // Returns whether media_type() is `type`, which is in lower case.
  bool has_media_type(std::string_view type) const noexcept;

  // Returns the body if it has been received completely, has at most `limit` bytes and no part of it was
  // returned before; otherwise nullopt. A later read() returns an empty piece.
  std::optional<std::string> extract_received_body(std::size_t limit);
  // Waits for the next piece of the body and returns it; returns an empty piece at the end of the body. Fails
  // with `closed` if the connection ends before the body does, and with the errors of
  // HttpClientConnection::read().
  Task<Result<Bytes>> read();
  // Reads and returns the rest of the body. Fails with `frame_too_large` if the rest has more than `limit`
  // bytes, and with the errors of read().
  Task<Result<std::string>> read_all(std::size_t limit);
  // From `deadline` on, read() and read_all() fail with `timeout`. By default they have no deadline.
  void set_deadline(Clock::time_point deadline) noexcept { deadline_ = deadline; }
  // Transfers the socket to the caller. Stores the bytes that have been read after the head in `read_ahead`.
  // REQUIRES: the status is 101.
  std::unique_ptr<ByteStream> upgrade(std::string& read_ahead);

 private:
  Task<Result<void>> read_more();
  void release_connection();

  std::shared_ptr<HttpClient> client_;
  // Returned to the client's idle connections at the end of the body. Null afterwards, and after a failed
  // read.
  std::unique_ptr<HttpClientConnection> connection_;
  ResponseParser parser_;
  std::string body_;  // the part of the body that has been received and not returned to the caller
  std::shared_ptr<CancellableWaiter> waiter_;
  ExchangePermit permit_;
  Clock::time_point deadline_ = Clock::time_point::max();
};

class HttpClient : public std::enable_shared_from_this<HttpClient> {
 public:
  // Fails with `validation` if a header in `options` has characters that cannot be sent, or if an environment
  // variable has an invalid URL of a proxy.
  static Result<std::shared_ptr<HttpClient>> create(Loop& loop, ClientOptions options);
  ~HttpClient();

  // Sends `request` and returns the response when its head has arrived. Succeeds also if the response has an
  // error status. Fails with `http_status` if the response is a redirect that is not followed, with
  // `invalid_content_type` if the response is compressed, with `resource_exhausted` if max_exchanges requests
  // are in progress, and with `cancelled` when `waiter` is cancelled.
  Task<Result<std::shared_ptr<ClientResponse>>> send(ClientRequest request,
                                                     std::shared_ptr<CancellableWaiter> waiter);

  // Appends the request line and the header fields of `request`, without Content-Length and without the empty
  // line at the end. Fails with `validation` if a field has control characters.
  Result<void> append_fields(std::string& head, const ClientRequest& request);

  // Closes the idle connections. From then on, connections are closed after their exchange instead of being
  // kept.
  void close();
  // Returns the number of idle connections to all servers.
  std::size_t idle_count() const noexcept;

  const ClientOptions& options() const noexcept { return options_; }
  // Returns a redactor for ClientOptions::secrets and for the values of the headers that are sent, because a
  // server may echo these.
  const Redactor& redactor() const noexcept { return redactor_; }

 private:
  friend class ClientResponse;
  friend class DirectExchange;
  friend class ExchangePermit;
  // The idle connections to one origin; the most recently used one is the last.
  struct IdleGroup {
    explicit IdleGroup(Url url) : origin(std::move(url)) {}
    Url origin;  // any URL of the origin
    std::vector<std::unique_ptr<HttpClientConnection>> connections;
  };
  // The part of a request's head that does not change from one request to the next.
  struct ConstantHead {
    std::string method;
    Url url;
    Headers fields;  // from Host to ClientOptions::headers
    std::string text;
  };
  using ResponseResult = Result<std::shared_ptr<ClientResponse>>;

  HttpClient(Loop& loop, ClientOptions options, Proxies proxies);

  // Adds the headers of ClientOptions::authorization, sends the request, and retries it once if on_challenge
  // requests that.
  Task<ResponseResult> send_authorized(ClientRequest& request, std::shared_ptr<CancellableWaiter> waiter);
  // Sends the request and reads the head of the response. Uses an idle connection to the origin, or opens a
  // connection. Sends the request twice if the server closes an idle connection just when the client reuses
  // it. REQUIRES: `request` and `waiter` outlive the task.
  Task<ResponseResult> exchange(ClientRequest& request, const std::shared_ptr<CancellableWaiter>& waiter);
  // Encodes the request and starts to write it.
  Result<void> start_request(HttpClientConnection& connection, const ClientRequest& request, bool reused);
  // Prepares a redirect: changes `request` to the one to send next. Fails if the redirect is not followed.
  Result<void> redirect(ClientRequest& request, const ClientResponse& response, int redirects) const;
  Task<Result<std::unique_ptr<HttpClientConnection>>> open_connection(
      Url url, std::shared_ptr<CancellableWaiter> waiter);
  // Connects to `endpoint`, or to the Unix socket of the options.
  Task<Result<UniqueFd>> open_socket(Url endpoint);
  Task<Result<UniqueFd>> open_tunnel(Url proxy, Url url, std::shared_ptr<CancellableWaiter> waiter);
  // Appends the head of the request to `head`.
  Result<void> append_head(std::string& head, const ClientRequest& request);
  const ConstantHead& constant_head(const ClientRequest& request);
  // Returns whether a proxy has to open a tunnel (CONNECT) for requests to `url`. Only http: requests need
  // none: they are sent to the proxy itself, with an absolute target.
  static bool needs_tunnel(const Url& url) noexcept { return url.scheme != "http"; }

  IdleGroup& idle_group(const Url& url);
  // Returns the most recently used idle connection to the origin of `url`; null if there is none.
  std::unique_ptr<HttpClientConnection> acquire_idle(const Url& url);
  void add_idle(std::unique_ptr<HttpClientConnection> connection);
  void remove_idle(const HttpClientConnection* idle);
  Result<std::shared_ptr<TlsContext>> tls_context();
  Error too_many_exchanges_error() const;

  Loop& loop_;
  ClientOptions options_;
  Proxies proxies_;
  Redactor redactor_;
  std::shared_ptr<TlsContext> tls_;
  std::vector<std::unique_ptr<IdleGroup>> idle_groups_;  // groups without connections stay
  std::optional<ConstantHead> constant_head_;            // of the last request
  RepeatedHead repeated_head_;                           // of the last small JSON response
  std::size_t exchanges_in_progress_ = 0;
  bool closed_ = false;
};

}  // namespace fairlead::http
