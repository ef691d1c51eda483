// HttpClient: the pool of idle connections, and how new connections are opened, directly or through a proxy.
#include <fcntl.h>

#include <algorithm>

#include "base/uri.hpp"
#include "connection/sockets.hpp"
#include "fairlead/base/base64.hpp"
#include "http/client.hpp"

namespace fairlead::http {

HttpClient::HttpClient(Loop& loop, ClientOptions options, Proxies proxies)
    : loop_(loop), options_(std::move(options)), proxies_(std::move(proxies)) {}
HttpClient::~HttpClient() = default;

HttpClient::IdleGroup& HttpClient::idle_group(const Url& url) {
  for (const std::unique_ptr<IdleGroup>& group : idle_groups_) {
    if (group->origin.same_origin(url)) return *group;
  }
  return *idle_groups_.emplace_back(std::make_unique<IdleGroup>(url));
}

std::unique_ptr<HttpClientConnection> HttpClient::acquire_idle(const Url& url) {
  IdleGroup& group = idle_group(url);
  if (group.connections.empty()) return nullptr;
  // Returns the most recently used connection, so that connections that are not needed any more stay idle and
  // are closed after ClientOptions::idle_timeout.
  std::unique_ptr<HttpClientConnection> connection = std::move(group.connections.back());
  group.connections.pop_back();
  connection->stop_watching();
  return connection;
}

void HttpClient::add_idle(std::unique_ptr<HttpClientConnection> connection) {
  if (closed_ || options_.max_idle_connections == 0) return;
  auto& connections = static_cast<IdleGroup*>(connection->idle_group)->connections;
  if (connections.size() >= options_.max_idle_connections) connections.erase(connections.begin());
  // The client owns the connection, which calls back at most until it is removed.
  connection->watch_while_idle(options_.idle_timeout, [this, idle = connection.get()] { remove_idle(idle); });
  connections.push_back(std::move(connection));
}

void HttpClient::remove_idle(const HttpClientConnection* idle) {
  auto& connections = static_cast<IdleGroup*>(idle->idle_group)->connections;
  std::erase_if(connections, [&](const auto& connection) { return connection.get() == idle; });
}

void HttpClient::close() {
  closed_ = true;
  for (const std::unique_ptr<IdleGroup>& group : idle_groups_) group->connections.clear();
}

std::size_t HttpClient::idle_count() const noexcept {
  std::size_t count = 0;
  for (const std::unique_ptr<IdleGroup>& group : idle_groups_) count += group->connections.size();
  return count;
}

ExchangePermit::ExchangePermit(std::shared_ptr<HttpClient> client) : client_(std::move(client)) {
  ++client_->exchanges_in_progress_;
}

void ExchangePermit::release() noexcept {
  if (client_) --client_->exchanges_in_progress_;
  client_.reset();
}

Error HttpClient::too_many_exchanges_error() const {
  return Error(ErrorKind::resource_exhausted, "max_exchanges (" + std::to_string(options_.max_exchanges) +
                                                  ") HTTP exchanges are in progress");
}

Result<std::shared_ptr<TlsContext>> HttpClient::tls_context() {
  if (!tls_) {
    Result<std::shared_ptr<TlsContext>> context = make_client_tls_context(options_.ca_file, options_.verify);
    if (!context) return context;
    tls_ = std::move(*context);
  }
  return tls_;
}

Task<Result<std::unique_ptr<HttpClientConnection>>> HttpClient::open_connection(
    Url url, std::shared_ptr<CancellableWaiter> waiter) {
  const Url* const proxy = proxies_.for_url(url);
  const bool tunnel = proxy && needs_tunnel(url);
  const Url& endpoint = proxy ? *proxy : url;
  const bool encrypted = tunnel ? url.secure() : endpoint.secure();
  if (tunnel && proxy->secure())
    co_return Error(ErrorKind::connection_failed,
                    "an https: proxy is supported for http: URLs only (" + proxy->origin() + ")");
  Task<Result<UniqueFd>> connecting = tunnel ? open_tunnel(*proxy, url, waiter) : open_socket(endpoint);
  Result<UniqueFd> socket = co_await connecting;
  if (!socket) co_return socket.error();
  Result<std::unique_ptr<ByteStream>> stream = std::unique_ptr<ByteStream>();
  if (encrypted) {
    Result<std::shared_ptr<TlsContext>> context = tls_context();
    if (!context) co_return context.error();
    stream = make_tls_stream(loop_, std::move(*socket), *context, tunnel ? url.host : endpoint.host);
  } else {
    stream = make_plain_stream(loop_, std::move(*socket));
  }
  if (!stream) co_return stream.error();
  auto connection = std::make_unique<HttpClientConnection>(loop_, std::move(*stream));
  connection->idle_group = &idle_group(url);
  co_return connection;
}

Task<Result<UniqueFd>> HttpClient::open_socket(Url endpoint) {
  const std::chrono::milliseconds timeout = options_.limits.connect_timeout;
  if (!options_.unix_socket.empty()) {
    const Result<SocketAddress> address = unix_address(options_.unix_socket);
    if (!address) co_return address.error();
    Result<UniqueFd> local =
        co_await connect_socket(loop_, *address, "unix:" + options_.unix_socket, timeout);
    co_return local;
  }
  const AddressScope scope = options_.public_addresses_only ? AddressScope::public_only : AddressScope::any;
  Result<UniqueFd> socket =
      co_await dial(loop_, endpoint.host, endpoint.port, endpoint.origin(), timeout, scope);
  co_return socket;
}

// Opens a tunnel through a proxy with CONNECT and returns the socket of the tunnel. The CONNECT request is
// sent over a duplicate of the descriptor, which is closed afterwards.
Task<Result<UniqueFd>> HttpClient::open_tunnel(Url proxy, Url url,
                                               std::shared_ptr<CancellableWaiter> waiter) {
  const std::chrono::milliseconds timeout = options_.limits.connect_timeout;
  Result<UniqueFd> socket = co_await dial(loop_, proxy.host, proxy.port, "proxy " + proxy.origin(), timeout);
  if (!socket) co_return socket.error();
  UniqueFd copy(::fcntl(socket->get(), F_DUPFD_CLOEXEC, 0));
  Result<std::unique_ptr<ByteStream>> stream = make_plain_stream(loop_, std::move(copy));
  if (!stream) co_return stream.error();
  HttpClientConnection connection(loop_, std::move(*stream));
  std::string& head = connection.head_buffer();
  head = "CONNECT " + url.host_and_port() + " HTTP/1.1\r\nHost: " + url.host_and_port() + "\r\n";
  if (!proxy.user_info.empty())
    head += "Proxy-Authorization: Basic " + base64_encode(percent_decode_lenient(proxy.user_info)) + "\r\n";
  head += "\r\n";
  connection.start_write(std::span<const Bytes>(), timeout);
  co_await connection.await_written(waiter);
  if (connection.write_error()) co_return *connection.write_error();
  ResponseParser parser(true);
  std::string body;
  const Clock::time_point deadline = Clock::now() + timeout;
  while (!parser.has_head()) {
    const Result<void> read_result = co_await connection.read(parser, body, waiter, deadline);
    if (!read_result)
      co_return Error(ErrorKind::connection_failed,
                      "proxy " + proxy.origin() + ": " + read_result.error().message());
  }
  if (parser.head().status / 100 != 2) {
    co_return Error(ErrorKind::connection_failed,
                    "proxy " + proxy.origin() + " refuses a tunnel to " + url.host_and_port() + ": " +
                        std::to_string(parser.head().status) + " " + parser.head().reason);
  }
  co_return std::move(*socket);
}

}  // namespace fairlead::http
