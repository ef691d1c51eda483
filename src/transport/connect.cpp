#include "fairlead/transport/connect.hpp"

#include "connection/connect_stream.hpp"
#include "transport/streamable_connection.hpp"
#include "transport/websocket_connection.hpp"

namespace fairlead::transport {

namespace {

// The interval of pings on WebSocket connections that connect() opens.
constexpr std::chrono::milliseconds kWebSocketPingInterval{30'000};
constexpr std::string_view kSubprotocol = "mcp";

// Returns the error to report if the response to a WebSocket handshake is invalid; nullopt if it is valid.
std::optional<Error> handshake_problem(const http::Url& url, const http::ClientResponse& response,
                                       const std::string& key) {
  if (response.status() != 101) return status_error(url, response, "expected 101 for a WebSocket handshake");
  const http::Headers& headers = response.headers();
  const std::string_view subprotocol = headers.get("Sec-WebSocket-Protocol");
  const bool valid = http::equals_ignore_case(headers.get("Upgrade"), "websocket") &&
                     headers.get("Sec-WebSocket-Accept") == websocket::accept_header_value(key) &&
                     (subprotocol.empty() || subprotocol == kSubprotocol) &&
                     !headers.has("Sec-WebSocket-Extensions");
  if (valid) return std::nullopt;
  return Error(ErrorKind::connection_failed,
               url.redacted() + " sent an invalid response to the WebSocket handshake");
}

Task<ConnectResult> connect_websocket(Loop& loop, http::Url url, std::shared_ptr<http::HttpClient> client) {
  const std::string key = websocket::make_client_key();
  http::ClientRequest request("GET", url);
  request.headers = http::Headers{{"Upgrade", "websocket"},
                                  {"Connection", "Upgrade"},
                                  {"Sec-WebSocket-Key", key},
                                  {"Sec-WebSocket-Version", "13"},
                                  {"Sec-WebSocket-Protocol", std::string(kSubprotocol)}};
  request.response_timeout = client->options().limits.connect_timeout;
  auto waiter = std::make_shared<http::CancellableWaiter>(loop);
  const Result<std::shared_ptr<http::ClientResponse>> response =
      co_await client->send(std::move(request), waiter);
  if (!response) co_return response.error();
  if (std::optional<Error> problem = handshake_problem(url, **response, key)) co_return *problem;
  std::string read_ahead;
  std::unique_ptr<ByteStream> stream = (*response)->upgrade(read_ahead);
  co_return WebSocketConnection::create(loop, std::move(stream), std::move(read_ahead),
                                        websocket::Role::client, client->options().limits,
                                        kWebSocketPingInterval);
}

}  // namespace

Task<ConnectResult> connect(Loop& loop, std::string uri, ConnectOptions options) {
  Result<Uri> parsed = Uri::parse(uri);
  if (!parsed) co_return parsed.error();
  if (parsed->scheme < Uri::Scheme::http) {
    if (options.public_addresses_only)
      co_return Error(ErrorKind::validation,
                      "only http, https, ws and wss addresses are allowed for this server");
    fairlead::StreamConnectOptions base = options;
    ConnectResult connection = co_await connect_stream(loop, std::move(*parsed), std::move(base));
    co_return connection;
  }
  Result<http::Url> url = http::Url::parse(uri);
  if (!url) co_return url.error();
  if (!url->user_info.empty())
    co_return Error(ErrorKind::validation,
                    "user info is not allowed in an address: send an Authorization header");
  const ReconnectLimits reconnect = options;
  Result<std::shared_ptr<http::HttpClient>> client = http::HttpClient::create(loop, std::move(options));
  if (!client) co_return client.error();
  if (url->scheme == "http" || url->scheme == "https")
    co_return std::make_shared<StreamableConnection>(loop, std::move(*url), std::move(*client), reconnect);
  ConnectResult connection = co_await connect_websocket(loop, std::move(*url), std::move(*client));
  co_return connection;
}

}  // namespace fairlead::transport
