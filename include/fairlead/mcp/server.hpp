// Server: the tools, resources, prompts and settings of an MCP server, independent of its connections.
// Register them, then serve the Server on any number of connections (mcp/serve.hpp). Every revision of MCP is
// served; the revision is determined for each request.
//
// Entries may be registered and removed while the Server is served, from any thread: clients are notified of
// the changed lists.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fairlead/mcp/context.hpp"
#include "fairlead/mcp/skill.hpp"
#include "fairlead/mcp/types.hpp"

namespace fairlead::mcp {

struct ServerState;
class Backend;

// Thrown by a handler to answer the call with a tool error of this text. Any other exception of a handler is
// logged, and the client receives the tool error "The tool failed.".
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Limits and lifetimes of tasks.
struct TaskOptions {
  TaskOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // Maximum number of tasks that are running or whose result is retained. At the limit, expired tasks are
  // evicted; if there are none, the oldest tasks whose end the client has observed. If no task can be
  // evicted, no task is created.
  std::size_t max_tasks = 4096;
  std::size_t max_questions = 1000;  // input requests of one task, in total
  // Time to live from creation, if the client requests none. When it is over, the task is stopped and
  // removed.
  std::chrono::milliseconds ttl{std::chrono::hours(1)};
  std::chrono::milliseconds max_ttl{std::chrono::hours(24)};  // upper limit of a TTL that a client requests
  std::chrono::milliseconds poll_interval{500};               // suggested to clients
};

class Server {
 public:
  // Variables of a resource template, or arguments of a prompt, by name.
  using Variables = std::map<std::string, std::string>;

  // Handlers. Called on the loop thread of the client that sent the request. A PlainTool returns its result
  // at once; the others may suspend.
  using PlainTool = std::function<Result<ToolResult>(const Context&, json::View arguments)>;
  using CoroutineTool = std::function<Task<Result<ToolResult>>(Context, json::Raw arguments)>;
  using ReadResource =
      std::function<Task<Result<std::vector<ResourceContents>>>(Context, std::string uri, Variables)>;
  using GetPrompt = std::function<Task<Result<PromptResult>>(Context, Variables arguments)>;
  // Returns the completions of an argument of a prompt or a variable of a template. Also called on the loop
  // thread, and returns at once. `value` is the text typed so far; `context` contains the arguments that are
  // already set.
  using Complete = std::function<CompletionResult(const std::string& argument, const std::string& value,
                                                  const Variables& context)>;

  Server(std::string name, std::string version);
  explicit Server(Implementation implementation);

  Server& instructions(std::string text);
  // Lists of more than `entries` entries are paginated. 0 turns pagination off.
  Server& page_size(std::size_t entries);
  // Sets the name of the endpoint that serves this server. Servers that share request_state_keys() need
  // different names: request state sealed for one endpoint is rejected by another. Default: the name of the
  // server. Call before serving.
  Server& endpoint_name(std::string name);
  // Sets the cache hint in the results of lists and resources/read (modern era only).
  Server& cache_hint(CacheHint hint);
  // Sets the keys that authenticate `requestState`, which a modern client returns in the next round; the
  // newest first, each at least 32 bytes. The state is bound to the endpoint, the principal, the method, the
  // tool and its arguments; if one of them differs in the next round, the state is rejected with -32602. By
  // default the server generates a random key, which is enough if one process serves all rounds. Call before
  // serving.
  Server& request_state_keys(std::vector<std::string> keys,
                             std::chrono::seconds lifetime = std::chrono::minutes(10));

  // Declares an extension, with its settings if it has any. Methods of an extension are rejected unless it is
  // declared. Call before serving. Throws std::invalid_argument if `id` is not an extension identifier or
  // `settings` is not an object.
  Server& extension(std::string id, json::Raw settings = json::Raw());

  // Sets the limits of tasks. Support for tasks is advertised in both eras as soon as a tool whose
  // TaskSupport is not `never` is registered. Call before serving.
  Server& tasks(TaskOptions options);

  // Fails with kind `validation` if a schema is invalid, or the name is invalid or already registered (call
  // remove_tool() first).
  Result<void> add_tool(ToolSpec spec, PlainTool handler);
  Result<void> add_tool(ToolSpec spec, CoroutineTool handler);
  // This and the other remove functions return false if the entry is not registered.
  bool remove_tool(const std::string& name);

  Result<void> add_resource(ResourceSpec spec, ReadResource read);
  // `spec.uri` is an RFC 6570 template; the handler receives its variables by name.
  Result<void> add_resource_template(ResourceSpec spec, ReadResource read, Complete complete = nullptr);
  // Removes a resource that was added with add_resource(). Templates cannot be removed.
  bool remove_resource(const std::string& uri);
  // Notifies the clients that have subscribed to the resource. Thread-safe.
  void notify_resource_updated(const std::string& uri);

  // Registers a skill. Its SKILL.md is listed as a resource; its other files are readable but not listed.
  // While a skill is registered, the skills extension is declared, with `directoryRead`, and its methods are
  // served. Fails with kind `validation` if the skill is invalid or one of its URIs is already registered.
  Result<void> add_skill(Skill skill);
  bool remove_skill(const std::string& uri);  // `uri` is that of its SKILL.md

  Result<void> add_prompt(PromptSpec spec, GetPrompt get, Complete complete = nullptr);
  bool remove_prompt(const std::string& name);

  // Notifies a client that its user has completed the interaction at a URL; see Context::require_url(). The
  // client is the one that was sent the URL with this id. Revision 2025-11-25 only. Thread-safe.
  void notify_elicitation_complete(const std::string& elicitation_id);

  // Lets `backend` serve the requests. Of the registered entries only the tools are still used: their
  // handlers serve calls of them, which do not reach the backend. The backend has to include these tools in
  // its tools/list result. Call before serving.
  Server& backend(std::shared_ptr<Backend> backend);
  // Called by a backend when a list has changed. Notifies the clients for which `predicate` returns true, or
  // all clients if it is empty.
  void notify_tools_changed(const ClientPredicate& predicate = nullptr);
  void notify_resources_changed(const ClientPredicate& predicate = nullptr);
  void notify_prompts_changed(const ClientPredicate& predicate = nullptr);

  // The state that the functions of the library share, such as serve().
  const std::shared_ptr<ServerState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace fairlead::mcp
