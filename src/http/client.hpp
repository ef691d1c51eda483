// HttpClient: sends HTTP requests and streams their responses. It keeps idle connections for reuse, and
// handles proxies, redirects and authorization. Not thread-safe: all functions are called on one loop thread.
// Private to src/http and src/transport.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/base/redactor.hpp"
#include "fairlead/http/client_options.hpp"
#include "http/client_connection.hpp"
#include "http/client_proxy.hpp"
#include "http/url.hpp"

namespace fairlead::http {

class HttpClient;

// A request that the client sends.
struct ClientRequest {
  ClientRequest(std::string verb, Url target) : method(std::move(verb)), url(std::move(target)) {}

  std::string method;
  Url url;
  Headers headers;  // HttpClient adds Host, Content-Length and ClientOptions::headers
  std::vector<Bytes> body;
  std::function<void()> on_written;  // called at most once, when the whole request is written to the socket
  // Time limit for the arrival of the response head, counted from the end of the request; 0: no limit.
  std::chrono::milliseconds response_timeout{0};
};

// A response: its head, and its body, which is read as it arrives. When the body has been read to its end,
// the connection is returned to the idle connections of the client. Destroying the response before that
// closes the connection.
class ClientResponse {
 public:
  ClientResponse(std::shared_ptr<HttpClient> client, std::string origin,
                 std::unique_ptr<HttpClientConnection> connection, std::unique_ptr<ResponseParser> parser,
                 std::string body, std::shared_ptr<CancellableWaiter> waiter, std::shared_ptr<void> permit);
  ~ClientResponse();

  int status() const noexcept { return head_.status; }
  // Returns the reason phrase of the status line.
  const std::string& reason() const noexcept { return head_.reason; }
  const Headers& headers() const noexcept { return head_.headers; }
  // Returns the redactor to apply to text of this response that is quoted in errors.
  const Redactor& redactor() const noexcept;
  // Returns the media type in Content-Type, without parameters and in lower case.
  std::string media_type() const;

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
  std::string origin_;  // of the server
  // Returned to the client's idle connections at the end of the body. Null afterwards, and after a failed
  // read.
  std::unique_ptr<HttpClientConnection> connection_;
  std::unique_ptr<ResponseParser> parser_;
  ResponseHead head_;
  std::string body_;  // the part of the body that has been received and not returned to the caller
  std::shared_ptr<CancellableWaiter> waiter_;
  std::shared_ptr<void> permit_;  // counts this exchange against max_exchanges
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
  using IdleConnections = std::vector<std::unique_ptr<HttpClientConnection>>;
  using ResponseResult = Result<std::shared_ptr<ClientResponse>>;

  HttpClient(Loop& loop, ClientOptions options, Proxies proxies);

  // Adds the headers of ClientOptions::authorization, sends the request, and retries it once if on_challenge
  // requests that.
  Task<ResponseResult> send_authorized(ClientRequest& request, std::shared_ptr<CancellableWaiter> waiter);
  // Sends the request once, or twice if the server closes an idle connection just when the client reuses it.
  Task<ResponseResult> send_on_idle_or_new_connection(ClientRequest& request,
                                                      std::shared_ptr<CancellableWaiter> waiter);
  // Sends the request on `connection` and reads the head of the response. If no response
  // arrives, sets `retry_safe` to whether the request may be sent again on a new connection.
  Task<ResponseResult> send_and_read_head(std::unique_ptr<HttpClientConnection> connection,
                                          ClientRequest& request, std::shared_ptr<CancellableWaiter> waiter,
                                          std::shared_ptr<void> permit, bool& retry_safe);
  Task<Result<std::unique_ptr<HttpClientConnection>>> open_connection(
      Url url, std::shared_ptr<CancellableWaiter> waiter);
  // Connects to `endpoint`, or to the Unix socket of the options.
  Task<Result<UniqueFd>> open_socket(Url endpoint);
  Task<Result<UniqueFd>> open_tunnel(Url proxy, Url url, std::shared_ptr<CancellableWaiter> waiter);
  Result<std::string> encode_head(const ClientRequest& request) const;
  // Returns whether a proxy has to open a tunnel (CONNECT) for requests to `url`. Only http: requests need
  // none: they are sent to the proxy itself, with an absolute target.
  static bool needs_tunnel(const Url& url) noexcept { return url.scheme != "http"; }

  // Returns the most recently used idle connection to `origin`; null if there is none.
  std::unique_ptr<HttpClientConnection> acquire_idle(const std::string& origin);
  void add_idle(const std::string& origin, std::unique_ptr<HttpClientConnection> connection);
  void remove_idle(const HttpClientConnection* idle);
  Result<std::shared_ptr<TlsContext>> tls_context();
  // Returns a permit for one exchange. Fails with `resource_exhausted` if max_exchanges permits are held.
  Result<std::shared_ptr<void>> acquire_exchange_permit();

  Loop& loop_;
  ClientOptions options_;
  Proxies proxies_;
  Redactor redactor_;
  std::shared_ptr<TlsContext> tls_;
  // The idle connections by origin; the most recently used one is the last. Origins without connections stay.
  std::map<std::string, IdleConnections> idle_connections_;
  std::size_t exchanges_in_progress_ = 0;
  bool closed_ = false;
};

}  // namespace fairlead::http
