// How an HttpClient comes by its connections: those it kept, and new ones, through a proxy where need be.
#include <fcntl.h>

#include <algorithm>

#include "base/uri.hpp"
#include "fairlead/base/base64.hpp"
#include "fairlead/loop/timer.hpp"
#include "http/client.hpp"

namespace fairlead::http {

struct HttpClient::Idle {
  Idle(Loop& loop, std::unique_ptr<Wire> kept) : wire(std::move(kept)), limit(loop) {}
  std::unique_ptr<Wire> wire;
  Timer limit;
};

HttpClient::HttpClient(Loop& loop, ClientOptions options, Proxies proxies)
    : loop_(loop), options_(std::move(options)), proxies_(std::move(proxies)) {}
HttpClient::~HttpClient() = default;

std::unique_ptr<Wire> HttpClient::take_idle(const std::string& origin) {
  const auto found = idle_.find(origin);
  if (found == idle_.end()) return nullptr;
  // The latest: the others may grow old and go.
  std::unique_ptr<Wire> wire = std::move(found->second.back()->wire);
  found->second.pop_back();
  if (found->second.empty()) idle_.erase(found);
  wire->unwatch();
  return wire;
}

void HttpClient::keep(const std::string& origin, std::unique_ptr<Wire> wire) {
  if (closed_ || options_.max_connections == 0) return;
  std::list<std::unique_ptr<Idle>>& all = idle_[origin];
  if (all.size() >= options_.max_connections) all.pop_front();
  all.push_back(std::make_unique<Idle>(loop_, std::move(wire)));
  Idle* const idle = all.back().get();
  const std::weak_ptr<HttpClient> weak = weak_from_this();
  const auto gone = [weak, origin, idle] {
    if (const auto self = weak.lock()) self->drop(origin, idle);
  };
  idle->wire->watch(gone);
  idle->limit.arm_after(options_.idle_connection, gone);
}

void HttpClient::drop(const std::string& origin, const Idle* idle) {
  const auto found = idle_.find(origin);
  if (found == idle_.end()) return;
  found->second.remove_if([&](const std::unique_ptr<Idle>& one) { return one.get() == idle; });
  if (found->second.empty()) idle_.erase(found);
}

void HttpClient::close() {
  closed_ = true;
  idle_.clear();
}

std::size_t HttpClient::idle() const noexcept {
  std::size_t count = 0;
  for (const auto& [origin, all] : idle_) count += all.size();
  return count;
}

Result<std::shared_ptr<void>> HttpClient::take_place() {
  if (under_way_ >= options_.max_exchanges) {
    return Error(ErrorKind::resource_exhausted, "max_exchanges (" + std::to_string(options_.max_exchanges) +
                                                    ") HTTP exchanges are under way already");
  }
  ++under_way_;
  return std::shared_ptr<void>(nullptr, [self = shared_from_this()](void*) { --self->under_way_; });
}

Result<std::shared_ptr<TlsContext>> HttpClient::tls() {
  if (!tls_) {
    Result<std::shared_ptr<TlsContext>> made = client_tls(options_.ca_file, options_.verify);
    if (!made) return made;
    tls_ = std::move(*made);
  }
  return tls_;
}

Task<Result<std::unique_ptr<Wire>>> HttpClient::open(Url url, std::shared_ptr<Interrupt> interrupt) {
  const Url* const proxy = proxies_.for_url(url);
  const bool tunnel = proxy && needs_tunnel(url);
  const Url& first = proxy ? *proxy : url;
  const bool encrypted = tunnel ? url.secure() : first.secure();
  if (tunnel && proxy->secure())
    co_return Error(
        ErrorKind::connection_failed,
        "a proxy that is itself spoken to with TLS can carry http: only (" + proxy->origin() + ")");
  Task<Result<UniqueFd>> dialling =
      tunnel ? through_proxy(*proxy, url, interrupt)
             : dial(loop_, first.host, first.port, first.origin(), options_.limits.connect_timeout);
  Result<UniqueFd> socket = co_await dialling;
  if (!socket) co_return socket.error();
  Result<std::unique_ptr<ByteStream>> stream = std::unique_ptr<ByteStream>();
  if (encrypted) {
    Result<std::shared_ptr<TlsContext>> context = tls();
    if (!context) co_return context.error();
    stream = tls_stream(loop_, std::move(*socket), *context, tunnel ? url.host : first.host);
  } else {
    stream = plain_stream(loop_, std::move(*socket));
  }
  if (!stream) co_return stream.error();
  co_return std::make_unique<Wire>(loop_, std::move(*stream));
}

// Asks a proxy for a tunnel. The stream that asks works on a copy of the socket, which is closed when it is
// done.
Task<Result<UniqueFd>> HttpClient::through_proxy(Url proxy, Url url, std::shared_ptr<Interrupt> interrupt) {
  const std::chrono::milliseconds timeout = options_.limits.connect_timeout;
  Task<Result<UniqueFd>> dialling = dial(loop_, proxy.host, proxy.port, "proxy " + proxy.origin(), timeout);
  Result<UniqueFd> socket = co_await dialling;
  if (!socket) co_return socket.error();
  UniqueFd copy(::fcntl(socket->get(), F_DUPFD_CLOEXEC, 0));
  Result<std::unique_ptr<ByteStream>> stream = plain_stream(loop_, std::move(copy));
  if (!stream) co_return stream.error();
  Wire wire(loop_, std::move(*stream));
  std::string head = "CONNECT " + url.host_and_port() + " HTTP/1.1\r\nHost: " + url.host_and_port() + "\r\n";
  if (!proxy.user.empty())
    head += "Proxy-Authorization: Basic " + base64_encode(percent_decoded(proxy.user)) + "\r\n";
  head += "\r\n";
  const std::vector<Bytes> no_body;
  Task<Result<void>> writing = wire.write(std::move(head), no_body, interrupt, timeout);
  const Result<void> written = co_await writing;
  if (!written) co_return written.error();
  ResponseParser parser(true);
  std::string nothing;
  const Clock::time_point until = Clock::now() + timeout;
  while (!parser.has_head()) {
    Task<Result<void>> reading = wire.read(parser, nothing, interrupt, until);
    const Result<void> got = co_await reading;
    if (!got)
      co_return Error(ErrorKind::connection_failed, "proxy " + proxy.origin() + ": " + got.error().message());
  }
  if (parser.head().status / 100 != 2) {
    co_return Error(ErrorKind::connection_failed,
                    "proxy " + proxy.origin() + " refuses a tunnel to " + url.host_and_port() + ": " +
                        std::to_string(parser.head().status) + " " + parser.head().reason);
  }
  co_return std::move(*socket);
}

}  // namespace fairlead::http
