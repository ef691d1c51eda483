#include "http/client.hpp"

#include <algorithm>

#include "base/uri.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::http {

namespace {

constexpr int kMaxRedirects = 5;
constexpr std::size_t kUsualHeadBytes = 512;  // allocated at once for the head of a request

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Returns whether `text` has no control characters. A line end in a header would inject further header
// fields.
bool is_safe_in_header(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
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

// ---- responses -------------------------------------------------------------------------------------------

ClientResponse::ClientResponse(std::shared_ptr<HttpClient> client, std::string origin,
                               std::unique_ptr<HttpClientConnection> connection,
                               std::unique_ptr<ResponseParser> parser, std::string body,
                               std::shared_ptr<CancellableWaiter> waiter, std::shared_ptr<void> permit)
    : client_(std::move(client)),
      origin_(std::move(origin)),
      connection_(std::move(connection)),
      parser_(std::move(parser)),
      head_(parser_->extract_head()),
      body_(std::move(body)),
      waiter_(std::move(waiter)),
      permit_(std::move(permit)) {
  if (parser_->done() && head_.status != 101) release_connection();
}

ClientResponse::~ClientResponse() = default;

std::string ClientResponse::media_type() const {
  const std::string_view whole = headers().get("Content-Type");
  std::string type(whole.substr(0, whole.find(';')));
  while (type.ends_with(' ') || type.ends_with('\t')) type.pop_back();
  for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

void ClientResponse::release_connection() {
  if (!connection_) return;
  if (connection_->reusable && parser_->keep_alive() &&
      !equals_ignore_case(headers().get("Connection"), "close"))
    client_->add_idle(origin_, std::move(connection_));
  connection_.reset();
  permit_.reset();
}

Task<Result<void>> ClientResponse::read_more() {
  Result<void> read_result = co_await connection_->read(*parser_, body_, waiter_, deadline_);
  if (!read_result) {
    connection_.reset();
  } else if (parser_->done()) {
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
  read_ahead = parser_->extract_rest();
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

// A redirect is followed only if follow_redirects is set, the new URL has the same origin, and the status
// determines the method of the new request: 307 and 308 keep the method, 303 changes it to GET, and 301 and
// 302 are followed for GET.
Task<HttpClient::ResponseResult> HttpClient::send(ClientRequest request,
                                                  std::shared_ptr<CancellableWaiter> waiter) {
  const auto self = shared_from_this();
  for (int redirects = 0;; ++redirects) {
    ResponseResult response = co_await send_authorized(request, waiter);
    if (!response) co_return response;
    const int status = (*response)->status();
    if (is_compressed((*response)->headers())) {
      co_return Error(
          ErrorKind::invalid_content_type,
          request.url.redacted() + " answered with a body in encoding `" +
              redactor_.redact_excerpt((*response)->headers().get("Content-Encoding").substr(0, 50)) +
              "`, which the client did not accept");
    }
    if (!is_redirect(status)) co_return response;
    const std::string location((*response)->headers().get("Location"));
    const bool keeps_method = status == 307 || status == 308;
    const bool method_allowed = keeps_method || status == 303 || request.method == "GET";
    const Result<Url> next = request.url.resolve(location);
    if (!options_.follow_redirects || !method_allowed || !next || !next->same_origin(request.url) ||
        redirects == kMaxRedirects) {
      co_return redirect_error(request.url, status, redactor_.redact(location), options_.follow_redirects);
    }
    request.url = *next;
    if (keeps_method) continue;
    request.method = "GET";
    request.body.clear();
    request.headers.erase("Content-Type");
  }
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
    ResponseResult response = co_await send_on_idle_or_new_connection(request, waiter);
    if (!response || attempt > 0 || !authorization.on_challenge) co_return response;
    const int status = (*response)->status();
    if (status != 401 && status != 403) co_return response;
    Headers headers = (*response)->headers();
    const Result<bool> retry = co_await authorization.on_challenge(status, std::move(headers));
    if (!retry) co_return retry.error();
    if (!*retry) co_return response;
  }
}

// Sends a request on an idle connection, or on a new one if no connection to this origin is idle. The server
// may close an idle connection just when the client reuses it: if no byte of the response has arrived, the
// request counts as not processed and is retried once, on a new connection.
Task<HttpClient::ResponseResult> HttpClient::send_on_idle_or_new_connection(
    ClientRequest& request, std::shared_ptr<CancellableWaiter> waiter) {
  Result<std::shared_ptr<void>> permit = acquire_exchange_permit();
  if (!permit) co_return permit.error();
  bool retry_safe = false;
  if (std::unique_ptr<HttpClientConnection> idle = acquire_idle(request.url.origin())) {
    ResponseResult response =
        co_await send_and_read_head(std::move(idle), request, waiter, *permit, retry_safe);
    if (response || !retry_safe) co_return response;
    options_.log.debug("the server closed an idle connection; retrying the request on a new one",
                       {{"url", request.url.redacted()}});
  }
  Result<std::unique_ptr<HttpClientConnection>> connection = co_await open_connection(request.url, waiter);
  if (!connection) co_return connection.error();
  if (waiter->cancelled()) co_return waiter->cancelled_error();
  ResponseResult response =
      co_await send_and_read_head(std::move(*connection), request, waiter, *permit, retry_safe);
  co_return response;
}

Task<HttpClient::ResponseResult> HttpClient::send_and_read_head(
    std::unique_ptr<HttpClientConnection> connection, ClientRequest& request,
    std::shared_ptr<CancellableWaiter> waiter, std::shared_ptr<void> permit, bool& retry_safe) {
  Result<std::string> head = encode_head(request);
  if (!head) co_return head.error();
  const Limits& limits = options_.limits;
  const bool reused = std::exchange(connection->used, true);
  // The first write on a TLS connection includes the handshake, which connect_timeout limits.
  const std::chrono::milliseconds stall = reused || !request.url.secure()
                                              ? limits.write_stall
                                              : std::min(limits.write_stall, limits.connect_timeout);
  const Result<void> written = co_await connection->write(std::move(*head), request.body, waiter, stall);
  if (waiter->cancelled()) co_return waiter->cancelled_error();
  if (written && request.on_written) std::exchange(request.on_written, nullptr)();
  // The response is read even if writing the request failed: a server that rejects a request without reading
  // all of it may have sent a response before it closed the connection.
  auto parser = std::make_unique<ResponseParser>();
  std::string body;
  const Clock::time_point deadline = request.response_timeout.count() > 0
                                         ? Clock::now() + request.response_timeout
                                         : Clock::time_point::max();
  while (!parser->has_head()) {
    Task<Result<void>> reading = connection->read(*parser, body, waiter, written ? deadline : Clock::now());
    const Result<void> read_result = co_await reading;
    if (read_result) continue;
    if (waiter->cancelled()) co_return waiter->cancelled_error();
    const Error& problem = written ? read_result.error() : written.error();
    retry_safe = reused && !parser->started() && problem.kind() != ErrorKind::timeout;
    if (problem.kind() == ErrorKind::connection_failed || problem.kind() == ErrorKind::timeout)
      co_return problem;
    co_return Error(problem.kind(), request.url.origin() + ": " + problem.message());
  }
  connection->reusable = written.has_value();
  co_return std::make_shared<ClientResponse>(shared_from_this(), request.url.origin(), std::move(connection),
                                             std::move(parser), std::move(body), waiter, std::move(permit));
}

Result<std::string> HttpClient::encode_head(const ClientRequest& request) const {
  const bool absolute = proxies_.for_url(request.url) && !needs_tunnel(request.url);
  std::size_t size = 0;
  for (const Bytes& part : request.body) size += part.size();
  Headers fields{{"Host", request.url.host_header()}, {"User-Agent", "fairlead"}};
  if (absolute && !proxies_.for_url(request.url)->user_info.empty())
    fields.add("Proxy-Authorization",
               "Basic " + base64_encode(percent_decode_lenient(proxies_.for_url(request.url)->user_info)));
  if (size > 0 || request.method == "POST") fields.add("Content-Length", std::to_string(size));
  for (const auto& [name, value] : options_.headers) fields.set(name, value);
  for (const auto& [name, value] : request.headers) fields.set(name, value);

  std::string head;
  head.reserve(kUsualHeadBytes);
  head.append(request.method).append(" ");
  head.append(absolute ? request.url.text() : request.url.target).append(" HTTP/1.1\r\n");
  for (const auto& [name, value] : fields) {
    if (!is_safe_in_header(name) || !is_safe_in_header(value))
      return Error(ErrorKind::validation,
                   "the header " + std::string(name.substr(0, 50)) + " has control characters");
    head.append(name).append(": ").append(value).append("\r\n");
  }
  head += "\r\n";
  return head;
}

}  // namespace fairlead::http
