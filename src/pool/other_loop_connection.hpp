// OtherLoopConnection: an UpstreamConnection for use on the caller's loop whose underlying connection (Inner)
// is on another loop. It runs every operation there. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fairlead/loop/posted_bytes.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

// Relays requests, notifications, progress and the end of a connection from the connection's loop to the
// caller's loop, the one that the connection was opened for. Data queued for either loop is limited to
// max_backlog_bytes. A connection whose notifications or progress exceed it is aborted; every other operation
// fails with `resource_exhausted`.
class LoopRelay : public std::enable_shared_from_this<LoopRelay> {
 public:
  LoopRelay(Loop& caller_loop, Loop& connection_loop, mcp::ClientHandlers handlers, std::size_t max_bytes)
      : caller_loop_(caller_loop),
        connection_loop_(connection_loop),
        handlers_(std::move(handlers)),
        posted_bytes_(max_bytes) {}

  // Counts the bytes that are queued for either loop. Thread-safe.
  const PostedBytes& posted() const noexcept { return posted_bytes_; }

  // ---- called on the connection's loop ----
  // Returns the handlers to open the connection with.
  mcp::ClientHandlers handlers();
  void set_connection(const std::shared_ptr<UpstreamConnection>& connection) { connection_ = connection; }
  // Posts `callback` to the caller's loop. Until it runs, `bytes` count towards max_backlog_bytes; over that
  // limit, aborts the connection instead.
  void post(std::size_t bytes, Loop::Callback callback);

  // ---- called on the caller's loop ----
  const std::optional<Error>& end_reason() const noexcept { return end_reason_; }
  void record_end(const Error& reason) {
    if (!end_reason_) end_reason_ = reason;
  }

 private:
  static Task<Answer> relay_request(std::shared_ptr<LoopRelay> self, Request request);
  static Task<Answer> handle_request(std::shared_ptr<LoopRelay> self, Request request);
  void relay_notification(std::string_view method, const json::Raw& params);
  void relay_end(const Error& reason);
  void on_end(const Error& reason);

  Loop& caller_loop_;
  Loop& connection_loop_;
  const mcp::ClientHandlers handlers_;  // of the pool; called on caller_loop_
  const PostedBytes posted_bytes_;
  std::weak_ptr<UpstreamConnection> connection_;  // used on connection_loop_
  std::optional<Error> end_reason_;               // used on caller_loop_
};

class OtherLoopConnection final : public UpstreamConnection {
 public:
  // The underlying connection and its loop. The destructor may run on any thread; it aborts and releases the
  // connection on that loop.
  struct Inner {
    Inner(Loop& connection_loop, std::shared_ptr<UpstreamConnection> opened)
        : loop(connection_loop), server(opened->server()), connection(std::move(opened)) {}
    Inner(const Inner&) = delete;
    ~Inner();

    Loop& loop;
    const ServerDescription server;
    std::shared_ptr<UpstreamConnection> connection;
  };

  OtherLoopConnection(Loop& caller_loop, std::shared_ptr<Inner> inner, std::shared_ptr<LoopRelay> relay)
      : caller_loop_(caller_loop), inner_(std::move(inner)), relay_(std::move(relay)) {}

  const ServerDescription& server() const noexcept override { return inner_->server; }
  UpstreamCall call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                    CallOptions options) override;
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) override;
  Task<Result<std::uint64_t>> subscribe(mcp::SubscriptionFilter filter) override;
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override;
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override;
  Result<void> notify(std::string_view method, const json::Raw& params) override;
  Task<Result<void>> ping() override;
  std::optional<Error> end_reason() const override { return relay_->end_reason(); }
  // Returns `error` unchanged, because the context was already added on the connection's loop.
  Error with_error_context(Error error, std::string_view) const override { return error; }
  void abort() noexcept override;
  Task<void> close() override;

 private:
  Loop& caller_loop_;
  std::shared_ptr<Inner> inner_;
  std::shared_ptr<LoopRelay> relay_;
};

}  // namespace fairlead::pool
