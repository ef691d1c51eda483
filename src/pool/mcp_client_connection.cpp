#include "pool/mcp_client_connection.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::pool {

namespace {

// Much longer than Clocks::ping. The pool applies Clocks::ping itself; a response that arrives later still
// counts as activity of the server.
constexpr std::chrono::minutes kPingRequestTimeout{10};

// Lets std::optional::emplace() construct a Peer::Forward in place, because a Peer::Forward cannot be moved.
struct ForwardMaker {
  mcp::Client& client;
  const mcp::ForwardedRequest& request;
  CallOptions& options;

  operator Peer::Forward() const { return client.forward(request, std::move(options)); }  // NOLINT: implicit
};

Task<UpstreamOpenResult> open_mcp_client(Loop& loop, Connector connector, UpstreamOpenOptions opening) {
  Result<std::shared_ptr<mcp::Client>> client =
      co_await mcp::Client::connect(loop, std::move(connector), std::move(opening.client));
  if (!client) co_return client.error();
  co_return std::shared_ptr<UpstreamConnection>(std::make_shared<McpClientConnection>(std::move(*client)));
}

}  // namespace

UpstreamOpener client_opener(Connector connector) {
  return [connector = std::move(connector)](Loop& loop, UpstreamOpenOptions opening) {
    return open_mcp_client(loop, connector, std::move(opening));
  };
}

UpstreamCall::UpstreamCall(mcp::Client& client, const mcp::ForwardedRequest& request, CallOptions options) {
  forward_.emplace(ForwardMaker{client, request, options});
}

McpClientConnection::McpClientConnection(std::shared_ptr<mcp::Client> client) : client_(std::move(client)) {
  server_.revision = client_->revision();
  server_.capabilities = json::Raw::trusted(Bytes::copy_of(client_->server_capabilities().text()));
  server_.connection_description = client_->connection().description();
  if (std::optional<ChildInfo> child = client_->connection().child())
    server_.missing_containment = std::move(child->missing_containment);
}

UpstreamCall McpClientConnection::call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                                       CallOptions options) {
  return UpstreamCall(*client_, *request, std::move(options));
}

Task<Result<std::vector<json::Raw>>> McpClientConnection::list(std::string method, std::string member) {
  return client_->list(std::move(method), std::move(member));
}

Task<Result<std::uint64_t>> McpClientConnection::subscribe(mcp::SubscriptionFilter filter) {
  return client_->subscribe(std::move(filter));
}

Task<Result<void>> McpClientConnection::unsubscribe(std::uint64_t subscription) {
  return client_->unsubscribe(subscription);
}

Task<Result<void>> McpClientConnection::set_log_level(mcp::LoggingLevel level) {
  return client_->set_log_level(level);
}

Result<void> McpClientConnection::notify(std::string_view method, const json::Raw& params) {
  return client_->notify(method, params);
}

Task<Result<void>> McpClientConnection::ping() {
  const std::shared_ptr<mcp::Client> client = client_;
  std::string method = mcp::is_modern(client->revision()) ? "server/discover" : "ping";
  mcp::ClientCallOptions options;
  options.timeout = kPingRequestTimeout;
  const Result<json::Raw> answer =
      co_await client->request(std::move(method), json::Raw(), std::move(options));
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

Error McpClientConnection::with_error_context(Error error, std::string_view code) const {
  return client_->connection().with_error_context(std::move(error), code);
}

Error with_server_context(const UpstreamConnection& connection, Error error) {
  if (!error.detail().failure_code.empty()) return with_failure_code(std::move(error));
  const bool timed_out = error.kind() == ErrorKind::timeout;
  const std::string_view code = timed_out                          ? failure::call_timeout
                                : error.kind() == ErrorKind::parse ? failure::noise_on_stdout
                                                                   : default_failure_code(error.kind());
  // `noise_on_stdout` applies only to a child process, and with_error_context() sets it only for one.
  return with_failure_code(connection.with_error_context(std::move(error), code),
                           timed_out ? code : std::string_view());
}

}  // namespace fairlead::pool
