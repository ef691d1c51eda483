// UpstreamConnection: the interface of a connection to a server, used by the pool and the gateway. The
// implementation may be an mcp::Client on the pool's loop (client_opener()), a connection on another loop
// (opener_on_loop()), or a proxy for a connection on another node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/client.hpp"

namespace fairlead::pool {

// A server's properties that are known after the handshake.
struct ServerDescription {
  mcp::Revision revision = mcp::kNewestLegacyRevision;
  json::Raw capabilities;
  std::string connection_description;                   // "server (pid 12)", "tcp:…"
  std::vector<MissingContainment> missing_containment;  // measures not in force for a child process
};

// Awaitable that returns the response as received, as Result<rpc::Message>. Must be awaited once, in the
// expression that created it.
class UpstreamCall {
 public:
  using Answer = Result<rpc::Message>;

  explicit UpstreamCall(Task<Answer> task) : task_(std::move(task)) {}
  // REQUIRES: `client` and `request` outlive the call. Does not allocate.
  UpstreamCall(mcp::Client& client, const mcp::ForwardedRequest& request, CallOptions options);
  UpstreamCall(const UpstreamCall&) = delete;

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> handle) {
    if (task_) return task_->await_suspend(handle);
    const bool suspended = forward_->await_suspend(handle);
    return suspended ? std::noop_coroutine() : handle;
  }
  Answer await_resume() { return task_ ? task_->await_resume() : forward_->await_resume(); }

 private:
  std::optional<Task<Answer>> task_;
  std::optional<Peer::Forward> forward_;
};

// All functions are called, and all tasks awaited, on the thread of the loop that the connection was opened
// for. A connection that has ended is not reopened: every operation fails with the reason of the end.
class UpstreamConnection {
 public:
  virtual ~UpstreamConnection() = default;

  // Constant for the lifetime of the connection.
  virtual const ServerDescription& server() const noexcept = 0;

  // Sends a request under an id and a progress token of this connection. `options.on_progress` is not called
  // after the call has ended.
  virtual UpstreamCall call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                            CallOptions options) = 0;
  // Returns the client that makes the calls, if it runs on the loop that the connection was opened for;
  // otherwise null. Its calls can be made with an mcp::ForwardCall.
  virtual mcp::Client* client() const noexcept { return nullptr; }
  // Returns the entries of all pages of a list, each as the server sent it. `member` is the key of the list
  // in the result.
  virtual Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) = 0;
  // Subscribes to change notifications; returns a number for unsubscribe().
  virtual Task<Result<std::uint64_t>> subscribe(mcp::SubscriptionFilter filter) = 0;
  virtual Task<Result<void>> unsubscribe(std::uint64_t subscription) = 0;
  virtual Task<Result<void>> set_log_level(mcp::LoggingLevel level) = 0;
  // Sends a notification without waiting. Fails with `resource_exhausted` over max_backlog_bytes.
  virtual Result<void> notify(std::string_view method, const json::Raw& params) = 0;
  // Returns when the server has answered, however late; the caller applies its own timeout.
  virtual Task<Result<void>> ping() = 0;

  // Returns why the connection has ended, or nullopt while it is open.
  virtual std::optional<Error> end_reason() const = 0;
  // Returns `error` with context about the server added: for a child process, its command line and its last
  // lines of stderr. Sets the failure code to `code` if the error has none.
  virtual Error with_error_context(Error error, std::string_view code) const = 0;

  // Closes the connection without waiting.
  virtual void abort() noexcept = 0;
  // Closes the connection and waits until its child process, if any, has been reaped.
  virtual Task<void> close() = 0;
};

// The argument of an UpstreamOpener.
struct UpstreamOpenOptions {
  UpstreamOpenOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // Client name, limits, log, and the capabilities to declare. The opened connection must report requests,
  // notifications and its end through client.handlers.on_request, on_notification and on_ended, on the loop
  // that the connection is opened for.
  mcp::ClientOptions client;
  std::stop_token stop;  // stop is requested when the connection is no longer needed
};

using UpstreamOpenResult = Result<std::shared_ptr<UpstreamConnection>>;
// Opens a connection for use on `loop`. Called on the thread of `loop`.
using UpstreamOpener = std::function<Task<UpstreamOpenResult>(Loop& loop, UpstreamOpenOptions opening)>;

// Returns an opener whose connections are mcp::Clients on the loop that the opener is called for. `connector`
// makes the connection of each client.
UpstreamOpener client_opener(Connector connector);

// Returns an opener that runs `opener`, and all operations of its connections, on `connection_loop`.
// Requests, notifications and the end of a connection are posted to the loop that the connection is opened
// for, in the order in which they happened, and before the responses that were received after them. Data
// queued for either loop is limited to max_backlog_bytes per connection. Beyond it an operation, or a request
// of the server, fails with `resource_exhausted`; a notification or progress of the server aborts the
// connection. unsubscribe() and close() are not limited. REQUIRES: `connection_loop` outlives the connections
// and runs until they are closed.
UpstreamOpener opener_on_loop(Loop& connection_loop, UpstreamOpener opener);

}  // namespace fairlead::pool
