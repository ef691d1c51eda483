#include "cli/attach.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/read_file.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/client.hpp"
#include "transport/bridge.hpp"

namespace fairlead::cli {

namespace {

constexpr FileLimit kClientTokenLimit{"max_token_file_bytes", 4096};
constexpr char kTokenVariable[] = "FAIRLEAD_TOKEN";
constexpr std::string_view kDefaultPath = "/mcp";
constexpr std::string_view kPresencePath = "/attached";
// How long the first message of the client waits for the presence stream.
constexpr std::chrono::milliseconds kPresenceTimeout{2'000};
constexpr std::chrono::milliseconds kProbeTimeout{3'000};
constexpr std::chrono::milliseconds kMinPresenceDelay{200};
constexpr std::chrono::milliseconds kMaxPresenceDelay{30'000};

Error not_a_gateway_address(std::string_view text) {
  return Error(ErrorKind::validation,
               "`" + std::string(text) +
                   "` is not the address of a gateway: expected http://HOST:PORT/mcp, https://HOST/mcp, or "
                   "unix:/PATH for its Unix socket");
}

Result<AttachAddress> parse_unix_address(std::string_view text) {
  std::string_view path = text.substr(5);
  if (path.starts_with("///")) path.remove_prefix(2);
  std::string_view endpoint = kDefaultPath;
  // The log of a gateway names its endpoint as "unix:/PATH /mcp".
  for (const std::string_view separator : {"#", " "}) {
    const std::size_t at = path.find(std::string(separator) + "/");
    if (at == std::string_view::npos) continue;
    endpoint = path.substr(at + 1);
    path = path.substr(0, at);
  }
  if (path.size() < 2 || !path.starts_with('/')) return not_a_gateway_address(text);
  AttachAddress address;
  address.unix_socket = path;
  address.url = "http://localhost" + std::string(endpoint);
  const Result<http::Url> url = http::Url::parse(address.url);
  if (!url) return url.error();
  return address;
}

Task<Result<int>> health_status(Loop& loop, AttachAddress address) {
  http::ClientOptions options;
  options.unix_socket = address.unix_socket;
  options.limits.connect_timeout = kProbeTimeout;
  const Result<std::shared_ptr<http::HttpClient>> client = http::HttpClient::create(loop, options);
  if (!client) co_return client.error();
  Result<http::Url> url = http::Url::parse(address.url);
  if (!url) co_return url.error();
  url->target = "/health";
  http::ClientRequest request("GET", *url);
  request.response_timeout = kProbeTimeout;
  auto waiter = std::make_shared<http::CancellableWaiter>(loop);
  const auto response = co_await (*client)->send(std::move(request), waiter);
  (*client)->close();
  if (!response) co_return response.error();
  co_return (*response)->status();
}

}  // namespace

Result<AttachAddress> parse_attach_address(std::string_view text) {
  if (text.starts_with("unix:")) return parse_unix_address(text);
  Result<http::Url> url = http::Url::parse(text);
  if (!url || (url->scheme != "http" && url->scheme != "https")) return not_a_gateway_address(text);
  if (!url->user_info.empty())
    return Error(ErrorKind::validation,
                 "user info is not allowed in the address of a gateway: pass a token with --token-file or in "
                 "FAIRLEAD_TOKEN");
  if (url->target == "/") url->target = kDefaultPath;
  AttachAddress address;
  address.url = url->text();
  return address;
}

Result<std::string> read_client_token(const std::string& file) {
  if (file.empty()) {
    const char* const value = std::getenv(kTokenVariable);
    return std::string(value ? value : "");
  }
  Result<std::string> text = read_regular_file(file, kClientTokenLimit);
  if (!text) return Error(ErrorKind::validation, "--token-file " + file + ": " + text.error().message());
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return Error(ErrorKind::validation, "--token-file " + file + ": the file is empty");
  return text;
}

std::optional<int> probe_gateway(const AttachAddress& address) {
  Loop loop;
  const Result<int> status = loop.block_on(health_status(loop, address));
  return status ? std::optional<int>(*status) : std::nullopt;
}

// The presence stream: a request of its own, on a connection of its own.
struct Attachment::Presence {
  Presence(Loop& loop, http::Url target, std::shared_ptr<http::HttpClient> http)
      : url(std::move(target)),
        client(std::move(http)),
        waiter(std::make_shared<http::CancellableWaiter>(loop)) {}
  http::Url url;
  std::shared_ptr<http::HttpClient> client;
  std::shared_ptr<http::CancellableWaiter> waiter;
  Event tried;  // set when the first attempt has succeeded or failed
};

std::shared_ptr<Attachment> Attachment::start(std::shared_ptr<Connection> client, AttachOptions options) {
  std::shared_ptr<Attachment> attachment(new Attachment(std::move(client), std::move(options)));
  attachment->client_->loop().spawn(run(attachment));
  return attachment;
}

void Attachment::stop() {
  stopping_ = true;
  if (bridge_) bridge_->stop();
}

std::string Attachment::remedy_for(const Error& error) const {
  const std::string address =
      options_.address.unix_socket.empty() ? options_.address.url : "unix:" + options_.address.unix_socket;
  switch (error.kind()) {
    case ErrorKind::connection_failed:
    case ErrorKind::closed:
    case ErrorKind::io:
      return "Check whether the gateway runs (`fairlead serve`) and whether its address is " + address +
             ". The next request connects again.";
    case ErrorKind::authorization:
      return "Pass a token that may use this endpoint: set FAIRLEAD_TOKEN, or pass --token-file FILE.";
    default: return {};
  }
}

Task<void> Attachment::run(std::shared_ptr<Attachment> self) {
  Loop& loop = self->client_->loop();
  transport::ConnectOptions connect;
  connect.limits = self->options_.limits;
  connect.log = self->options_.log;
  connect.unix_socket = self->options_.address.unix_socket;
  connect.keep_server_stream = true;
  if (!self->options_.token.empty()) connect.headers.add("Authorization", "Bearer " + self->options_.token);
  connect.on_session_renewed = [weak = std::weak_ptr<Attachment>(self)] {
    const auto attachment = weak.lock();
    if (attachment && attachment->bridge_) attachment->bridge_->on_session_renewed();
  };
  if (!connect.unix_socket.empty()) {
    Result<http::Url> url = http::Url::parse("http://localhost" + std::string(kPresencePath));
    Result<std::shared_ptr<http::HttpClient>> client = http::HttpClient::create(loop, connect);
    if (url && client) {
      self->presence_ = std::make_shared<Presence>(loop, std::move(*url), std::move(*client));
      loop.spawn(keep_presence(self->presence_));
      const Clock::duration limit = kPresenceTimeout;
      static_cast<void>(co_await self->presence_->tried.wait(loop, limit));
    }
  }
  std::string url = self->options_.address.url;
  const ConnectResult server = co_await transport::connect(loop, url, connect);
  if (server) {
    transport::BridgeOptions options;
    options.limits = self->options_.limits;
    options.log = self->options_.log;
    options.remedy = [raw = self.get()](const Error& error) { return raw->remedy_for(error); };
    self->bridge_ = transport::Bridge::start(self->client_, *server, std::move(options));
    if (self->stopping_) self->bridge_->stop();
    co_await self->bridge_->finished().wait(loop);
  } else {
    self->options_.log.error("cannot attach", {{"reason", server.error().message()}});
    self->client_->close();
  }
  if (self->presence_) self->presence_->waiter->cancel();
  self->finished_.set();
}

Task<void> Attachment::keep_presence(std::shared_ptr<Presence> presence) {
  std::chrono::milliseconds delay = kMinPresenceDelay;
  while (!presence->waiter->cancelled()) {
    http::ClientRequest request("GET", presence->url);
    request.headers.add("Accept", "text/event-stream");
    const auto response = co_await presence->client->send(std::move(request), presence->waiter);
    presence->tried.set();
    if (response && (*response)->status() == 200) {
      delay = kMinPresenceDelay;
      bool open = true;
      while (open) {
        const Result<Bytes> piece = co_await (*response)->read();
        open = piece && !piece->empty();
      }
    } else if (response && (*response)->status() < 500) {
      break;  // a gateway that listens does not need to know
    }
    const bool slept = co_await presence->waiter->sleep(delay);
    if (!slept) break;
    delay = std::min(2 * delay, kMaxPresenceDelay);
  }
  presence->client->close();
}

}  // namespace fairlead::cli
