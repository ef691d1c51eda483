// ClientConnection: an UpstreamConnection by an mcp::Client on the same loop. Private to the layer.
#pragma once

#include <memory>
#include <utility>

#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

class ClientConnection final : public UpstreamConnection {
 public:
  explicit ClientConnection(std::shared_ptr<mcp::Client> client);

  const ServerDescription& server() const noexcept override { return server_; }
  UpstreamCall call(const std::shared_ptr<const mcp::OutgoingRequest>& request, CallOptions options) override;
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<std::uint64_t>> subscribe(mcp::ListenFilter filter) override;
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override;
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override;
  Result<void> notify(std::string_view method, const json::Raw& params) override;
  Task<Result<void>> ping() override;
  std::optional<Error> end_reason() const override { return client_->end_reason(); }
  Error explained(Error error, std::string_view code) const override;
  void abort() noexcept override { client_->connection().close(); }
  Task<void> close() override { return client_->close(); }

 private:
  std::shared_ptr<mcp::Client> client_;
  ServerDescription server_;
};

// An error of a call, or the end of a connection, with what is known of the server. A failure that does not
// come from the end of a process has no code yet.
Error with_server_context(const UpstreamConnection& connection, Error error);

}  // namespace fairlead::pool
