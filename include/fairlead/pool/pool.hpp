// Pool: starts MCP servers on demand, keeps connections to them, and forwards calls. It bounds the number of
// processes, restarts servers that crash, replaces servers that hang, and retries a call only where that is
// safe. A call to a server that is being started waits for that start; all waiting calls share its outcome.
//
// Example:
//   auto pool = pool::Pool::create(loop);
//   Result<void> added = pool->add(spec);
//   Result<pool::ForwardedAnswer> answer = co_await pool->forward(target, request);
//
// A pool belongs to one loop: all its functions are called on the thread of that loop. The connections to
// servers use the same loop, unless an opener of PoolOptions::openers opens them on another one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/redactor.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/pool/monitor.hpp"
#include "fairlead/pool/server_spec.hpp"
#include "fairlead/pool/supervisor.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

// The server to call and the caller's identity. `session` and `user` select the upstream, according to the
// server's sharing mode.
struct Target {
  Target() {}  // NOLINT: not an aggregate, see StreamConnectOptions
  explicit Target(std::string_view server_name, std::string_view session_id = {},
                  std::string_view user_name = {})
      : server(server_name), session(session_id), user(user_name) {}

  std::string server;
  std::string session;
  std::string user;
};

class ForwardOptions {
 public:
  ForwardOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::optional<std::chrono::milliseconds> idle;      // overrides the server's clocks.idle
  std::optional<std::chrono::milliseconds> absolute;  // overrides the server's clocks.absolute
  std::stop_token stop;                               // cancels the call, also at the server
  bool repeatable = false;                            // the call is safe to retry; see is_repeatable()
  json::View tool;  // the called tool as its server listed it; its annotations can also allow a retry
  // Called with the params of each progress notification of the call. The params carry the progress token of
  // the request, not the one that the pool sent to the server. Not called if the request has no token.
  std::function<void(const json::Raw& params)> on_progress;
  std::shared_ptr<void> call_context;  // data of the caller; returned in ActiveCallInfo and ClientCallSummary
  // The client that makes the call. Waiting calls are served round-robin by client, and each client is
  // limited to max_client_waiting_calls. Must outlive the call. Null for an internal request of the pool or
  // the gateway, which is exempt from that limit.
  const Principal* client = nullptr;
};

struct ForwardedAnswer {
  ForwardedAnswer(rpc::Message from_server, mcp::Revision of_server)
      : message(std::move(from_server)), revision(of_server) {}

  rpc::Message message;
  mcp::Revision revision;  // of the connection that the answer arrived on
};

// A call that is made without a coroutine, with Pool::forward(): its arguments and the handler of its
// outcome.
class DirectForward {
 public:
  explicit DirectForward(Target call_target) : target(std::move(call_target)) {}
  // The same for the target with these members.
  DirectForward(std::string_view server, std::string_view session, std::string_view user)
      : target(server, session, user) {}
  virtual ~DirectForward() = default;

  // Returns the request, which is a part of this object.
  virtual const mcp::ForwardedRequest& request() const noexcept = 0;
  // Returns a copy of the request, which may be used and released on another thread than this object.
  virtual std::shared_ptr<const mcp::ForwardedRequest> copy_request() const = 0;
  // Returns the part of this object that is used as ForwardOptions::call_context; null if there is none.
  virtual void* call_context() noexcept { return nullptr; }
  // One of these is called, once, on the loop thread. `revision` is that of the connection that the response
  // arrived on.
  virtual void on_answer(const rpc::Message& response, mcp::Revision revision) = 0;
  virtual void on_failure(const Error& error) = 0;

  Target target;
  ForwardOptions options;  // without a call_context
};

// An active call of an upstream.
struct ActiveCallInfo {
  std::string session;
  std::string user;
  std::string_view method;
  std::shared_ptr<void> call_context;
};

// Summary of the active calls of an upstream that were made with a ForwardOptions::call_context.
struct ClientCallSummary {
  std::size_t count = 0;
  // The call context of the call that was sent last, if there is only one call or all belong to one session.
  // Null otherwise, because a request of the server could then concern any of several clients.
  std::shared_ptr<void> call_context;
};

struct UpstreamStatus;

// One process of a server, or one connection to it. The object survives restarts: after a restart it
// represents the new process or connection. A shared server has one upstream; other servers have one for each
// session or user.
class Upstream {
 public:
  virtual ~Upstream() = default;

  virtual const ServerSpec& spec() const noexcept = 0;
  // The session or user that the upstream belongs to; empty if it is shared.
  virtual const std::string& key() const noexcept = 0;
  virtual UpstreamState state() const noexcept = 0;
  // The number of starts so far.
  virtual std::uint64_t generation() const noexcept = 0;
  // Returns null unless the state is ready or draining.
  virtual std::shared_ptr<UpstreamConnection> connection() const noexcept = 0;
  // Returns the active calls in the order in which they were sent.
  virtual std::vector<ActiveCallInfo> active_calls() const = 0;
  // Runs in constant time.
  virtual ClientCallSummary client_call_summary() const = 0;
  virtual UpstreamStatus status() const = 0;
};

// Handlers for messages and state changes of servers. All are called on the loop thread; none may block.
struct UpstreamHandlers {
  // Returns the client capabilities (a JSON object) that the pool declares to a server. If unset, the pool
  // declares none. Called at each handshake.
  std::function<json::Raw(const Upstream&)> capabilities_for;
  // Returns the minimum log level that the pool requests from a server. If unset,
  // PoolOptions::client.log_level applies. Called at each handshake.
  std::function<mcp::LoggingLevel(const Upstream&)> log_level_for;
  // Handles a request of a legacy-era server (revisions up to 2025-11-25): sampling, elicitation, roots. If
  // unset, the pool rejects these requests.
  std::function<Task<Answer>(std::shared_ptr<Upstream>, Request)> on_request;
  // Handles a notification of a server: a log message, a list change, a resource update, or progress whose
  // token belongs to no active call.
  std::function<void(const std::shared_ptr<Upstream>&, std::string_view method, const json::Raw& params)>
      on_notification;
  // Called at every state transition of an upstream.
  std::function<void(const std::shared_ptr<Upstream>&, const Transition&)> on_state_changed;
  // Called when the pool has found that a shared server keeps state per session. From now on every session
  // has its own upstream.
  std::function<void(const std::string& server)> on_server_unshared;
};

// Returns the default of PoolLimits::max_concurrent_starts: twice the number of cores that this process may
// use, but at least 4.
std::size_t default_max_concurrent_starts() noexcept;

struct PoolLimits {
  std::size_t max_stdio_processes = 50;  // child processes, including those that are starting or stopping
  std::size_t max_start_queue = 200;     // starts that wait for a permit of max_stdio_processes
  // Servers that are being started at the same time. A start lasts from the launch of the program to the end
  // of the handshake.
  std::size_t max_concurrent_starts = default_max_concurrent_starts();
  std::size_t max_calls = 16'384;                // active calls at all servers
  std::size_t max_waiting_calls = 16'384;        // calls that wait for a start or for a permit of max_calls
  std::size_t max_client_waiting_calls = 4'096;  // waiting calls of one client
  // A server that has been idle for this long can be evicted when another server needs a process.
  std::chrono::milliseconds evict_after{1'000};

  bool operator==(const PoolLimits&) const = default;
};

// The secret that a server refers to as ${secret:NAME}.
struct SecretRequest {
  std::string server;
  std::string user;  // whom the upstream serves; empty: several users, or none
  std::string name;
};

// Who has provided a value: an administrator, the owner of the server who is not one, or the caller who is
// neither.
enum class SecretProvider : std::uint8_t { administrator, owner, caller };

// A value of a caller must not determine the host of an address, because the server sends it other values.
// A value of a caller or an owner is redacted in the stderr and the connection errors of its server; in all
// logs and errors only if it is distinctive: users must not blank words such as "failed" there.
struct StoredSecret {
  explicit StoredSecret(std::string text, SecretProvider of = SecretProvider::administrator)
      : value(std::move(text)), provider(of) {}

  std::string value;
  SecretProvider provider;
};

// Returns the value of a secret. Called at each start of a server that refers to it; its time counts towards
// the server's clocks.spawn. The remedy of its error is kept.
using SecretStore = std::function<Task<Result<StoredSecret>>(SecretRequest request)>;

struct PoolOptions {
  PoolOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  PoolLimits limits;
  mcp::ClientOptions client;  // client name, limits and log of all connections; the pool sets client.handlers
  UpstreamHandlers handlers;
  std::map<std::string, Connector> connectors;  // by ConnectorName::name
  // By ConnectorName::name, for connections that are not made by an mcp::Client of the pool. If a name is in
  // both maps, the opener is used. An opener must finish within clocks.spawn + clocks.handshake.
  std::map<std::string, UpstreamOpener> openers;
  SecretStore secret_store;  // without it, a server that refers to ${secret:NAME} fails to start
  ManifestOptions manifest;  // the manifest in which every started process is recorded
  // Stores the secrets that servers are connected with now, that is, the values of references in their specs.
  // The pool redacts them in its errors and in the log of `client`. If null, the pool creates its own.
  std::shared_ptr<SharedRedactor> redactor;
  std::shared_ptr<PoolMonitor> monitor;  // if null, the pool creates its own
};

// A snapshot of the status of one upstream.
struct UpstreamStatus {
  std::string server;
  std::string key;
  UpstreamState state = UpstreamState::idle;
  std::uint64_t generation = 0;
  std::string connection_description;  // "server (pid 12)", "tcp:…"; empty if not connected
  std::vector<MissingContainment> missing_containment;  // measures not in force for its process
  bool healthy = false;               // ready, no ping timed out, and the server sent something recently
  Clock::time_point since{};          // when the current state was entered
  Clock::time_point last_activity{};  // when the server last sent something
  std::size_t active_call_count = 0;
  std::size_t waiting_caller_count = 0;  // callers that wait for the start
  unsigned consecutive_failures = 0;
  std::optional<Error> last_error;
  Sharing sharing = Sharing::shared;  // the effective mode, never `automatic`
  std::string sharing_evidence;       // why the pool switched the server to per_session; empty if it did not
  std::vector<Transition> history;
};

// Keeps a ready upstream running: while the lease exists, the upstream is neither stopped for being idle nor
// evicted.
class Lease {
 public:
  // The destructor of the guard ends the lease.
  class Guard {
   public:
    virtual ~Guard() = default;
  };
  Lease(std::shared_ptr<Upstream> upstream, std::shared_ptr<UpstreamConnection> connection,
        std::unique_ptr<Guard> guard)
      : upstream_(std::move(upstream)), connection_(std::move(connection)), guard_(std::move(guard)) {}

  const std::shared_ptr<Upstream>& upstream() const noexcept { return upstream_; }
  // The connection that was ready when the lease was made; never null.
  const std::shared_ptr<UpstreamConnection>& connection() const noexcept { return connection_; }

 private:
  std::shared_ptr<Upstream> upstream_;
  std::shared_ptr<UpstreamConnection> connection_;
  std::unique_ptr<Guard> guard_;
};

// Priority of a start in the queues for max_stdio_processes and max_concurrent_starts: starts that a call
// waits for come before background starts.
enum class StartPriority : std::uint8_t { call, background };

// What can be changed while a pool is used.
class PoolSettings {
 public:
  virtual ~PoolSettings() = default;
  // Sets the connector for servers that refer to `name`, from their next start on.
  virtual void set_connector(std::string name, Connector connector) = 0;
  // Sets the limits. Calls and processes that exceed a lower limit continue; new ones wait until there is
  // room.
  virtual void set_limits(const PoolLimits& limits) = 0;
};

class Pool : public PoolSettings {
 public:
  static std::shared_ptr<Pool> create(Loop& loop, PoolOptions options = PoolOptions());

  // ---- servers ----
  // add() fails with `validation` if a server of that name exists; the other functions fail with `validation`
  // if none exists.
  virtual Result<void> add(ServerSpec spec) = 0;
  // New calls use the new spec at once; active calls finish on the old upstream.
  virtual Result<void> update(ServerSpec spec) = 0;
  virtual Result<void> remove(std::string_view server) = 0;
  virtual Result<void> disable(std::string_view server) = 0;
  virtual Result<void> enable(std::string_view server) = 0;
  // Drains and stops the upstreams of a server for whose user `affects` returns true; the user is empty for
  // an upstream of several users. New calls start other upstreams; active calls finish.
  virtual Result<void> replace_upstreams(std::string_view server,
                                         const std::function<bool(const std::string& user)>& affects) = 0;

  // ---- calls ----
  // Sends a request, with an id and a progress token of the pool and encoded for the revision of the
  // connection, and returns the response as received: a result or an error of the server, with the pool's id.
  // If no response arrives, fails with validation (unknown server), resource_exhausted (a limit of the pool;
  // see detail().retry_after), spawn, connection_failed, timeout, cancelled, process_exited or closed.
  virtual Task<Result<ForwardedAnswer>> forward(Target target,
                                                std::shared_ptr<const mcp::ForwardedRequest> request,
                                                ForwardOptions options = ForwardOptions()) = 0;
  // Does the same without a coroutine, which costs less, if the call can be sent without waiting: returns
  // true, and passes the outcome to `call`, before or after it returns. Otherwise returns false, without an
  // effect.
  virtual bool forward(const std::shared_ptr<DirectForward>& call) = 0;
  // Same as forward(), for a request that is sent verbatim.
  Task<Result<rpc::Message>> call(Target target, rpc::Message request,
                                  ForwardOptions options = ForwardOptions());
  // Starts the target's upstream if necessary and returns a lease of it, for internal requests such as
  // tools/list and resources/subscribe. The lease counts as an active call. `client`: see ForwardOptions;
  // must outlive the returned task.
  virtual Task<Result<Lease>> acquire(Target target, std::stop_token stop = {},
                                      StartPriority priority = StartPriority::call,
                                      const Principal* client = nullptr) = 0;
  // Returns a lease of this upstream without starting it. The lease counts as no call and may be kept for any
  // length of time: it does not delay draining. Fails with `closed` if the upstream is not ready.
  virtual Result<Lease> keep_alive(const std::shared_ptr<Upstream>& upstream) = 0;
  // Sends a notification to the target's upstream. Does nothing if the upstream is not ready.
  virtual Result<void> notify(const Target& target, std::string_view method, const json::Raw& params) = 0;
  // Starts the target's upstream unless it is running, and returns it. Does not count as a call. Fails as
  // call() does. `client`: see ForwardOptions.
  virtual Task<Result<std::shared_ptr<Upstream>>> warm(Target target, std::stop_token stop = {},
                                                       const Principal* client = nullptr) = 0;
  // Drains and stops the upstreams of these sessions, in one pass over all servers, in slices.
  virtual Task<void> end_sessions(std::set<std::string, std::less<>> sessions) = 0;

  // ---- status ----
  // Returns the status of all upstreams, and of servers without one. Takes milliseconds with thousands of
  // upstreams; use server_after() and upstreams() to visit them in slices.
  virtual std::vector<UpstreamStatus> status() const = 0;
  // Returns the name of the first server after `server` in the order of names, or nullopt if there is none;
  // "" precedes all names. A removed server is included until its upstreams have stopped.
  virtual std::optional<std::string> server_after(std::string_view server) const = 0;
  // Returns the upstreams of a server, ordered by key, followed by those that are being stopped.
  virtual std::vector<std::shared_ptr<Upstream>> upstreams(std::string_view server) const = 0;
  // Returns the monitor of the pool's servers; never null.
  virtual const std::shared_ptr<PoolMonitor>& monitor() const noexcept = 0;
  virtual std::size_t process_count() const noexcept = 0;  // permits of max_stdio_processes in use

  // Rejects new calls, drains active calls for up to `grace`, stops all servers, and returns when all
  // processes are gone.
  virtual Task<void> shutdown(std::chrono::milliseconds grace) = 0;
};

// Returns whether a call may be retried although the server may already have executed it: its method only
// reads, or its tool has the annotation readOnlyHint or idempotentHint. `tool` is the tool as its server
// listed it; absent if it is unknown.
bool is_repeatable(std::string_view method, json::View tool = json::View());

// Key in the `_meta` of the result of a retried call. Its value is {"attempts":2,"reason":"process exited"}.
inline constexpr std::string_view kRetriedKey = "fairlead/retried";

}  // namespace fairlead::pool
