// McpClientConnection: an UpstreamConnection that is implemented by an mcp::Client on the same loop. Private
// to the layer.
#pragma once

#include <memory>
#include <utility>

#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

class McpClientConnection final : public UpstreamConnection {
 public:
  explicit McpClientConnection(std::shared_ptr<mcp::Client> client);

  const ServerDescription& server() const noexcept override { return server_; }
  UpstreamCall call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                    CallOptions options) override;
  mcp::Client* client() const noexcept override { return client_.get(); }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<std::uint64_t>> subscribe(mcp::SubscriptionFilter filter) override;
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override;
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override;
  Result<void> notify(std::string_view method, const json::Raw& params) override;
  Task<Result<void>> ping() override;
  std::optional<Error> end_reason() const override { return client_->end_reason(); }
  Error with_error_context(Error error, std::string_view code) const override;
  void abort() noexcept override { client_->connection().close(); }
  Task<void> close() override { return client_->close(); }

 private:
  std::shared_ptr<mcp::Client> client_;
  ServerDescription server_;
};

// Adds context about the server, and a failure code if `error` has none, to the error of a call or to the
// reason why a connection has ended. Only errors about the end of a process have a code already.
Error with_server_context(const UpstreamConnection& connection, Error error);

}  // namespace fairlead::pool
