#include "fairlead/transport/connect.hpp"

#include "connection/connect_stream.hpp"
#include "transport/streamable_connection.hpp"
#include "transport/websocket_connection.hpp"

namespace fairlead::transport {

namespace {

constexpr std::chrono::milliseconds kKeepAlive{30'000};  // between the pings of a WebSocket
constexpr std::string_view kSubprotocol = "mcp";

// Why an answer to a WebSocket handshake is none.
std::optional<Error> handshake_problem(const http::Url& url, const http::Incoming& incoming,
                                       const std::string& key) {
  if (incoming.status() != 101) return status_error(url, incoming, "a WebSocket was asked for");
  const http::Headers& headers = incoming.headers();
  const std::string_view chosen = headers.get("Sec-WebSocket-Protocol");
  const bool good = http::same_name(headers.get("Upgrade"), "websocket") &&
                    headers.get("Sec-WebSocket-Accept") == websocket::accept_of(key) &&
                    (chosen.empty() || chosen == kSubprotocol) && !headers.has("Sec-WebSocket-Extensions");
  if (good) return std::nullopt;
  return Error(ErrorKind::connection_failed, url.shown() + " answered the WebSocket handshake wrongly");
}

Task<ConnectResult> connect_websocket(Loop& loop, http::Url url, std::shared_ptr<http::HttpClient> client) {
  const std::string key = websocket::make_key();
  http::Outgoing request("GET", url);
  request.headers = http::Headers{{"Upgrade", "websocket"},
                                  {"Connection", "Upgrade"},
                                  {"Sec-WebSocket-Key", key},
                                  {"Sec-WebSocket-Version", "13"},
                                  {"Sec-WebSocket-Protocol", std::string(kSubprotocol)}};
  request.response_timeout = client->options().limits.connect_timeout;
  auto interrupt = std::make_shared<http::Interrupt>(loop);
  Task<Result<std::shared_ptr<http::Incoming>>> asking = client->ask(std::move(request), interrupt);
  const Result<std::shared_ptr<http::Incoming>> incoming = co_await asking;
  if (!incoming) co_return incoming.error();
  if (std::optional<Error> problem = handshake_problem(url, **incoming, key)) co_return *problem;
  std::string early;
  std::unique_ptr<ByteStream> stream = (*incoming)->upgrade(early);
  co_return WebSocketConnection::create(loop, std::move(stream), std::move(early), websocket::Role::client,
                                        client->options().limits, kKeepAlive);
}

}  // namespace

Task<ConnectResult> connect(Loop& loop, std::string uri, ConnectOptions options) {
  Result<Uri> parsed = Uri::parse(uri);
  if (!parsed) co_return parsed.error();
  if (parsed->scheme < Uri::Scheme::http) {
    fairlead::ConnectOptions base = options;
    Task<ConnectResult> connecting = connect_stream(loop, std::move(*parsed), std::move(base));
    ConnectResult made = co_await connecting;
    co_return made;
  }
  Result<http::Url> url = http::Url::parse(uri);
  if (!url) co_return url.error();
  if (!url->user.empty())
    co_return Error(ErrorKind::validation, "an address does not carry a user: send an Authorization header");
  const ReconnectLimits reconnect = options;
  Result<std::shared_ptr<http::HttpClient>> client = http::HttpClient::create(loop, std::move(options));
  if (!client) co_return client.error();
  if (url->scheme == "http" || url->scheme == "https")
    co_return std::make_shared<StreamableConnection>(loop, std::move(*url), std::move(*client), reconnect);
  Task<ConnectResult> connecting = connect_websocket(loop, std::move(*url), std::move(*client));
  ConnectResult made = co_await connecting;
  co_return made;
}

}  // namespace fairlead::transport
