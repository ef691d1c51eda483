// Server: what an MCP server offers, apart from who is connected to it. Register tools, resources and
// prompts, then serve it on any number of connections (mcp/serve.hpp); every revision is served, decided
// request by request.
//
// Registration may go on while it is served, from any thread: clients are told that lists have changed.
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

// Thrown by a handler to answer with a tool error of this text. What else it throws is logged and told as
// "the tool failed".
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How tasks are kept.
struct TaskOptions {
  TaskOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::size_t max_tasks = 4096;  // running or kept; beyond it the oldest one whose end was seen makes room
  std::size_t max_questions = 1000;                      // that one task may ask, in all
  std::chrono::milliseconds ttl{std::chrono::hours(1)};  // kept, and let run, for so long from its creation
  std::chrono::milliseconds max_ttl{std::chrono::hours(24)};  // the most a client of 2025-11-25 may ask for
  std::chrono::milliseconds poll_interval{500};               // what clients are told
};

class Server {
 public:
  using Variables = std::map<std::string, std::string>;

  using PlainTool = std::function<Result<ToolResult>(const Context&, json::View arguments)>;
  using CoroutineTool = std::function<Task<Result<ToolResult>>(Context, json::Raw arguments)>;
  using ReadResource =
      std::function<Task<Result<std::vector<ResourceContents>>>(Context, std::string uri, Variables)>;
  using GetPrompt = std::function<Task<Result<PromptResult>>(Context, Variables arguments)>;
  // `value` is what the user has typed so far; `context` are arguments already chosen.
  using Complete = std::function<CompletionResult(const std::string& argument, const std::string& value,
                                                  const Variables& context)>;

  Server(std::string name, std::string version);
  explicit Server(Implementation implementation);

  Server& instructions(std::string text);
  // Lists longer than this are paginated. 0: never.
  Server& page_size(std::size_t entries);
  // Names where this server is served, for servers that share state_keys(): state of one endpoint is refused
  // at another. The server's own name by default. Before serving.
  Server& endpoint(std::string name);
  // For results of lists and resources in the modern era.
  Server& cache_hint(CacheHint hint);
  // Keys that protect what a modern client carries between two rounds, the newest first; each at least 32
  // bytes. What is sealed is bound to the endpoint, the principal, the method, the tool and its arguments:
  // anything else is refused with -32602. Without keys the server makes one of its own when it starts: enough
  // for one process.
  Server& state_keys(std::vector<std::string> keys, std::chrono::seconds lifetime = std::chrono::minutes(10));

  // Declares an extension, with its settings if it has any; its methods are served from then on, before none
  // of them is. Before serving. Throws std::invalid_argument for what is no identifier or no object.
  Server& extension(std::string id, json::Raw settings = json::Raw());

  // How the tasks of tools with TaskSupport are kept. Both forms of tasks are offered as soon as there is
  // such a tool. Before serving.
  Server& tasks(TaskOptions options);

  // Errors: kind validation, when a schema is none, or a name is taken (use remove_tool first) or illegal.
  Result<void> add_tool(ToolSpec spec, PlainTool handler);
  Result<void> add_tool(ToolSpec spec, CoroutineTool handler);
  bool remove_tool(const std::string& name);

  Result<void> add_resource(ResourceSpec spec, ReadResource read);
  // `spec.uri` is an RFC 6570 template; its variables reach the handler by name.
  Result<void> add_resource_template(ResourceSpec spec, ReadResource read, Complete complete = nullptr);
  bool remove_resource(const std::string& uri);
  // Tells whoever has subscribed to it.
  void resource_updated(const std::string& uri);

  // Offers a skill: its SKILL.md among the resources, its other files to whoever has read that, and the
  // methods of the extension for it, which is declared with `directoryRead` for as long as there is one. Kind
  // validation when it is no skill, or one of its addresses is taken.
  Result<void> add_skill(Skill skill);
  bool remove_skill(const std::string& uri);  // of its SKILL.md

  Result<void> add_prompt(PromptSpec spec, GetPrompt get, Complete complete = nullptr);
  bool remove_prompt(const std::string& name);

  // Tells the client that was sent to a URL that what it was to do there is done (2025-11-25 only); see
  // Context::require_url(). From any thread.
  void elicitation_complete(const std::string& elicitation_id);

  // From now on `backend` answers. Of what is registered here only tools count: calls to them do not reach
  // the backend, which has to list them itself. Before serving.
  Server& backend(std::shared_ptr<Backend> backend);
  // For a backend: tells clients that a list has changed; all of them, or those `concerns` says yes to.
  void tools_changed(const Concerns& concerns = nullptr);
  void resources_changed(const Concerns& concerns = nullptr);
  void prompts_changed(const Concerns& concerns = nullptr);

  const std::shared_ptr<ServerState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace fairlead::mcp
