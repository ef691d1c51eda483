#include "http/client.hpp"

#include <algorithm>

#include "base/lower_case.hpp"
#include "base/uri.hpp"
#include "fairlead/base/base64.hpp"
#include "fairlead/base/block_cache.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr int kMaxRedirects = 5;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Returns whether `text` has no control characters. A line end in a header would inject further header
// fields.
bool is_safe_in_header(std::string_view text) {
  return is_field_value(text);
}

void append_request_field(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

// Adds the origin to an error that does not name it.
Error exchange_error(const Url& url, const Error& problem) {
  if (problem.kind() == ErrorKind::connection_failed || problem.kind() == ErrorKind::timeout) return problem;
  return Error(problem.kind(), url.origin() + ": " + problem.message());
}

bool is_compressed(const Headers& headers) {
  const std::string_view encoding = headers.get("Content-Encoding");
  return !encoding.empty() && !equals_ignore_case(encoding, "identity");
}

// Returns a redactor for the secrets of a client. The value of each header is a secret, and so is the last
// word of the value: the token in `Bearer TOKEN`.
Redactor redactor_of(const ClientOptions& options, const Headers& authorization = {}) {
  std::vector<std::string> secrets = options.secrets;
  for (const Headers* headers : {&options.headers, &authorization}) {
    for (const auto& [name, value] : *headers) {
      secrets.emplace_back(value);
      secrets.emplace_back(value.substr(value.rfind(' ') + 1));
    }
  }
  return Redactor(secrets);
}

Error redirect_error(const Url& from, int status, std::string_view location, bool follow) {
  const std::string why = follow ? ", which is not followed" : "; redirects are not followed";
  return Error(ErrorKind::http_status, from.redacted() + " answered " + std::to_string(status) +
                                           ", a redirect to " + std::string(location.substr(0, 200)) + why)
      .with([&](ErrorDetail& detail) { detail.http_status = status; });
}

}  // namespace

std::string_view media_type_of(const Headers& headers) noexcept {
  const std::string_view whole = headers.get("Content-Type");
  return trim_blanks(whole.substr(0, whole.find(';')));
}

// ---- responses -------------------------------------------------------------------------------------------

ClientResponse::ClientResponse(std::shared_ptr<HttpClient> client,
                               std::unique_ptr<HttpClientConnection> connection, ResponseParser parser,
                               std::string body, std::shared_ptr<CancellableWaiter> waiter,
                               ExchangePermit permit)
    : client_(std::move(client)),
      connection_(std::move(connection)),
      parser_(std::move(parser)),
      body_(std::move(body)),
      waiter_(std::move(waiter)),
      permit_(std::move(permit)) {
  if (parser_.done() && status() != 101) release_connection();
}

ClientResponse::~ClientResponse() = default;

std::string ClientResponse::media_type() const {
  return lower_case(media_type_of(headers()));
}

bool ClientResponse::has_media_type(std::string_view type) const noexcept {
  return equals_ignore_case(media_type_of(headers()), type);
}

std::optional<std::string> ClientResponse::extract_received_body(std::size_t limit) {
  if (!parser_.done() || connection_ || body_.size() > limit) return std::nullopt;
  return std::exchange(body_, std::string());
}

void ClientResponse::release_connection() {
  if (!connection_) return;
  if (connection_->reusable && parser_.keep_alive()) client_->add_idle(std::move(connection_));
  connection_.reset();
  permit_.release();
}

Task<Result<void>> ClientResponse::read_more() {
  Result<void> read_result = co_await connection_->read(parser_, body_, waiter_, deadline_);
  if (!read_result) {
    connection_.reset();
  } else if (parser_.done()) {
    release_connection();
  }
  co_return read_result;
}

Task<Result<Bytes>> ClientResponse::read() {
  while (body_.empty() && connection_) {
    const Result<void> read_result = co_await read_more();
    if (!read_result) co_return read_result.error();
  }
  co_return Bytes::adopt(std::exchange(body_, std::string()));
}

Task<Result<std::string>> ClientResponse::read_all(std::size_t limit) {
  while (connection_ && body_.size() <= limit) {
    const Result<void> read_result = co_await read_more();
    if (!read_result) co_return read_result.error();
  }
  if (body_.size() > limit) {
    connection_.reset();
    co_return Error(ErrorKind::frame_too_large,
                    "the response body is over max_response_bytes (" + std::to_string(limit) + ")");
  }
  co_return std::exchange(body_, std::string());
}

const Redactor& ClientResponse::redactor() const noexcept {
  return client_->redactor();
}

std::unique_ptr<ByteStream> ClientResponse::upgrade(std::string& read_ahead) {
  read_ahead = parser_.extract_rest();
  return connection_->release();
}

// ---- requests --------------------------------------------------------------------------------------------

Result<std::shared_ptr<HttpClient>> HttpClient::create(Loop& loop, ClientOptions options) {
  for (const auto& [name, value] : options.headers) {
    if (name.empty() || name.find_first_of(" \t:\r\n") != std::string::npos || !is_safe_in_header(name) ||
        !is_safe_in_header(value))
      return Error(ErrorKind::validation,
                   "`" + std::string(name) +
                       "` is not a valid header: the name or value has characters that cannot be sent");
  }
  const bool direct = options.public_addresses_only || !options.unix_socket.empty();
  Result<Proxies> proxies =
      options.proxies_from_environment && !direct ? Proxies::from_environment() : Proxies();
  if (!proxies) return proxies.error();
  std::shared_ptr<HttpClient> client(new HttpClient(loop, std::move(options), std::move(*proxies)));
  client->redactor_ = redactor_of(client->options_);
  return client;
}

Task<HttpClient::ResponseResult> HttpClient::send(ClientRequest request,
                                                  std::shared_ptr<CancellableWaiter> waiter) {
  const auto self = shared_from_this();
  const bool authorized = options_.authorization.headers || options_.authorization.on_challenge;
  for (int redirects = 0;; ++redirects) {
    Task<ResponseResult> sending = authorized ? send_authorized(request, waiter) : exchange(request, waiter);
    ResponseResult response = co_await sending;
    if (!response) co_return response;
    if (is_compressed((*response)->headers())) {
      co_return Error(
          ErrorKind::invalid_content_type,
          request.url.redacted() + " answered with a body in encoding `" +
              redactor_.redact_excerpt((*response)->headers().get("Content-Encoding").substr(0, 50)) +
              "`, which the client did not accept");
    }
    if (!is_redirect((*response)->status())) co_return response;
    const Result<void> redirected = redirect(request, **response, redirects);
    if (!redirected) co_return redirected.error();
  }
}

// A redirect is followed only if follow_redirects is set, the new URL has the same origin, and the status
// determines the method of the new request: 307 and 308 keep the method, 303 changes it to GET, and 301 and
// 302 are followed for GET.
Result<void> HttpClient::redirect(ClientRequest& request, const ClientResponse& response,
                                  int redirects) const {
  const int status = response.status();
  const std::string location(response.headers().get("Location"));
  const bool keeps_method = status == 307 || status == 308;
  const bool method_allowed = keeps_method || status == 303 || request.method == "GET";
  const Result<Url> next = request.url.resolve(location);
  if (!options_.follow_redirects || !method_allowed || !next || !next->same_origin(request.url) ||
      redirects == kMaxRedirects)
    return redirect_error(request.url, status, redactor_.redact(location), options_.follow_redirects);
  request.url = *next;
  if (keeps_method) return {};
  request.method = "GET";
  request.body.clear();
  request.shared_body = {};
  request.headers.erase("Content-Type");
  return {};
}

Task<HttpClient::ResponseResult> HttpClient::send_authorized(ClientRequest& request,
                                                             std::shared_ptr<CancellableWaiter> waiter) {
  const ClientOptions::Authorization& authorization = options_.authorization;
  for (int attempt = 0;; ++attempt) {
    if (authorization.headers) {
      const Result<Headers> extra = co_await authorization.headers(request.method, request.url.text());
      if (!extra) co_return extra.error();
      for (const auto& [name, value] : *extra) request.headers.set(name, value);
      redactor_ = redactor_of(options_, *extra);
    }
    ResponseResult response = co_await exchange(request, waiter);
    if (!response || attempt > 0 || !authorization.on_challenge) co_return response;
    const int status = (*response)->status();
    if (status != 401 && status != 403) co_return response;
    Headers headers = (*response)->headers();
    const Result<bool> retry = co_await authorization.on_challenge(status, std::move(headers));
    if (!retry) co_return retry.error();
    if (!*retry) co_return response;
  }
}

// The server may close an idle connection just when the client reuses it: if no byte of the response has
// arrived, the request counts as not processed and is retried once, on a new connection.
Task<HttpClient::ResponseResult> HttpClient::exchange(ClientRequest& request,
                                                      const std::shared_ptr<CancellableWaiter>& waiter) {
  std::unique_ptr<BegunExchange> begun = std::move(request.begun);
  if (!begun && exchanges_in_progress_ >= options_.max_exchanges) co_return too_many_exchanges_error();
  ExchangePermit permit(shared_from_this());
  std::unique_ptr<HttpClientConnection> connection =
      begun ? std::move(begun->connection) : acquire_idle(request.url);
  while (true) {
    if (!connection) {
      Result<std::unique_ptr<HttpClientConnection>> opened = co_await open_connection(request.url, waiter);
      if (!opened) co_return opened.error();
      if (waiter->cancelled()) co_return waiter->cancelled_error();
      connection = std::move(*opened);
    }
    const bool reused = std::exchange(connection->used, true);
    if (!begun) {
      const Result<void> encoded = start_request(*connection, request, reused);
      if (!encoded) co_return encoded.error();
    }
    if (connection->writing()) co_await connection->await_written(waiter);
    if (waiter->cancelled()) co_return waiter->cancelled_error();
    const bool written = !connection->write_error();
    if (written && request.on_written) std::exchange(request.on_written, nullptr)();
    // The response is read even if writing the request failed: a server that rejects a request without
    // reading all of it may have sent a response before it closed the connection.
    ResponseParser parser;
    std::string body;
    Clock::time_point deadline = written ? Clock::time_point::max() : Clock::now();
    if (written && request.response_timeout.count() > 0) deadline = Clock::now() + request.response_timeout;
    Result<void> head_read;
    if (begun) {
      parser = std::move(begun->parser);
      body = std::move(begun->body);
      head_read = std::move(begun->parsed);
      begun.reset();
    } else if (written && connection->wake_on_input(waiter)) {
      const bool in_time = co_await waiter->wait(deadline);
      if (waiter->cancelled()) co_return waiter->cancelled_error();
      if (in_time) head_read = connection->read_available(parser, body).value_or(Result<void>());
    }
    while (head_read && !parser.has_head())
      head_read = co_await connection->read(parser, body, waiter, deadline);
    if (head_read) {
      connection->reusable = written;
      co_return make_cached<ClientResponse>(shared_from_this(), std::move(connection), std::move(parser),
                                            std::move(body), waiter, std::move(permit));
    }
    if (waiter->cancelled()) co_return waiter->cancelled_error();
    const Error problem = written ? head_read.error() : *connection->write_error();
    if (!reused || parser.started() || problem.kind() == ErrorKind::timeout)
      co_return exchange_error(request.url, problem);
    options_.log.debug("the server closed an idle connection; retrying the request on a new one",
                       {{"url", request.url.redacted()}});
    connection.reset();
  }
}

Result<void> HttpClient::start_request(HttpClientConnection& connection, const ClientRequest& request,
                                       bool reused) {
  connection.head_buffer().clear();
  const Result<void> encoded = append_head(connection.head_buffer(), request);
  if (!encoded) return encoded;
  // The first write on a TLS connection includes the handshake, which connect_timeout limits.
  const Limits& limits = options_.limits;
  const std::chrono::milliseconds stall = reused || !request.url.secure()
                                              ? limits.write_stall
                                              : std::min(limits.write_stall, limits.connect_timeout);
  connection.start_write(request.body_parts(), stall);
  return {};
}

// ---- heads of requests -----------------------------------------------------------------------------------

const HttpClient::ConstantHead& HttpClient::constant_head(const ClientRequest& request) {
  const Url& url = request.url;
  if (constant_head_ && constant_head_->method == request.method && constant_head_->url.same_origin(url) &&
      constant_head_->url.target == url.target)
    return *constant_head_;
  const Url* const proxy = proxies_.for_url(url);
  const bool absolute = proxy && !needs_tunnel(url);
  Headers fields{{"Host", url.host_header()}, {"User-Agent", "fairlead"}};
  if (absolute && !proxy->user_info.empty())
    fields.add("Proxy-Authorization", "Basic " + base64_encode(percent_decode_lenient(proxy->user_info)));
  for (const auto& [name, value] : options_.headers) fields.set(name, value);
  std::string text = request.method + " " + (absolute ? url.text() : url.target) + " HTTP/1.1\r\n";
  for (const auto& [name, value] : fields) append_request_field(text, name, value);
  return constant_head_.emplace(ConstantHead{request.method, url, std::move(fields), std::move(text)});
}

Result<void> HttpClient::append_fields(std::string& head, const ClientRequest& request) {
  const ConstantHead& constant = constant_head(request);
  bool overrides = false;  // a field of the request replaces a constant one
  for (const auto& [name, value] : request.headers) {
    if (!is_safe_in_header(name) || !is_safe_in_header(value))
      return Error(ErrorKind::validation,
                   "the header " + std::string(name.substr(0, 50)) + " has control characters");
    overrides = overrides || constant.fields.has(name);
  }
  if (overrides) {
    head.append(constant.text, 0, constant.text.find('\n') + 1);
    for (const auto& [name, value] : constant.fields) {
      if (!request.headers.has(name)) append_request_field(head, name, value);
    }
  } else {
    head += constant.text;
  }
  for (const auto& [name, value] : request.headers) append_request_field(head, name, value);
  return {};
}

Result<void> HttpClient::append_head(std::string& head, const ClientRequest& request) {
  Result<void> appended = append_fields(head, request);
  if (!appended) return appended;
  std::size_t size = 0;
  for (const Bytes& part : request.body_parts()) size += part.size();
  const bool sized = (size == 0 && request.method != "POST") || request.headers.has("Content-Length") ||
                     constant_head(request).fields.has("Content-Length");
  if (!sized) append_request_field(head, "Content-Length", std::to_string(size));
  head += "\r\n";
  return {};
}

}  // namespace fairlead::http
