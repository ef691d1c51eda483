// Pool: keeps connections to servers. A call finds its server started, waits for the one start there is, or
// is told why not. The pool sees to it that there are never more processes than allowed, that what crashed
// comes back, that what hangs is replaced, and that a call is repeated only where that is safe.
//
//   auto pool = Pool::create(loop);
//   pool->add(spec);
//   Result<ForwardedAnswer> answer = co_await pool->forward(target, request, options);
//
// A pool lives on one loop. So do its upstreams, unless PoolOptions::openers open them elsewhere.
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
#include "fairlead/pool/server_spec.hpp"
#include "fairlead/pool/supervisor.hpp"
#include "fairlead/pool/upstream_connection.hpp"

namespace fairlead::pool {

// Who calls what. Session and user decide, by the server's sharing, which of its upstreams serves.
struct Target {
  Target() {}  // NOLINT: not an aggregate, see ConnectOptions
  explicit Target(std::string server_name, std::string session_id = {}, std::string user_name = {})
      : server(std::move(server_name)), session(std::move(session_id)), user(std::move(user_name)) {}

  std::string server;
  std::string session;
  std::string user;
};

class ForwardOptions {
 public:
  ForwardOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::optional<std::chrono::milliseconds> idle;  // instead of the server's clocks
  std::optional<std::chrono::milliseconds> absolute;
  std::stop_token stop;     // gives the call up: it is cancelled at the server
  bool repeatable = false;  // running it twice does no harm; see repeatable()
  json::View tool;          // as its server listed it: decides the same, if a call was cut off
  // The params of each progress notification, with the token the request came with. Not called for a request
  // without a token.
  std::function<void(const json::Raw& params)> on_progress;
  std::shared_ptr<void> caller;  // yours: found again in RunningCall
  // The client whose call it is: waiting calls take turns by client, and a client has a share of
  // max_waiting_calls. It must outlive the call. Null: a request of the pool or the
  // gateway itself, which has no share.
  const Principal* client = nullptr;
};

struct ForwardedAnswer {
  ForwardedAnswer(rpc::Message from_server, mcp::Revision of_server)
      : message(std::move(from_server)), revision(of_server) {}

  rpc::Message message;
  mcp::Revision revision;  // of the connection that it came on
};

// A call that an upstream is busy with.
struct RunningCall {
  std::string session;
  std::string user;
  std::string_view method;
  std::shared_ptr<void> caller;
};

// The calls of clients that an upstream is busy with: those that have a ForwardOptions::caller.
struct ClientCalls {
  std::size_t count = 0;
  // Of the call that was sent last, if all are of one session or there is only one; null otherwise.
  std::shared_ptr<void> caller;
};

struct UpstreamStatus;

// One way to one server: a process or a connection, and its successors. What a server has, unless it is
// shared, once per session or user.
class Upstream {
 public:
  virtual ~Upstream() = default;

  virtual const ServerSpec& spec() const noexcept = 0;
  // The session or the user it belongs to; empty when it is shared.
  virtual const std::string& key() const noexcept = 0;
  virtual State state() const noexcept = 0;
  virtual std::uint64_t generation() const noexcept = 0;
  // Null unless ready or draining.
  virtual std::shared_ptr<UpstreamConnection> connection() const noexcept = 0;
  // In the order in which they were sent.
  virtual std::vector<RunningCall> calls() const = 0;
  // In constant time.
  virtual ClientCalls client_calls() const = 0;
  virtual UpstreamStatus status() const = 0;
};

// What servers say unasked. All are called on the loop; none may block.
struct UpstreamHandlers {
  // The client capabilities to declare to a server, an object; absent: none. Asked at each handshake.
  std::function<json::Raw(const Upstream&)> capabilities;
  // The least severe log messages to ask a server for; absent: PoolOptions::client has it. Asked at each
  // handshake.
  std::function<mcp::LoggingLevel(const Upstream&)> log_level;
  // Sampling, elicitation, roots: a request of a server of the legacy era. Without it they are refused.
  std::function<Task<Answer>(std::shared_ptr<Upstream>, Request)> request;
  // Log messages, list changes, resource updates; and progress that belongs to no call.
  std::function<void(const std::shared_ptr<Upstream>&, std::string_view method, const json::Raw& params)>
      notified;
  // Every change of state.
  std::function<void(const std::shared_ptr<Upstream>&, const Transition&)> changed;
  // A server that was shared is not any more: every session has an upstream of its own from now on.
  std::function<void(const std::string& server)> kept_apart;
};

// Twice the number of cores that this process may use, and 4 at least.
std::size_t default_concurrent_starts() noexcept;

struct PoolLimits {
  std::size_t max_stdio_processes = 50;  // running at once, those that are being started or stopped included
  std::size_t max_start_queue = 200;     // servers that wait for a process to be allowed them
  std::size_t max_concurrent_starts =
      default_concurrent_starts();  // of programs, from their start until they have answered the handshake
  std::size_t max_calls = 16'384;   // under way at once, at all servers
  std::size_t max_waiting_calls = 16'384;        // that wait for their server's start or for their turn
  std::size_t max_client_waiting_calls = 4'096;  // of them: of one client
  std::chrono::milliseconds evict_after{
      1'000};  // idle for this long, a server may lose its process to another

  bool operator==(const PoolLimits&) const = default;
};

// Returns the value that ${secret:NAME} stands for. Asked at each start of a server that refers to it, within
// the server's spawn clock.
using SecretStore = std::function<Task<Result<std::string>>(std::string name)>;

struct PoolOptions {
  PoolOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  PoolLimits limits;
  mcp::ClientOptions client;  // name, limits and log of all connections; its handlers are the pool's
  UpstreamHandlers handlers;
  std::map<std::string, Connector> connectors;  // what a NamedConnector names
  // What a NamedConnector names where the pool does not make the mcp::Client itself. A name in both maps is
  // opened by the opener. Opening is bounded by the server's clocks spawn and handshake together.
  std::map<std::string, UpstreamOpener> openers;
  SecretStore secrets;       // without it, a server that has ${secret:NAME} is not started
  ManifestOptions manifest;  // of every process that is started
  // Where the values of references are added, for as long as a server is connected with them. The pool
  // replaces them in its errors and in the log of `client`. Null: one of its own.
  std::shared_ptr<SharedRedactor> redactor;
};

// What is known of one upstream now.
struct UpstreamStatus {
  std::string server;
  std::string key;
  State state = State::idle;
  std::uint64_t generation = 0;
  std::string connection;  // "server (pid 12)", "tcp:…"; empty when there is none
  std::vector<MissingContainment> missing_containment;  // of its process
  bool healthy = false;           // ready, and this very connection has answered within the interval
  Clock::time_point since{};      // of its state
  Clock::time_point last_sign{};  // of life
  std::size_t calls = 0;          // under way
  std::size_t waiting = 0;        // for its start
  unsigned failures = 0;          // in a row
  std::optional<Error> last_error;
  Sharing sharing = Sharing::shared;  // as it is practised
  std::string sharing_evidence;       // why, where it was found out
  std::vector<Transition> history;
};

// A ready upstream, held: it is not stopped for being idle, nor for another server's sake.
class Lease {
 public:
  class Held {
   public:
    virtual ~Held() = default;
  };
  Lease(std::shared_ptr<Upstream> upstream, std::shared_ptr<UpstreamConnection> connection,
        std::unique_ptr<Held> held)
      : upstream_(std::move(upstream)), connection_(std::move(connection)), held_(std::move(held)) {}

  const std::shared_ptr<Upstream>& upstream() const noexcept { return upstream_; }
  // The one that was ready when the lease was made; never null.
  const std::shared_ptr<UpstreamConnection>& connection() const noexcept { return connection_; }

 private:
  std::shared_ptr<Upstream> upstream_;
  std::shared_ptr<UpstreamConnection> connection_;
  std::unique_ptr<Held> held_;
};

// Starts that a call waits for come before background starts in the queue for max_concurrent_starts.
enum class StartPriority : std::uint8_t { call, background };

class Pool {
 public:
  static std::shared_ptr<Pool> create(Loop& loop, PoolOptions options = PoolOptions());
  virtual ~Pool() = default;

  // ---- servers: kind validation for a name that is there already, or is not ----
  virtual Result<void> add(ServerSpec spec) = 0;
  // New calls go by the new spec at once; those under way finish by the old one.
  virtual Result<void> update(ServerSpec spec) = 0;
  virtual Result<void> remove(std::string_view server) = 0;
  virtual Result<void> disable(std::string_view server) = 0;
  virtual Result<void> enable(std::string_view server) = 0;
  // What servers that name it are connected with from their next start on.
  virtual void set_connector(std::string name, Connector connector) = 0;

  // ---- calls ----
  // Sends a request under an id and a progress token of our own, encoded for the connection that it goes out
  // on, and returns the answer as it came (a result or an error of the server; its id is ours). Errors are
  // what kept it from being answered: validation (no such server), resource_exhausted (a limit of ours;
  // detail().retry_after), spawn, connection_failed, timeout, cancelled, process_exited, closed.
  virtual Task<Result<ForwardedAnswer>> forward(Target target,
                                                std::shared_ptr<const mcp::OutgoingRequest> request,
                                                ForwardOptions options = ForwardOptions()) = 0;
  // The same for a request that is sent as it is.
  Task<Result<rpc::Message>> call(Target target, rpc::Message request,
                                  ForwardOptions options = ForwardOptions());
  // For requests such as tools/list and resources/subscribe. Counts as a call under way. `client`: see
  // ForwardOptions; lives until this has ended.
  virtual Task<Result<Lease>> acquire(Target target, std::stop_token stop = {},
                                      StartPriority priority = StartPriority::call,
                                      const Principal* client = nullptr) = 0;
  // This very upstream, which is not started for it; for as long as one likes, as it counts for nothing else
  // and nobody waits for it when the upstream has to end. Kind closed when it is not ready.
  virtual Result<Lease> hold(const std::shared_ptr<Upstream>& upstream) = 0;
  // To an upstream that is ready; a server that does not run has missed nothing.
  virtual Result<void> notify(const Target& target, std::string_view method, const json::Raw& params) = 0;
  // Starts the target's upstream unless it runs, and returns it. Does not count as a call. Errors as call()
  // has them.
  // `client`: see ForwardOptions.
  virtual Task<Result<std::shared_ptr<Upstream>>> warm(Target target, std::stop_token stop = {},
                                                       const Principal* client = nullptr) = 0;
  // Drains and stops the upstreams of these sessions: one walk over all servers, in slices.
  virtual Task<void> end_sessions(std::set<std::string, std::less<>> sessions) = 0;

  // ---- looking on ----
  // Of all upstreams, and of servers without one. With thousands of them it takes milliseconds;
  // server_after() and upstreams() go over them in steps.
  virtual std::vector<UpstreamStatus> status() const = 0;
  // The name of the first server after `server`, in the order of names; "" is before all. nullopt: there is
  // none. A server that was removed counts until its upstreams have stopped.
  virtual std::optional<std::string> server_after(std::string_view server) const = 0;
  // The upstreams of a server, ordered by key, and then those that are being stopped.
  virtual std::vector<std::shared_ptr<Upstream>> upstreams(std::string_view server) const = 0;
  virtual std::size_t processes() const noexcept = 0;  // of max_stdio_processes, in use
  // The secrets that servers are connected with now: for text of servers that did not come as an error of the
  // pool's.
  virtual std::shared_ptr<const Redactor> redactor() const = 0;

  // Refuses new calls, lets those under way finish for `grace`, stops everything, and ends when all of it is
  // gone.
  virtual Task<void> shutdown(std::chrono::milliseconds grace) = 0;
};

// Whether a call may be sent again although the first may have run: a request that only reads, or a tool
// whose annotations say that it does, or that running it twice is the same as once. `tool` is the tool as its
// server listed it; absent when it is not known.
bool repeatable(std::string_view method, json::View tool = json::View());

// What the result of a repeated call has in its `_meta`: {"attempts":2,"reason":"process exited"}.
inline constexpr std::string_view kRetriedKey = "fairlead/retried";

}  // namespace fairlead::pool
