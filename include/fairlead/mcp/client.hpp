// Client: the other side of an MCP server, of any revision. It finds out which era the server speaks, and
// from then on looks the same in both: typed calls for the usual things, request() for everything else.
//
//   Result<std::shared_ptr<Client>> client = co_await Client::connect(loop, "stdio:npx -y some-server",
//   options); Result<ToolResult> sum = co_await (*client)->call_tool("add", args);
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/era_cache.hpp"
#include "fairlead/mcp/outgoing_request.hpp"
#include "fairlead/mcp/skill.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/protocol/extension.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/transport/connect.hpp"

namespace fairlead::mcp {

// What a client offers its server. A capability is declared for each that is set.
struct ClientHandlers {
  // `params` as sampling/createMessage has them; the result likewise.
  std::function<Task<Result<json::Raw>>(json::Raw params)> sample;
  // Forms. Defaults of the schema are filled in for members an accepted answer leaves out.
  std::function<Task<Result<ElicitResult>>(std::string message, json::Raw requested_schema)> elicit;
  std::function<Task<Result<ElicitResult>>(std::string message, std::string url)> elicit_url;
  std::function<std::vector<Root>()> roots;
  // What the server says unasked: log messages, list changes, updates.
  std::function<void(std::string_view method, const json::Raw& params)> notified;
  // The connection was lost, for this reason, and has been made again: whatever the server remembered of us
  // is gone, except for subscriptions and the log level, which have been asked for again.
  std::function<void(const Error& lost)> reconnected;

  // For a gateway, whose capabilities and answers are those of others: what to declare instead of what
  // follows from the above, and who is asked instead of them, for every request of the server but `ping`.
  json::Raw capabilities;
  std::function<Task<Answer>(Request)> request;
  // The connection has ended. Calls under way have failed by then.
  std::function<void(const Error& reason)> ended;
};

// When a client whose connection was lost, and not closed by us, makes another one: never, when the server is
// a child process of ours, or whatever its address is. It does so once, at the next request.
enum class Reconnect : std::uint8_t { never, children, always };

struct ClientOptions {
  ClientOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  Implementation info{"fairlead", "0.1.0", {}, {}, {}, {}};
  transport::ConnectOptions connect;
  ClientHandlers handlers;
  Extensions extensions;           // what else this client can do; declared to the server
  std::optional<Revision> pinned;  // speak this and nothing else
  bool probe = true;  // off: speak the newest legacy revision, or the pinned one, without asking first
  // Which servers are known to be legacy and are not probed. Without it a client has a cache of its own, for
  // reconnecting.
  std::shared_ptr<EraCache> eras;
  // The name of the server in `eras`. Empty: its origin (HTTP) or its address. A server behind a Connector is
  // not remembered in `eras` without a name.
  std::string era_key;
  std::chrono::milliseconds era_max_age = EraCache::kMaxAge;  // of a cache of its own
  // A legacy server may not answer a probe at all: `initialize` is sent after this time, and a modern answer
  // to the probe still counts until the server has answered that. Never more than half of
  // handshake_timeout. A pinned revision and HTTP wait for handshake_timeout instead.
  std::chrono::milliseconds probe_timeout{3'000};
  std::chrono::milliseconds handshake_timeout{30'000};  // from the connection to the end of the greeting
  // A tool call may become a task at the server; it is followed to its end. Modern era: declared to the
  // server.
  bool tasks = true;
  // 2025-11-25: what the server asks of us may become a task here. Declared for the handlers that are set.
  bool keep_tasks = false;
  // 2025-11-25: how long to wait for word that the user has done what a URL was for, before the call is made
  // again.
  std::chrono::milliseconds url_completion_wait{10'000};
  std::optional<LoggingLevel> log_level;  // ask the server for its log messages
  bool cache = true;                      // modern era: use results again for as long as the server allows
  bool stale_on_error = false;            // and longer than that while the server cannot be reached
  Reconnect reconnect = Reconnect::children;
  ListLimits lists;  // what the server may list
};

// What to be told of.
struct ListenFilter {
  bool tools = false;  // changes of the list
  bool prompts = false;
  bool resources = false;
  std::vector<std::string> uris;  // changes of these resources
};

// How a call that may take long is to be watched over.
class ToolCallOptions {
 public:
  ToolCallOptions() {}  // NOLINT: not an aggregate

  std::optional<std::chrono::milliseconds> timeout;    // without answer or progress
  std::optional<std::chrono::milliseconds> max_total;  // in all
  std::stop_token stop;
  std::function<void(double progress, std::optional<double> total, const std::string& message)> on_progress;
  // The call has become a task, and each time that has changed. While the server answers, `timeout` does not
  // pass.
  std::function<void(const TaskInfo& task)> on_task;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  // Connects and finds the server's era; ClientOptions::reconnect says when it does so again. Errors as
  // transport::connect() has them; connection_failed also when there is no common revision,
  // validation when the options name what is no extension.
  static Task<Result<std::shared_ptr<Client>>> connect(Loop& loop, std::string uri,
                                                       ClientOptions options = ClientOptions());
  // The same by other means than an address; it does not reconnect. The connector is called a second time for
  // a server that exits when it is probed, or that refuses `initialize` after a probe.
  static Task<Result<std::shared_ptr<Client>>> connect(Loop& loop, Connector connector,
                                                       ClientOptions options = ClientOptions());
  // On an existing connection. A server that exits when it is probed, or that refuses `initialize` after a
  // probe, cannot be started again.
  static Task<Result<std::shared_ptr<Client>>> on(std::shared_ptr<Connection> connection,
                                                  ClientOptions options = ClientOptions());

  virtual ~Client() = default;

  // What the server said of itself. These change, and views of them end, when the client has reconnected to a
  // server that says something else.
  virtual Revision revision() const noexcept = 0;
  virtual json::View server_info() const noexcept = 0;
  virtual json::View capabilities() const noexcept = 0;
  virtual std::string instructions() const = 0;
  // The settings of an extension the server declared; absent when it did not.
  json::View server_extension(std::string_view id) const { return capabilities()["extensions"][id]; }

  // Any method; `params` is an object or absent. Envelope, rounds of questions and progress are taken care
  // of.
  virtual Task<Result<json::Raw>> request(std::string method, json::Raw params = json::Raw(),
                                          ToolCallOptions options = ToolCallOptions()) = 0;

  // co_await: Result<Message>. Sends a request that came from elsewhere, encoded for this connection under an
  // id and a progress token of our own, and returns the answer as it came. on_progress receives the params of
  // each notification, with the token of the request where that has one. `request` lives until the call has
  // ended.
  virtual Peer::Forward forward(const OutgoingRequest& request, CallOptions options = CallOptions()) = 0;
  // Without waiting; refused over max_backlog_bytes.
  virtual Result<void> notify(std::string_view method, const json::Raw& params = json::Raw()) = 0;

  // All pages, each entry as the server sent it.
  virtual Task<Result<std::vector<json::Raw>>> list(std::string method, std::string member) = 0;
  // Without those whose `x-mcp-header` annotations are invalid; the log says why.
  Task<Result<std::vector<json::Raw>>> tools();
  Task<Result<std::vector<json::Raw>>> resources();
  Task<Result<std::vector<json::Raw>>> resource_templates();
  Task<Result<std::vector<json::Raw>>> prompts();

  // A call that becomes a task is followed to its end: its questions are answered by the handlers, and it is
  // cancelled when `stop` or `max_total` say so. `arguments` is an object or absent. Structured content is
  // checked against the tool's output schema, once the tool has been listed.
  virtual Task<Result<ToolResult>> call_tool(std::string name, json::Raw arguments = json::Raw(),
                                             ToolCallOptions options = ToolCallOptions()) = 0;
  // The same, but only until the call has become a task. A server that answers at once gives a task without
  // id that has completed. `ttl` is what we ask for (2025-11-25).
  virtual Task<Result<TaskInfo>> call_tool_as_task(
      std::string name, json::Raw arguments = json::Raw(), ToolCallOptions options = ToolCallOptions(),
      std::optional<std::chrono::milliseconds> ttl = std::nullopt) = 0;
  // Follows a task to its end.
  virtual Task<Result<ToolResult>> task_result(TaskInfo task,
                                               ToolCallOptions options = ToolCallOptions()) = 0;
  Task<Result<TaskInfo>> task_get(std::string id);
  // Answers to the questions of a task, by their keys (modern era).
  Task<Result<void>> task_update(std::string id, json::Raw input_responses);
  Task<Result<void>> task_cancel(std::string id);
  // 2025-11-25 only.
  Task<Result<std::vector<TaskInfo>>> task_list();
  Task<Result<std::vector<ResourceContents>>> read_resource(std::string uri);
  Task<Result<PromptResult>> get_prompt(
      std::string name, std::map<std::string, std::string> arguments = std::map<std::string, std::string>());
  // Asks to be told of changes; they reach ClientHandlers::notified. The number is for unlisten(). A legacy
  // server tells of list changes unasked, so nothing is sent for those. Errors: the server's, and validation
  // when it tells of none of it.
  virtual Task<Result<std::uint64_t>> listen(ListenFilter filter) = 0;
  virtual Task<Result<void>> unlisten(std::uint64_t subscription) = 0;
  Task<Result<std::uint64_t>> subscribe(std::string uri);

  // Skills (mcp/skill.hpp). Nothing of a skill is read but what is asked for. Entries that are none are left
  // out; the log says why.
  virtual Task<Result<std::vector<SkillEntry>>> skills() = 0;
  // By the address of its SKILL.md.
  Task<Result<SkillEntry>> skill(std::string uri);
  // A file of a skill, by its address. Kind validation when size, digest or, for SKILL.md, front matter are
  // not what the entry says, or it is no file of this skill: it must not be used then. Other files are read
  // only once SKILL.md has been read and was what the entry says; where it was not read yet, it is now.
  virtual Task<Result<SkillFile>> read_skill_file(SkillEntry skill, std::string uri) = 0;
  // What is in a directory, all pages, each entry a resource; directories have the type inode/directory.
  Task<Result<std::vector<json::Raw>>> read_directory(std::string uri);

  // Legacy era: the session's level from now on. Modern era: that of later requests.
  virtual Task<Result<void>> set_log_level(LoggingLevel level) = 0;

  virtual Connection& connection() const noexcept = 0;
  // Why it can be used no more; null while it can.
  virtual const std::optional<Error>& end_reason() const noexcept = 0;
  // Closes and waits until a child process is gone.
  virtual Task<void> close() = 0;
};

}  // namespace fairlead::mcp
