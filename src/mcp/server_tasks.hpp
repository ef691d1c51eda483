// Tools that run as tasks, and the methods by which a client looks after them.
#pragma once

#include "mcp/running.hpp"
#include "mcp/subscriptions.hpp"
#include "mcp/tool_calls.hpp"

namespace fairlead::mcp {

// Whether a call is to be a task from its start. An error when it may not run the way it is asked for.
// Otherwise sees to it that the handler may become one.
Result<bool> starts_as_task(const FeatureCall& call, const ToolEntry& tool);
// The answer to a call that is one from its start, and to one that has become one.
Answer start_task(const FeatureCall& call, const FoundTool& found);
Answer keep_task(const FeatureCall& call, const FoundTool& found, GoesOn<ToolResult> handler);

// tasks/…, in both forms.
Task<Answer> serve_tasks(FeatureCall call);

// The tasks a subscription asks for by `ids`, those that there are. An error when the client may not ask.
// Pauses between parts of a long list; the caller keeps the text of `ids`.
Task<Result<std::set<std::string>>> read_task_filter(std::shared_ptr<ServerState> server,
                                                     std::shared_ptr<RequestState> state, json::View ids);
// A task as notifications/tasks has it; absent when there is none (any more).
json::Raw detailed_task(ServerState& server, const RequestState& state, const std::string& id);

// A question of a handler: to a task's client, and by a request to a legacy one.
Task<Result<json::Raw>> ask_as_task(std::shared_ptr<RequestState> state, std::string method, json::Raw params,
                                    std::string key);
Task<Result<json::Raw>> ask_legacy_client(std::shared_ptr<RequestState> state, std::string method,
                                          json::Raw params);

}  // namespace fairlead::mcp
