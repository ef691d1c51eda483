// HttpClient: makes HTTP requests and hands their answers out as they come. Connections are kept and used
// again; proxies, redirects and authorization are its business. It lives on one loop. Private to the layer.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/base/redactor.hpp"
#include "fairlead/http/client_options.hpp"
#include "http/client_proxy.hpp"
#include "http/client_wire.hpp"
#include "http/url.hpp"

namespace fairlead::http {

class HttpClient;

// A request to be made.
struct Outgoing {
  Outgoing(std::string verb, Url to) : method(std::move(verb)), url(std::move(to)) {}

  std::string method;
  Url url;
  Headers headers;  // Host and Content-Length are written by the client
  std::vector<Bytes> body;
  std::function<void()> written;  // called, once at most, when the operating system has all of it
  // How long the head of the answer may take; 0: for ever.
  std::chrono::milliseconds response_timeout{0};
};

// An answer: its head, and its body as it comes. Read to its end it leaves its connection to others; let go
// of before, it closes it.
class Incoming {
 public:
  Incoming(std::shared_ptr<HttpClient> client, std::string origin, std::unique_ptr<Wire> wire,
           std::unique_ptr<ResponseParser> parser, std::string body, std::shared_ptr<Interrupt> interrupt,
           std::shared_ptr<void> place);
  ~Incoming();

  int status() const noexcept { return head_.status; }
  const std::string& reason() const noexcept { return head_.reason; }
  const Headers& headers() const noexcept { return head_.headers; }
  // What an error must not show of this answer.
  const Redactor& redactor() const noexcept;
  // Of the Content-Type, without parameters and in lower case.
  std::string media_type() const;

  // The next piece of the body; empty at its end. Errors: closed when it is cut, and those of reading.
  Task<Result<Bytes>> read();
  // All that is left. Kind frame_too_large when that is over `limit`.
  Task<Result<std::string>> read_all(std::size_t limit);
  // Until when reading may take; for ever unless said otherwise.
  void set_deadline(Clock::time_point until) noexcept { until_ = until; }
  // The socket, and what was read beyond the head of the answer (101).
  std::unique_ptr<ByteStream> upgrade(std::string& early);

 private:
  Task<Result<void>> read_more();
  void let_go();

  std::shared_ptr<HttpClient> client_;
  std::string origin_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<ResponseParser> parser_;
  ResponseHead head_;
  std::string body_;
  std::shared_ptr<Interrupt> interrupt_;
  std::shared_ptr<void> place_;  // among max_exchanges
  Clock::time_point until_ = Clock::time_point::max();
};

class HttpClient : public std::enable_shared_from_this<HttpClient> {
 public:
  // Kind validation when the options, or the environment's proxies, make no sense.
  static Result<std::shared_ptr<HttpClient>> create(Loop& loop, ClientOptions options);
  ~HttpClient();

  // To the head of the answer. An error status is no error here; a redirect that is not followed is one, of
  // kind http_status, and so is an answer that is compressed, of kind invalid_content_type.
  Task<Result<std::shared_ptr<Incoming>>> ask(Outgoing request, std::shared_ptr<Interrupt> interrupt);

  // Drops the connections that are kept.
  void close();
  std::size_t idle() const noexcept;

  const ClientOptions& options() const noexcept { return options_; }
  // The values of the headers that are sent: a server may repeat them.
  const Redactor& redactor() const noexcept { return redactor_; }

 private:
  friend class Incoming;
  struct Idle;
  using Answered = Result<std::shared_ptr<Incoming>>;

  HttpClient(Loop& loop, ClientOptions options, Proxies proxies);

  Task<Answered> ask_authorized(Outgoing& request, std::shared_ptr<Interrupt> interrupt);
  Task<Answered> ask_once(Outgoing& request, std::shared_ptr<Interrupt> interrupt);
  Task<Answered> exchange(std::unique_ptr<Wire> wire, Outgoing& request, std::shared_ptr<Interrupt> interrupt,
                          std::shared_ptr<void> place, bool& untouched);
  Task<Result<std::unique_ptr<Wire>>> open(Url url, std::shared_ptr<Interrupt> interrupt);
  Task<Result<UniqueFd>> through_proxy(Url proxy, Url url, std::shared_ptr<Interrupt> interrupt);
  Result<std::string> encode_head(const Outgoing& request) const;
  // A proxy is told the whole of a plain request, and asked for a tunnel for everything else.
  static bool needs_tunnel(const Url& url) noexcept { return url.scheme != "http"; }

  std::unique_ptr<Wire> take_idle(const std::string& origin);
  void keep(const std::string& origin, std::unique_ptr<Wire> wire);
  void drop(const std::string& origin, const Idle* idle);
  Result<std::shared_ptr<TlsContext>> tls();
  Result<std::shared_ptr<void>> take_place();

  Loop& loop_;
  ClientOptions options_;
  Proxies proxies_;
  Redactor redactor_;
  std::shared_ptr<TlsContext> tls_;
  std::map<std::string, std::list<std::unique_ptr<Idle>>> idle_;  // by origin; the latest last
  std::size_t under_way_ = 0;
  bool closed_ = false;
};

}  // namespace fairlead::http
