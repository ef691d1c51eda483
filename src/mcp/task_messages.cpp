#include "mcp/task_messages.hpp"

#include <charconv>

#include "fairlead/base/base64.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/splice.hpp"

namespace fairlead::mcp {

void write_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& snapshot) {
  const bool core = task.owner.form == TaskForm::core;
  out.key("taskId").string(task.id).key("status").string(to_string(snapshot.status));
  if (!snapshot.message.empty()) out.key("statusMessage").string(snapshot.message);
  out.key("createdAt").string(task.created_at).key("lastUpdatedAt").string(snapshot.updated_at);
  out.key(core ? "ttl" : "ttlMs").integer(task.ttl.count());
  out.key(core ? "pollInterval" : "pollIntervalMs").integer(task.poll_interval.count());
}

void write_detailed_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& snapshot) {
  write_task(out, task, snapshot);
  if (!snapshot.open_input_requests.empty()) {
    out.key("inputRequests").begin_object();
    for (const TaskInputRequest& request : snapshot.open_input_requests) {
      out.key(request.key).begin_object().key("method").string(request.method);
      out.key("params").raw(request.params).end_object();
    }
    out.end_object();
  }
  if (!snapshot.outcome) return;
  if (*snapshot.outcome) {
    out.key("result").raw(**snapshot.outcome);
    return;
  }
  const rpc::WireError error = rpc::to_wire(snapshot.outcome->error());
  out.key("error").begin_object().key("code").integer(error.code).key("message").string(error.message);
  if (!error.data.empty()) out.key("data").raw(error.data);
  out.end_object();
}

json::Raw task_id_params(const std::string& id) {
  json::Writer out;
  out.begin_object().key("taskId").string(id).end_object();
  return out.finish();
}

json::Raw with_related_task(const json::Raw& object, const std::string& id) {
  json::Writer related_task;
  related_task.begin_object().key("taskId").string(id).end_object();
  json::Writer meta;
  meta.begin_object().key(kRelatedTaskKey).raw(related_task.text()).end_object();
  const json::Raw base = object.absent() ? json::Raw::trusted(Bytes::constant("{}"), true) : object;
  json::Splice splice(base.bytes());
  const json::View existing = json::View(base)["_meta"];
  if (existing.is(json::Type::object)) {
    splice.insert_member(existing.text(), kRelatedTaskKey, related_task.text());
  } else {
    splice.insert_member(base.text(), "_meta", meta.text());
  }
  return json::Raw::trusted(splice.joined(), base.is_one_line());
}

json::Raw create_task_result(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object().key("task").begin_object();
  write_task(out, *task, store.snapshot(task));
  out.end_object().end_object();
  return out.finish();
}

Result<std::optional<std::chrono::milliseconds>> requested_ttl(json::View task_param) {
  using Ttl = std::optional<std::chrono::milliseconds>;
  if (!task_param.is(json::Type::object)) return rpc::invalid_params("task is not an object");
  const json::View ttl = task_param["ttl"];
  if (ttl.absent()) return Ttl();
  if (ttl.is(json::Type::null)) return Ttl(std::chrono::milliseconds::max());
  const std::optional<double> value = ttl.as_double();
  if (!value || !(*value >= 0)) return rpc::invalid_params("task.ttl is not a number of milliseconds");
  return Ttl(std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*value, 1e15))));
}

Error unknown_task_error() {
  return rpc::invalid_params("Unknown task");
}

namespace {

Answer task_answer(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object();
  write_task(out, *task, store.snapshot(task));
  out.end_object();
  return out.finish();
}

// Returns the number in a cursor of tasks/list, which is the number of the last task of the previous page; 0
// if `cursor` is absent.
Result<std::uint64_t> read_task_cursor(json::View cursor) {
  if (cursor.absent()) return std::uint64_t{0};
  const std::optional<std::string> text = cursor.as_string();
  const std::optional<std::string> plain = text ? base64url_decode(*text) : std::nullopt;
  std::uint64_t number = 0;
  if (plain) {
    const auto [end, problem] = std::from_chars(plain->data(), plain->data() + plain->size(), number);
    if (problem == std::errc() && end == plain->data() + plain->size()) return number;
  }
  return rpc::invalid_params("the cursor is not valid");
}

Answer list_tasks(const CoreTaskRequest& request) {
  const Result<std::uint64_t> after = read_task_cursor(json::View(request.params)["cursor"]);
  if (!after) return after.error();
  const std::vector<TaskPtr> found = request.store->list(request.owner, *after, request.page_size + 1);
  json::Writer out;
  out.begin_object().key("tasks").begin_array();
  for (std::size_t i = 0; i < std::min(found.size(), request.page_size); ++i) {
    out.begin_object();
    write_task(out, *found[i], request.store->snapshot(found[i]));
    out.end_object();
  }
  out.end_array();
  if (found.size() > request.page_size)
    out.key("nextCursor").string(base64url_encode(std::to_string(found[request.page_size - 1]->number)));
  out.end_object();
  return out.finish();
}

Answer task_result_answer(const TaskPtr& task, const TaskSnapshot& snapshot) {
  if (!snapshot.outcome) return rpc::invalid_params("The task was cancelled: it has no result");
  if (!*snapshot.outcome) return snapshot.outcome->error();
  return with_related_task(**snapshot.outcome, task->id);
}

// Waits until a task has ended or stop is requested. REQUIRES: `loop` is the loop on which the task runs.
// That is the case for tasks of the core form, since they belong to a session.
Task<void> wait_for_end(TaskPtr task, std::stop_token stop, Loop& loop) {
  const auto waiter = task->end_waiters.insert(task->end_waiters.end(), Event());
  Event woken = *waiter;
  const std::stop_callback on_stop(stop, [&loop, woken] {
    // Posted, since this runs inside the caller of request_stop().
    loop.post([woken]() mutable { woken.set(); });
  });
  co_await woken.wait(loop);
  task->end_waiters.erase(waiter);
}

}  // namespace

Task<Answer> serve_core_task_request(CoreTaskRequest request, Loop& loop) {
  if (request.method == "tasks/list") co_return list_tasks(request);
  const std::optional<std::string> id = json::View(request.params)["taskId"].as_string();
  if (!id) co_return rpc::invalid_params("taskId is not a string");
  const TaskPtr task = request.store->find(*id, request.owner);
  if (!task) co_return unknown_task_error();
  if (request.method == "tasks/get") co_return task_answer(*request.store, task);
  if (request.method == "tasks/cancel") {
    if (!request.store->cancel(task)) co_return rpc::invalid_params("The task has already ended");
    co_return task_answer(*request.store, task);
  }
  TaskSnapshot snapshot = request.store->snapshot(task);
  if (snapshot.status < TaskStatus::completed) {
    co_await wait_for_end(task, request.stop, loop);
    snapshot = request.store->snapshot(task);
    if (snapshot.status < TaskStatus::completed)
      co_return Error(ErrorKind::cancelled, "the request was cancelled");
  }
  co_return task_result_answer(task, snapshot);
}

}  // namespace fairlead::mcp
