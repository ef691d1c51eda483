// Reads and writes tasks as JSON, and serves the tasks/… methods of the core form (revision 2025-11-25),
// which are the same for servers and clients. For the two forms of tasks see TaskForm.
#pragma once

#include "fairlead/json/writer.hpp"
#include "mcp/task_store.hpp"

namespace fairlead::mcp {

inline constexpr std::string_view kRelatedTaskKey = "io.modelcontextprotocol/related-task";

// Writes the members of a task in the form `task.owner.form`, without its result or error.
void write_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& snapshot);
// Like write_task(), but also writes the open input requests and the result or error (extension form only).
void write_detailed_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& snapshot);

// Returns the params of a tasks/… request for one task.
json::Raw task_id_params(const std::string& id);

// Returns a copy of `object` with the id of the related task in its `_meta`.
json::Raw with_related_task(const json::Raw& object, const std::string& id);

// Returns the CreateTaskResult object: the response to a request that runs as a task (core form).
json::Raw create_task_result(TaskStore& store, const TaskPtr& task);
// Returns the time to live that the member `task` of a request contains; nullopt if it contains none. Fails
// with -32602 if the member is invalid.
Result<std::optional<std::chrono::milliseconds>> requested_ttl(json::View task_param);

// A tasks/get, tasks/result, tasks/list or tasks/cancel request of the core form.
struct CoreTaskRequest {
  CoreTaskRequest(std::shared_ptr<TaskStore> task_store, TaskOwner task_owner)
      : store(std::move(task_store)), owner(std::move(task_owner)) {}

  std::shared_ptr<TaskStore> store;
  TaskOwner owner;
  std::string method;
  json::Raw params;
  std::size_t page_size = 1000;  // maximum number of entries in a page of tasks/list
  std::stop_token stop;
};
// Serves the request. A tasks/result request waits until the task has ended. REQUIRES: `loop` is the loop on
// which the task runs.
Task<Answer> serve_core_task_request(CoreTaskRequest request, Loop& loop);

Error unknown_task_error();

}  // namespace fairlead::mcp
