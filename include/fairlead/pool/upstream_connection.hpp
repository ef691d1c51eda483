// UpstreamConnection: one connection to a server, as the pool and the gateway see it. The server may be
// behind an mcp::Client on the pool's own loop, on another loop, or on another node: open_client() makes the
// first kind, on_loop() the second.
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

// What a server said of itself in the handshake.
struct ServerDescription {
  mcp::Revision revision = mcp::kNewestLegacy;
  json::Raw capabilities;
  std::string connection;                               // "server (pid 12)", "tcp:…"
  std::vector<MissingContainment> missing_containment;  // of a child process
};

// co_await: Result<rpc::Message>, the answer as it came. Awaited once, where it was made.
class UpstreamCall {
 public:
  using Answer = Result<rpc::Message>;

  explicit UpstreamCall(Task<Answer> task) : task_(std::move(task)) {}
  // `client` and `request` outlive the call. Allocates nothing.
  UpstreamCall(mcp::Client& client, const mcp::OutgoingRequest& request, CallOptions options);
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

// All functions are called on the loop that the connection was opened for; tasks are awaited there. A
// connection that has ended is not opened again: every operation fails with the reason.
class UpstreamConnection {
 public:
  virtual ~UpstreamConnection() = default;

  // Does not change.
  virtual const ServerDescription& server() const noexcept = 0;

  // Sends a request under an id and a progress token of its own. `options.on_progress` is not called after
  // the call has ended.
  virtual UpstreamCall call(const std::shared_ptr<const mcp::OutgoingRequest>& request,
                            CallOptions options) = 0;
  // All pages of a list, each entry as the server sent it. `member` is the list's name in the result.
  virtual Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) = 0;
  // Asks for notifications of changes; returns a number for unsubscribe().
  virtual Task<Result<std::uint64_t>> subscribe(mcp::ListenFilter filter) = 0;
  virtual Task<Result<void>> unsubscribe(std::uint64_t subscription) = 0;
  virtual Task<Result<void>> set_log_level(mcp::LoggingLevel level) = 0;
  // Without waiting; may be refused over max_backlog_bytes.
  virtual Result<void> notify(std::string_view method, const json::Raw& params) = 0;
  // Returns when the server has answered, however late.
  virtual Task<Result<void>> ping() = 0;

  // Why it has ended; nullopt while it has not.
  virtual std::optional<Error> end_reason() const = 0;
  // Adds to an error about this connection what is known of the server: of a child process its command line
  // and last lines. `code` names the failure where it has no name yet.
  virtual Error explained(Error error, std::string_view code) const = 0;

  // Closes without waiting.
  virtual void abort() noexcept = 0;
  // Closes and waits until a child process is gone.
  virtual Task<void> close() = 0;
};

// What the pool gives to the function that opens a connection.
struct UpstreamOpening {
  UpstreamOpening() {}  // NOLINT: not an aggregate, see ConnectOptions

  // Name, limits, capabilities to declare, log. Its handlers `request`, `notified` and `ended` are how the
  // connection speaks to the pool; they are called on the loop that the connection is opened for.
  mcp::ClientOptions client;
  std::stop_token stop;  // the connection is not wanted any more
};

using OpenedUpstream = Result<std::shared_ptr<UpstreamConnection>>;
// Opens a connection for use on `loop`, whose thread calls it.
using UpstreamOpener = std::function<Task<OpenedUpstream>(Loop& loop, UpstreamOpening opening)>;

// Opens an mcp::Client on the loop it is called for, over a connection that `connector` makes.
UpstreamOpener open_client(Connector connector);

// Runs `opener` on another loop, and everything that its connections do. Requests, notifications and the end
// of the connection are posted to the loop that the connection is opened for, in the order in which they
// happened, and ahead of the answers that came after them. What waits for either loop is limited by
// max_backlog_bytes per connection: beyond it a request, notification or answer fails with `resource
// exhausted`. `other` outlives the connections and runs until they are closed.
UpstreamOpener on_loop(Loop& other, UpstreamOpener opener);

}  // namespace fairlead::pool
