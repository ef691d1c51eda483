#include "http/client.hpp"

#include <algorithm>

#include "base/uri.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::http {

namespace {

constexpr int kMostRedirects = 5;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Nothing that comes from elsewhere may end a line of ours.
bool is_safe(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

bool is_compressed(const Headers& headers) {
  const std::string_view encoding = headers.get("Content-Encoding");
  return !encoding.empty() && !same_name(encoding, "identity");
}

// A value such as `Bearer …` is a secret as a whole and without its scheme.
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

Error redirected(const Url& from, int status, std::string_view location, bool follow) {
  const std::string why = follow ? " which is not followed" : "; redirects are not followed";
  return Error(ErrorKind::http_status, from.shown() + " answered " + std::to_string(status) +
                                           ", a redirect to " + std::string(location.substr(0, 200)) + why)
      .with([&](ErrorDetail& detail) { detail.http_status = status; });
}

}  // namespace

// ---- answers ---------------------------------------------------------------------------------------------

Incoming::Incoming(std::shared_ptr<HttpClient> client, std::string origin, std::unique_ptr<Wire> wire,
                   std::unique_ptr<ResponseParser> parser, std::string body,
                   std::shared_ptr<Interrupt> interrupt, std::shared_ptr<void> place)
    : client_(std::move(client)),
      origin_(std::move(origin)),
      wire_(std::move(wire)),
      parser_(std::move(parser)),
      head_(parser_->take_head()),
      body_(std::move(body)),
      interrupt_(std::move(interrupt)),
      place_(std::move(place)) {
  if (parser_->done() && head_.status != 101) let_go();
}

Incoming::~Incoming() = default;

std::string Incoming::media_type() const {
  const std::string_view whole = headers().get("Content-Type");
  std::string type(whole.substr(0, whole.find(';')));
  while (type.ends_with(' ') || type.ends_with('\t')) type.pop_back();
  for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

void Incoming::let_go() {
  if (!wire_) return;
  if (wire_->reusable && parser_->keep_alive() && !same_name(headers().get("Connection"), "close"))
    client_->keep(origin_, std::move(wire_));
  wire_.reset();
  place_.reset();
}

Task<Result<void>> Incoming::read_more() {
  Task<Result<void>> reading = wire_->read(*parser_, body_, interrupt_, until_);
  Result<void> got = co_await reading;
  if (!got) {
    wire_.reset();
  } else if (parser_->done()) {
    let_go();
  }
  co_return got;
}

Task<Result<Bytes>> Incoming::read() {
  while (body_.empty() && wire_) {
    Task<Result<void>> reading = read_more();
    const Result<void> got = co_await reading;
    if (!got) co_return got.error();
  }
  co_return Bytes::adopt(std::exchange(body_, std::string()));
}

Task<Result<std::string>> Incoming::read_all(std::size_t limit) {
  while (wire_ && body_.size() <= limit) {
    Task<Result<void>> reading = read_more();
    const Result<void> got = co_await reading;
    if (!got) co_return got.error();
  }
  if (body_.size() > limit) {
    wire_.reset();
    co_return Error(ErrorKind::frame_too_large,
                    "the answer is over max_response_bytes (" + std::to_string(limit) + ")");
  }
  co_return std::exchange(body_, std::string());
}

const Redactor& Incoming::redactor() const noexcept {
  return client_->redactor();
}

std::unique_ptr<ByteStream> Incoming::upgrade(std::string& early) {
  early = parser_->take_rest();
  return wire_->release();
}

// ---- requests --------------------------------------------------------------------------------------------

Result<std::shared_ptr<HttpClient>> HttpClient::create(Loop& loop, ClientOptions options) {
  for (const auto& [name, value] : options.headers) {
    if (name.empty() || name.find_first_of(" \t:\r\n") != std::string::npos || !is_safe(name) ||
        !is_safe(value))
      return Error(ErrorKind::validation, "`" + std::string(name) + "` is not a header that can be sent");
  }
  Result<Proxies> proxies = options.proxies_from_environment ? Proxies::from_environment() : Proxies();
  if (!proxies) return proxies.error();
  std::shared_ptr<HttpClient> client(new HttpClient(loop, std::move(options), std::move(*proxies)));
  client->redactor_ = redactor_of(client->options_);
  return client;
}

// Redirects are followed only where asked for, within the origin, and with the method they were meant for.
Task<HttpClient::Answered> HttpClient::ask(Outgoing request, std::shared_ptr<Interrupt> interrupt) {
  const auto self = shared_from_this();
  for (int redirects = 0;; ++redirects) {
    Task<Answered> asking = ask_authorized(request, interrupt);
    Answered answer = co_await asking;
    if (!answer) co_return answer;
    const int status = (*answer)->status();
    if (is_compressed((*answer)->headers())) {
      co_return Error(
          ErrorKind::invalid_content_type,
          request.url.shown() + " answered with a body in encoding `" +
              redactor_.redact_excerpt((*answer)->headers().get("Content-Encoding").substr(0, 50)) +
              "`, which was not asked for");
    }
    if (!is_redirect(status)) co_return answer;
    const std::string location((*answer)->headers().get("Location"));
    const bool keeps_method = status == 307 || status == 308;
    const bool fits = keeps_method || status == 303 || request.method == "GET";
    const Result<Url> next = request.url.resolve(location);
    if (!options_.follow_redirects || !fits || !next || !next->same_origin(request.url) ||
        redirects == kMostRedirects) {
      co_return redirected(request.url, status, redactor_.redact(location), options_.follow_redirects);
    }
    request.url = *next;
    if (keeps_method) continue;
    request.method = "GET";
    request.body.clear();
    request.headers.erase("Content-Type");
  }
}

Task<HttpClient::Answered> HttpClient::ask_authorized(Outgoing& request,
                                                      std::shared_ptr<Interrupt> interrupt) {
  const ClientOptions::Authorization& authorization = options_.authorization;
  for (int round = 0;; ++round) {
    if (authorization.headers) {
      Task<Result<Headers>> authorizing = authorization.headers(request.method, request.url.text());
      const Result<Headers> extra = co_await authorizing;
      if (!extra) co_return extra.error();
      for (const auto& [name, value] : *extra) request.headers.set(name, value);
      redactor_ = redactor_of(options_, *extra);
    }
    Task<Answered> asking = ask_once(request, interrupt);
    Answered answer = co_await asking;
    if (!answer || round > 0 || !authorization.challenged) co_return answer;
    const int status = (*answer)->status();
    if (status != 401 && status != 403) co_return answer;
    Headers headers = (*answer)->headers();
    Task<Result<bool>> challenging = authorization.challenged(status, std::move(headers));
    const Result<bool> again = co_await challenging;
    if (!again) co_return again.error();
    if (!*again) co_return answer;
  }
}

// A connection that was kept may have been given up by the server at the very moment it is used again. Nobody
// has seen the request then, and it is made once more, on a new one.
Task<HttpClient::Answered> HttpClient::ask_once(Outgoing& request, std::shared_ptr<Interrupt> interrupt) {
  Result<std::shared_ptr<void>> place = take_place();
  if (!place) co_return place.error();
  bool untouched = false;
  if (std::unique_ptr<Wire> kept = take_idle(request.url.origin())) {
    Task<Answered> exchanging = exchange(std::move(kept), request, interrupt, *place, untouched);
    Answered answer = co_await exchanging;
    if (answer || !untouched) co_return answer;
    options_.log.debug("a kept connection was gone; the request is made again",
                       {{"url", request.url.shown()}});
  }
  Task<Result<std::unique_ptr<Wire>>> opening = open(request.url, interrupt);
  Result<std::unique_ptr<Wire>> wire = co_await opening;
  if (!wire) co_return wire.error();
  if (interrupt->raised()) co_return interrupt->error();
  Task<Answered> exchanging = exchange(std::move(*wire), request, interrupt, *place, untouched);
  Answered answer = co_await exchanging;
  co_return answer;
}

Task<HttpClient::Answered> HttpClient::exchange(std::unique_ptr<Wire> wire, Outgoing& request,
                                                std::shared_ptr<Interrupt> interrupt,
                                                std::shared_ptr<void> place, bool& untouched) {
  Result<std::string> head = encode_head(request);
  if (!head) co_return head.error();
  const Limits& limits = options_.limits;
  const bool reused = std::exchange(wire->used, true);
  // A TLS handshake hides in the first write.
  const std::chrono::milliseconds stall = reused || !request.url.secure()
                                              ? limits.write_stall
                                              : std::min(limits.write_stall, limits.connect_timeout);
  Task<Result<void>> writing = wire->write(std::move(*head), request.body, interrupt, stall);
  const Result<void> written = co_await writing;
  if (interrupt->raised()) co_return interrupt->error();
  if (written && request.written) std::exchange(request.written, nullptr)();
  // A server that does not want to read all of it may have said why.
  auto parser = std::make_unique<ResponseParser>();
  std::string body;
  const Clock::time_point until = request.response_timeout.count() > 0
                                      ? Clock::now() + request.response_timeout
                                      : Clock::time_point::max();
  while (!parser->has_head()) {
    Task<Result<void>> reading = wire->read(*parser, body, interrupt, written ? until : Clock::now());
    const Result<void> got = co_await reading;
    if (got) continue;
    if (interrupt->raised()) co_return interrupt->error();
    const Error& problem = written ? got.error() : written.error();
    untouched = reused && !parser->started() && problem.kind() != ErrorKind::timeout;
    if (problem.kind() == ErrorKind::connection_failed || problem.kind() == ErrorKind::timeout)
      co_return problem;
    co_return Error(problem.kind(), request.url.origin() + ": " + problem.message());
  }
  wire->reusable = written.has_value();
  co_return std::make_shared<Incoming>(shared_from_this(), request.url.origin(), std::move(wire),
                                       std::move(parser), std::move(body), interrupt, std::move(place));
}

Result<std::string> HttpClient::encode_head(const Outgoing& request) const {
  const bool absolute = proxies_.for_url(request.url) && !needs_tunnel(request.url);
  std::size_t size = 0;
  for (const Bytes& part : request.body) size += part.size();
  Headers fields{{"Host", request.url.host_field()}, {"User-Agent", "fairlead"}};
  if (absolute && !proxies_.for_url(request.url)->user.empty())
    fields.add("Proxy-Authorization",
               "Basic " + base64_encode(percent_decoded(proxies_.for_url(request.url)->user)));
  if (size > 0 || request.method == "POST") fields.add("Content-Length", std::to_string(size));
  for (const auto& [name, value] : options_.headers) fields.set(name, value);
  for (const auto& [name, value] : request.headers) fields.set(name, value);

  std::string head =
      request.method + " " + (absolute ? request.url.text() : request.url.target) + " HTTP/1.1\r\n";
  for (const auto& [name, value] : fields) {
    if (!is_safe(name) || !is_safe(value))
      return Error(ErrorKind::validation,
                   "the header " + std::string(name.substr(0, 50)) + " has a value that cannot be sent");
    head.append(name).append(": ").append(value).append("\r\n");
  }
  head += "\r\n";
  return head;
}

}  // namespace fairlead::http
