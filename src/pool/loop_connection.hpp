// LoopConnection: an UpstreamConnection whose other half lives on another loop. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fairlead/loop/posted_bytes.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

// What a connection on another loop says by itself, on its way to the loop that it was opened for. What waits
// for either loop is bounded by max_backlog_bytes. A connection whose notifications or progress exceed it is
// aborted; everything else fails with `resource exhausted`.
class LoopRelay : public std::enable_shared_from_this<LoopRelay> {
 public:
  LoopRelay(Loop& here, Loop& other, mcp::ClientHandlers handlers, std::size_t max_bytes)
      : here_(here), other_(other), handlers_(std::move(handlers)), posted_(max_bytes) {}

  // From any thread: what waits for either loop.
  const PostedBytes& posted() const noexcept { return posted_; }

  // ---- on the other loop ----
  // To be given to the connection there.
  mcp::ClientHandlers handlers();
  void set_connection(const std::shared_ptr<UpstreamConnection>& connection) { connection_ = connection; }
  // Runs `callback` on the loop that the connection was opened for; `bytes` are charged until then.
  void post(std::size_t bytes, Loop::Callback callback);

  // ---- on the loop that the connection was opened for ----
  const std::optional<Error>& end_reason() const noexcept { return end_reason_; }
  void note_end(const Error& reason) {
    if (!end_reason_) end_reason_ = reason;
  }

 private:
  static Task<Answer> relay_request(std::shared_ptr<LoopRelay> self, Request request);
  static Task<Answer> handle_request(std::shared_ptr<LoopRelay> self, Request request);
  void relay_notification(std::string_view method, const json::Raw& params);
  void relay_end(const Error& reason);
  void on_end(const Error& reason);

  Loop& here_;
  Loop& other_;
  const mcp::ClientHandlers handlers_;  // of the pool; called on here_
  const PostedBytes posted_;
  std::weak_ptr<UpstreamConnection> connection_;  // used on other_
  std::optional<Error> end_reason_;               // used on here_
};

class LoopConnection final : public UpstreamConnection {
 public:
  // The half on the other loop: released there, wherever the last reference to it is dropped.
  struct Far {
    Far(Loop& loop, std::shared_ptr<UpstreamConnection> opened)
        : other(loop), server(opened->server()), connection(std::move(opened)) {}
    Far(const Far&) = delete;
    ~Far();

    Loop& other;
    const ServerDescription server;
    std::shared_ptr<UpstreamConnection> connection;
  };

  LoopConnection(Loop& here, std::shared_ptr<Far> far, std::shared_ptr<LoopRelay> relay)
      : here_(here), far_(std::move(far)), relay_(std::move(relay)) {}

  const ServerDescription& server() const noexcept override { return far_->server; }
  UpstreamCall call(const std::shared_ptr<const mcp::OutgoingRequest>& request, CallOptions options) override;
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<std::uint64_t>> subscribe(mcp::ListenFilter filter) override;
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override;
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override;
  Result<void> notify(std::string_view method, const json::Raw& params) override;
  Task<Result<void>> ping() override;
  std::optional<Error> end_reason() const override { return relay_->end_reason(); }
  // Errors of calls, and the reason of the end, have been explained on the other loop.
  Error explained(Error error, std::string_view) const override { return error; }
  void abort() noexcept override;
  Task<void> close() override;

 private:
  Loop& here_;
  std::shared_ptr<Far> far_;
  std::shared_ptr<LoopRelay> relay_;
};

}  // namespace fairlead::pool
