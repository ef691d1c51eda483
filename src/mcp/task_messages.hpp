// Tasks on the wire. The core form (2025-11-25) is served by both sides in the same way.
#pragma once

#include "fairlead/json/writer.hpp"
#include "mcp/task_store.hpp"

namespace fairlead::mcp {

inline constexpr std::string_view kRelatedTask = "io.modelcontextprotocol/related-task";

// The members of a task in the form it has, without its outcome.
void write_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& now);
// The same, and what belongs to its status: questions, result or error (extension only).
void write_detailed_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& now);

// A message with a mark of the task it belongs to, in its `_meta`.
json::Raw with_related_task(const json::Raw& object, const std::string& id);

// The answer to a request that became a task (core).
json::Raw created_task(TaskStore& store, const TaskPtr& task);
// How long a request asks its task to be kept, if it says so; an error when it says it wrongly.
Result<std::optional<std::chrono::milliseconds>> wanted_ttl(json::View task_param);

// tasks/get, tasks/result, tasks/list and tasks/cancel.
struct CoreTaskRequest {
  CoreTaskRequest(std::shared_ptr<TaskStore> kept, TaskOwner asking)
      : store(std::move(kept)), owner(std::move(asking)) {}

  std::shared_ptr<TaskStore> store;
  TaskOwner owner;
  std::string method;
  json::Raw params;
  std::size_t page = 1000;  // tasks/list
  std::stop_token stop;
};
Task<Answer> serve_core_tasks(CoreTaskRequest request, Loop& loop);

Error unknown_task();

}  // namespace fairlead::mcp
