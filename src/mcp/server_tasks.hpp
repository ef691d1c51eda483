// Runs tools as tasks, and serves the tasks/… methods.
#pragma once

#include "mcp/handler_run.hpp"
#include "mcp/subscriptions.hpp"
#include "mcp/tool_calls.hpp"

namespace fairlead::mcp {

// Returns whether a tools/call request runs as a task from its start. Fails if the tool has to run as a task
// but the client did not request or does not support that, or if the client requested a task but the tool
// does not support tasks. In the modern era also sets RequestState::may_become_task.
Result<bool> must_start_as_task(const FeatureRequest& request, const ToolEntry& tool);
// start_task() runs a request as a task from its start; continue_as_task() continues a request whose handler
// has called become_task(). Both return the answer that contains the task; the handler runs after that answer
// was sent.
Answer start_task(const FeatureRequest& request, const ResolvedToolCall& resolved);
Answer continue_as_task(const FeatureRequest& request, const ResolvedToolCall& resolved,
                        SuspendedHandler<ToolResult> handler);

// Serves the tasks/… methods, in both forms of tasks (see TaskForm).
Task<Answer> serve_task_request(FeatureRequest request);

// Reads `ids`, the task ids in the filter of a subscriptions/listen request, and returns those that are ids
// of tasks of the client. Fails if the client did not declare the tasks extension or `ids` is not an array of
// strings. Reads a long array in slices. REQUIRES: the text of `ids` outlives the returned task.
Task<Result<std::set<std::string>>> read_task_filter(std::shared_ptr<ServerState> server,
                                                     std::shared_ptr<RequestState> state, json::View ids);
// Returns the complete state of a task, as the params of notifications/tasks contain it; absent if the task
// is unknown or has been removed.
json::Raw find_detailed_task_json(ServerState& server, const RequestState& state, const std::string& id);

// Both obtain the response to an input request of a handler. The first adds the input request to the task of
// the handler, from which a modern client reads it; it fails with `cancelled` if the task has ended, ends
// before the response, or has reached max_questions. The second sends a request to the client (legacy era).
Task<Result<json::Raw>> request_input_as_task(std::shared_ptr<RequestState> state, std::string method,
                                              json::Raw params, std::string key);
Task<Result<json::Raw>> request_input_from_legacy_client(std::shared_ptr<RequestState> state,
                                                         std::string method, json::Raw params);

}  // namespace fairlead::mcp
