// Client: an MCP client for servers of every revision. When it connects, it detects the era of the server:
// legacy (revisions up to 2025-11-25, which begin with `initialize`) or modern (2026-07-28 and later). Its
// functions are the same in both eras: typed functions for common methods, request() for all others.
//
// Example:
//   auto client = co_await mcp::Client::connect(loop, "stdio:npx -y @modelcontextprotocol/server-everything");
//   if (!client) co_return;
//   auto sum = co_await (*client)->call_tool("add", *json::Raw::parse(R"({"a":2,"b":3})"));
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/era_cache.hpp"
#include "fairlead/mcp/forwarded_request.hpp"
#include "fairlead/mcp/skill.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/protocol/extension.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/transport/connect.hpp"

namespace fairlead::mcp {

// Callbacks for requests and notifications of the server. The client declares a capability for each request
// handler that is set. Called on the loop thread.
struct ClientHandlers {
  // Serves sampling/createMessage: receives its params and returns its result.
  std::function<Task<Result<json::Raw>>(json::Raw params)> sample;
  // Serves an elicitation in form mode: the user fills in a form. If the user accepts the form, the client
  // adds the default values of the schema for the members that the returned content omits.
  std::function<Task<Result<ElicitResult>>(std::string message, json::Raw requested_schema)> elicit;
  // Serves an elicitation in URL mode: the user visits `url`.
  std::function<Task<Result<ElicitResult>>(std::string message, std::string url)> elicit_url;
  // Serves roots/list.
  std::function<std::vector<Root>()> roots;
  // Called for each notification of the server: log messages, list changes, resource updates.
  std::function<void(std::string_view method, const json::Raw& params)> on_notification;
  // Called after the client has reconnected. `reason` is the error that ended the previous connection. The
  // new connection is a new session at the server, in which the client has already restored its subscriptions
  // and its log level.
  std::function<void(const Error& reason)> on_reconnected;

  // For a gateway, which declares its clients' capabilities and forwards the server's requests to them.
  // `capabilities`, if present, is declared instead of the capabilities that follow from the handlers above.
  // `on_request`, if set, serves every request of the server except `ping`; the handlers above are then not
  // called.
  json::Raw capabilities;
  std::function<Task<Answer>(Request)> on_request;
  // Called when the connection has ended. All pending calls have failed by then.
  std::function<void(const Error& reason)> on_ended;
};

// When a client reconnects after its connection was lost (not closed by close()): never, only to servers that
// are child processes, or always. The client makes one attempt, at the next request.
enum class Reconnect : std::uint8_t { never, children, always };

struct ClientOptions {
  ClientOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Implementation info{"fairlead", "0.1.0", {}, {}, {}, {}};
  transport::ConnectOptions connect;
  ClientHandlers handlers;
  Extensions extensions;                    // declared to the server
  std::optional<Revision> pinned_revision;  // if set, the only revision that the client uses
  // Whether the client first sends `server/discover` (the probe) to detect the era of the server. If false,
  // the client uses the pinned revision, or else the newest legacy one.
  bool probe = true;
  // Remembers which servers are legacy, so that they are not probed again. If null, the client has a private
  // cache, which it uses when it reconnects.
  std::shared_ptr<EraCache> era_cache;
  // The key of the server in `era_cache`. If empty, the key is the origin of the server (HTTP) or its
  // address. A connection that is made by a Connector has no address: with an empty key, the server is not
  // stored in `era_cache`.
  std::string era_key;
  std::chrono::milliseconds era_max_age = EraCache::kMaxAge;  // of the private cache
  // How long the client waits for a response to the probe before it sends `initialize`; a legacy server may
  // never respond to the probe. If a modern response to the probe arrives later, but before the response to
  // `initialize`, the server still counts as modern. At most half of handshake_timeout is used. With a pinned
  // revision, and over HTTP, the client waits for handshake_timeout instead.
  std::chrono::milliseconds probe_timeout{3'000};
  std::chrono::milliseconds handshake_timeout{30'000};  // for the whole handshake, once connected
  // Whether the server may run a tool call as a task (see TaskSupport), which the client then polls until the
  // task ends. In the modern era the client declares to the server that it may.
  bool accept_tasks = true;
  // Revision 2025-11-25: whether the server may request that the client runs sampling and elicitation as
  // tasks. The client declares this for each of these handlers that is set.
  bool serve_tasks = false;
  // Revision 2025-11-25: how long the client waits, before it repeats a call that required a URL elicitation,
  // for the notification that the elicitation is complete.
  std::chrono::milliseconds url_completion_wait{10'000};
  std::optional<LoggingLevel> log_level;  // the level requested from the server; nullopt requests none
  bool cache_results = true;              // modern era: reuse results for as long as the server allows
  bool stale_on_error = false;            // reuse expired results while the server is unreachable
  Reconnect reconnect = Reconnect::children;
  ListLimits list_limits;  // limits on the server's lists
};

// The changes that a subscription of a Client is for.
struct SubscriptionFilter {
  bool tools = false;  // tools/list_changed
  bool prompts = false;
  bool resources = false;
  std::vector<std::string> uris;  // updates of these resources
};

// Timeouts, cancellation and callbacks of one call, of a tool or of any other method.
class ClientCallOptions {
 public:
  ClientCallOptions() {}  // NOLINT: not an aggregate

  std::optional<std::chrono::milliseconds> timeout;         // longest time without a response or progress
  std::optional<std::chrono::milliseconds> max_total_time;  // for the whole call
  std::stop_token stop;                                     // cancels the call
  std::function<void(double progress, std::optional<double> total, const std::string& message)> on_progress;
  // Tool calls only: called when the call has become a task, and whenever the task has changed. `timeout`
  // then applies to each poll of the task, not to the task as a whole.
  std::function<void(const TaskInfo& task)> on_task;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  // Connects to `uri` and detects the era of the server. After a lost connection the client reconnects
  // according to ClientOptions::reconnect. Fails like transport::connect(), with `connection_failed` if there
  // is no common revision, and with `validation` if an extension in `options` is invalid.
  static Task<Result<std::shared_ptr<Client>>> connect(Loop& loop, std::string uri,
                                                       ClientOptions options = ClientOptions());
  // Like connect(), but `connector` makes the connection, and the client does not reconnect. Calls
  // `connector` a second time if the server exits when it is probed, or rejects `initialize` after a probe.
  static Task<Result<std::shared_ptr<Client>>> connect(Loop& loop, Connector connector,
                                                       ClientOptions options = ClientOptions());
  // Like connect(), on an existing connection. Fails if the server exits when it is probed, or rejects
  // `initialize` after a probe: the client cannot connect a second time.
  static Task<Result<std::shared_ptr<Client>>> connect_over(std::shared_ptr<Connection> connection,
                                                            ClientOptions options = ClientOptions());

  virtual ~Client() = default;

  // The server's description of itself, as received in the handshake. After a reconnect the returned values
  // may differ; views that were returned before then become invalid if they differ.
  virtual Revision revision() const noexcept = 0;
  virtual json::View server_info() const noexcept = 0;
  virtual json::View server_capabilities() const noexcept = 0;
  virtual std::string instructions() const = 0;
  // Returns the settings of an extension that the server declared; absent if the server did not declare it.
  json::View server_extension(std::string_view id) const { return server_capabilities()["extensions"][id]; }

  // Sends a request of any method and returns its result. `params` is an object or absent. The client adds
  // the envelope (see docs/glossary.md), answers input requests of the server with the handlers, and reports
  // progress.
  virtual Task<Result<json::Raw>> request(std::string method, json::Raw params = json::Raw(),
                                          ClientCallOptions options = ClientCallOptions()) = 0;

  // Forwards a request of another peer. The request is encoded for this connection, with an id and a progress
  // token of this client. co_await yields a Result<Message> with the unmodified response. on_progress
  // receives the params of each progress notification; if `request` has a progress token, they contain that
  // token. REQUIRES: `request` outlives the call.
  virtual Peer::Forward forward(const ForwardedRequest& request, CallOptions options = CallOptions()) = 0;
  // Returns `request` encoded for this connection, as forward() sends it.
  virtual rpc::Rope encode_forwarded(const ForwardedRequest& request,
                                     ForwardedRequest::EncodeOptions options) const = 0;
  virtual const std::shared_ptr<Peer>& peer() const noexcept = 0;
  // Queues a notification without waiting until it is written. Fails if the queue exceeds max_backlog_bytes.
  virtual Result<void> notify(std::string_view method, const json::Raw& params = json::Raw()) = 0;

  // Requests all pages of a list and returns the entries as the server sent them. `member` is the member of
  // the result that holds the entries.
  virtual Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) = 0;
  // Omits and logs tools whose `x-mcp-header` annotations are invalid, or that exceed
  // ClientOptions::list_limits.
  Task<Result<std::vector<json::Raw>>> tools();
  Task<Result<std::vector<json::Raw>>> resources();
  Task<Result<std::vector<json::Raw>>> resource_templates();
  Task<Result<std::vector<json::Raw>>> prompts();

  // Calls a tool. If the call becomes a task, polls the task and returns its result: the handlers answer the
  // input requests of the task, and `stop` and `max_total_time` cancel the task. `arguments` is an object or
  // absent. If tools() has returned the tool before, validates structured content against its output schema.
  virtual Task<Result<ToolResult>> call_tool(std::string name, json::Raw arguments = json::Raw(),
                                             ClientCallOptions options = ClientCallOptions()) = 0;
  // Calls a tool and returns the task that the call has become. If the server returns a result instead, the
  // returned task has no id and has completed. `ttl` is the time to live requested from the server (revision
  // 2025-11-25 only).
  virtual Task<Result<TaskInfo>> call_tool_as_task(
      std::string name, json::Raw arguments = json::Raw(), ClientCallOptions options = ClientCallOptions(),
      std::optional<std::chrono::milliseconds> ttl = std::nullopt) = 0;
  // Polls a task until it ends and returns its result.
  virtual Task<Result<ToolResult>> task_result(TaskInfo task,
                                               ClientCallOptions options = ClientCallOptions()) = 0;
  // Returns the present state of a task.
  Task<Result<TaskInfo>> task_get(std::string id);
  // Sends the responses to the input requests of a task, by their keys (modern era).
  Task<Result<void>> task_update(std::string id, json::Raw input_responses);
  Task<Result<void>> task_cancel(std::string id);
  // Returns all tasks of this session (revision 2025-11-25 only).
  Task<Result<std::vector<TaskInfo>>> task_list();
  Task<Result<std::vector<ResourceContents>>> read_resource(std::string uri);
  Task<Result<PromptResult>> get_prompt(
      std::string name, std::map<std::string, std::string> arguments = std::map<std::string, std::string>());
  // Subscribes to changes, which are passed to ClientHandlers::on_notification. Returns the id for
  // unsubscribe(). In the legacy era servers send notifications of list changes without a subscription, so
  // nothing is sent for these. Fails with the server's error, and with `validation` if the server supports
  // none of the requested changes.
  virtual Task<Result<std::uint64_t>> subscribe(SubscriptionFilter filter) = 0;
  // Subscribes to the updates of one resource.
  Task<Result<std::uint64_t>> subscribe(std::string uri);
  virtual Task<Result<void>> unsubscribe(std::uint64_t subscription_id) = 0;

  // Lists the server's skills (mcp/skill.hpp) without reading their files. Omits and logs invalid entries.
  virtual Task<Result<std::vector<SkillEntry>>> skills() = 0;
  // Returns the skill whose SKILL.md has this URI.
  Task<Result<SkillEntry>> skill(std::string uri);
  // Reads one file of a skill. Fails with `validation` if `uri` is not a file of the skill, or if the size,
  // the digest or (for SKILL.md) the front matter differ from the entry. SKILL.md is verified before any
  // other file is read: if this client has not verified it yet, this function first reads SKILL.md.
  virtual Task<Result<SkillFile>> read_skill_file(SkillEntry skill, std::string uri) = 0;
  // Lists a directory, all pages. Each entry is a resource; directories have the type inode/directory.
  Task<Result<std::vector<json::Raw>>> read_directory(std::string uri);

  // Sets the least severe level of log messages that the server sends. Legacy era: for the session. Modern
  // era: for later requests.
  virtual Task<Result<void>> set_log_level(LoggingLevel level) = 0;

  virtual Connection& connection() const noexcept = 0;
  // Returns the error that ended the connection; nullopt while it is open.
  virtual const std::optional<Error>& end_reason() const noexcept = 0;
  // Closes the connection and waits until the child process, if any, has exited.
  virtual Task<void> close() = 0;
};

}  // namespace fairlead::mcp
