#include "pool/client_connection.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::pool {

namespace {

// Much longer than Clocks::ping: the pool decides whether a ping is late, and a late answer still counts.
constexpr std::chrono::minutes kPingKept{10};

// Constructs an object that cannot be moved in the place of the conversion.
struct ForwardMaker {
  mcp::Client& client;
  const mcp::OutgoingRequest& request;
  CallOptions& options;

  operator Peer::Forward() const { return client.forward(request, std::move(options)); }  // NOLINT: implicit
};

Task<OpenedUpstream> open_on(Loop& loop, Connector connector, UpstreamOpening opening) {
  Task<Result<std::shared_ptr<mcp::Client>>> connecting =
      mcp::Client::connect(loop, std::move(connector), std::move(opening.client));
  Result<std::shared_ptr<mcp::Client>> client = co_await connecting;
  if (!client) co_return client.error();
  co_return std::shared_ptr<UpstreamConnection>(std::make_shared<ClientConnection>(std::move(*client)));
}

}  // namespace

UpstreamOpener open_client(Connector connector) {
  return [connector = std::move(connector)](Loop& loop, UpstreamOpening opening) {
    return open_on(loop, connector, std::move(opening));
  };
}

UpstreamCall::UpstreamCall(mcp::Client& client, const mcp::OutgoingRequest& request, CallOptions options) {
  forward_.emplace(ForwardMaker{client, request, options});
}

ClientConnection::ClientConnection(std::shared_ptr<mcp::Client> client) : client_(std::move(client)) {
  server_.revision = client_->revision();
  server_.capabilities = json::Raw::trusted(Bytes::copy_of(client_->capabilities().text()));
  server_.connection = client_->connection().description();
  if (std::optional<ChildInfo> child = client_->connection().child())
    server_.missing_containment = std::move(child->missing_containment);
}

UpstreamCall ClientConnection::call(const std::shared_ptr<const mcp::OutgoingRequest>& request,
                                    CallOptions options) {
  return UpstreamCall(*client_, *request, std::move(options));
}

Task<Result<std::vector<json::Raw>>> ClientConnection::list(std::string method, std::string member) {
  return client_->list(std::move(method), std::move(member));
}

Task<Result<std::uint64_t>> ClientConnection::subscribe(mcp::ListenFilter filter) {
  return client_->listen(std::move(filter));
}

Task<Result<void>> ClientConnection::unsubscribe(std::uint64_t subscription) {
  return client_->unlisten(subscription);
}

Task<Result<void>> ClientConnection::set_log_level(mcp::LoggingLevel level) {
  return client_->set_log_level(level);
}

Result<void> ClientConnection::notify(std::string_view method, const json::Raw& params) {
  return client_->notify(method, params);
}

Task<Result<void>> ClientConnection::ping() {
  const std::shared_ptr<mcp::Client> client = client_;
  std::string method = mcp::is_modern(client->revision()) ? "server/discover" : "ping";
  mcp::ToolCallOptions options;
  options.timeout = kPingKept;
  Task<Result<json::Raw>> asking = client->request(std::move(method), json::Raw(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

Error ClientConnection::explained(Error error, std::string_view code) const {
  return client_->connection().explained(std::move(error), code);
}

Error with_server_context(const UpstreamConnection& connection, Error error) {
  if (!error.detail().code.empty()) return with_failure_code(std::move(error));
  const bool timed_out = error.kind() == ErrorKind::timeout;
  const std::string_view code = timed_out                          ? failure::call_timeout
                                : error.kind() == ErrorKind::parse ? failure::noise_on_stdout
                                                                   : failure_code(error.kind());
  // Only a child has a stdout to write noise to.
  return with_failure_code(connection.explained(std::move(error), code),
                           timed_out ? code : std::string_view());
}

}  // namespace fairlead::pool
