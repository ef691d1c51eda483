#include "mcp/task_messages.hpp"

#include <charconv>

#include "fairlead/base/base64.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/splice.hpp"

namespace fairlead::mcp {

void write_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& now) {
  const bool core = task.owner.form == TaskForm::core;
  out.key("taskId").string(task.id).key("status").string(to_string(now.status));
  if (!now.message.empty()) out.key("statusMessage").string(now.message);
  out.key("createdAt").string(task.created_at).key("lastUpdatedAt").string(now.updated_at);
  out.key(core ? "ttl" : "ttlMs").integer(task.ttl.count());
  out.key(core ? "pollInterval" : "pollIntervalMs").integer(task.poll_interval.count());
}

void write_detailed_task(json::Writer& out, const TaskRecord& task, const TaskSnapshot& now) {
  write_task(out, task, now);
  if (!now.open.empty()) {
    out.key("inputRequests").begin_object();
    for (const TaskQuestion& question : now.open) {
      out.key(question.key).begin_object().key("method").string(question.method);
      out.key("params").raw(question.params).end_object();
    }
    out.end_object();
  }
  if (!now.outcome) return;
  if (*now.outcome) {
    out.key("result").raw(**now.outcome);
    return;
  }
  const rpc::WireError error = rpc::to_wire(now.outcome->error());
  out.key("error").begin_object().key("code").integer(error.code).key("message").string(error.message);
  if (!error.data.empty()) out.key("data").raw(error.data);
  out.end_object();
}

json::Raw with_related_task(const json::Raw& object, const std::string& id) {
  json::Writer mark;
  mark.begin_object().key("taskId").string(id).end_object();
  json::Writer meta;
  meta.begin_object().key(kRelatedTask).raw(mark.text()).end_object();
  const json::Raw base = object.absent() ? json::Raw::trusted(Bytes::constant("{}"), true) : object;
  json::Splice splice(base.bytes());
  const json::View given = json::View(base)["_meta"];
  if (given.is(json::Type::object)) {
    splice.insert_member(given.text(), kRelatedTask, mark.text());
  } else {
    splice.insert_member(base.text(), "_meta", meta.text());
  }
  return json::Raw::trusted(splice.joined(), base.one_line());
}

json::Raw created_task(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object().key("task").begin_object();
  write_task(out, *task, store.look(task));
  out.end_object().end_object();
  return out.finish();
}

Result<std::optional<std::chrono::milliseconds>> wanted_ttl(json::View task_param) {
  using Wanted = std::optional<std::chrono::milliseconds>;
  if (!task_param.is(json::Type::object)) return rpc::invalid_params("task is not an object");
  const json::View ttl = task_param["ttl"];
  if (ttl.absent()) return Wanted();
  if (ttl.is(json::Type::null)) return Wanted(std::chrono::milliseconds::max());
  const std::optional<double> value = ttl.as_double();
  if (!value || !(*value >= 0)) return rpc::invalid_params("task.ttl is not a number of milliseconds");
  return Wanted(std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*value, 1e15))));
}

Error unknown_task() {
  return rpc::invalid_params("There is no such task");
}

namespace {

Answer task_answer(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object();
  write_task(out, *task, store.look(task));
  out.end_object();
  return out.finish();
}

// A cursor is the number of the last task of the page before.
Result<std::uint64_t> read_cursor(json::View cursor) {
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
  const Result<std::uint64_t> after = read_cursor(json::View(request.params)["cursor"]);
  if (!after) return after.error();
  const std::vector<TaskPtr> found = request.store->list(request.owner, *after, request.page + 1);
  json::Writer out;
  out.begin_object().key("tasks").begin_array();
  for (std::size_t i = 0; i < std::min(found.size(), request.page); ++i) {
    out.begin_object();
    write_task(out, *found[i], request.store->look(found[i]));
    out.end_object();
  }
  out.end_array();
  if (found.size() > request.page)
    out.key("nextCursor").string(base64url_encode(std::to_string(found[request.page - 1]->number)));
  out.end_object();
  return out.finish();
}

Answer outcome_of(const TaskPtr& task, const TaskSnapshot& now) {
  if (!now.outcome) return rpc::invalid_params("The task was cancelled: it has no result");
  if (!*now.outcome) return now.outcome->error();
  return with_related_task(**now.outcome, task->id);
}

// Waits for the end of a task. Its own loop is this one: core tasks stay with their session.
Task<void> wait_for_end(TaskPtr task, std::stop_token stop, Loop& loop) {
  const auto place = task->watchers.insert(task->watchers.end(), Event());
  Event woken = *place;
  const std::stop_callback on_stop(stop, [&loop, woken] {
    // May run inside whatever asked to stop.
    loop.post([woken]() mutable { woken.set(); });
  });
  const bool set = co_await woken.wait(loop, Clock::duration::max());
  static_cast<void>(set);
  task->watchers.erase(place);
}

}  // namespace

Task<Answer> serve_core_tasks(CoreTaskRequest request, Loop& loop) {
  if (request.method == "tasks/list") co_return list_tasks(request);
  const std::optional<std::string> id = json::View(request.params)["taskId"].as_string();
  if (!id) co_return rpc::invalid_params("taskId is not a string");
  const TaskPtr task = request.store->find(*id, request.owner);
  if (!task) co_return unknown_task();
  if (request.method == "tasks/get") co_return task_answer(*request.store, task);
  if (request.method == "tasks/cancel") {
    if (!request.store->cancel(task)) co_return rpc::invalid_params("The task has ended already");
    co_return task_answer(*request.store, task);
  }
  TaskSnapshot now = request.store->look(task);
  if (now.status < TaskStatus::completed) {
    Task<void> waiting = wait_for_end(task, request.stop, loop);
    co_await waiting;
    now = request.store->look(task);
    if (now.status < TaskStatus::completed)
      co_return Error(ErrorKind::cancelled, "the request was cancelled");
  }
  co_return outcome_of(task, now);
}

}  // namespace fairlead::mcp
