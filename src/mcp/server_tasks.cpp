#include "mcp/server_tasks.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/splice.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/task_messages.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::size_t kMaxTaskIdBytes = 1024;

// Modern era.
bool client_declares_tasks_extension(const RequestState& state) {
  return json::View(state.client_capabilities)["extensions"][kTasksExtension].is(json::Type::object);
}

Error missing_tasks_extension_error() {
  return Error::rpc(kMissingCapability, "Client capability required",
                    R"({"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})");
}

TaskOwner task_owner_of(const RequestState& state) {
  TaskOwner owner;
  owner.form = is_modern(state.revision) ? TaskForm::extension : TaskForm::core;
  owner.identity = identity_key(*state.link->principal());
  if (owner.form == TaskForm::core) owner.session = state.link->session();
  return owner;
}

json::Raw encode_detailed_task(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object();
  write_detailed_task(out, *task, store.snapshot(task));
  out.end_object();
  return out.finish();
}

// Notifies clients of a change of a task. Core form: the client of its session. Extension form: the clients
// that have subscribed to the task.
void notify_task_change(const std::weak_ptr<ServerState>& server, const std::shared_ptr<ClientLink>& link,
                        const TaskPtr& task) {
  const auto state = server.lock();
  if (!state) return;
  if (task->owner.form == TaskForm::extension) {
    state->notify_task_changed(task->id, encode_detailed_task(*state->task_store, task));
    return;
  }
  json::Writer params;
  params.begin_object();
  write_task(params, *task, state->task_store->snapshot(task));
  params.end_object();
  // Posted, so that the answer that contains the task is sent first.
  link->loop().post([link, json = params.finish()] { link->notify("notifications/tasks/status", json, {}); });
}

Result<TaskPtr> create_task(const RequestState& state, std::optional<std::chrono::milliseconds> ttl) {
  // In the modern era the link is not stored, since nothing is sent on the link after the request.
  const std::shared_ptr<ClientLink> link = is_modern(state.revision) ? nullptr : state.link;
  const std::weak_ptr<ServerState> server = state.server;
  return state.server->task_store->create(
      task_owner_of(state), ttl, state.link->loop(),
      [server, link](const TaskPtr& task) { notify_task_change(server, link, task); });
}

// Turns the request into a task. Its id is cleared, so that later messages are not related to the request.
void convert_to_task(RequestState& state, std::shared_ptr<TaskStore> store, TaskPtr task) {
  state.stop = task->stop;
  state.task_store = std::move(store);
  state.task = std::move(task);
  state.id.clear();
}

Answer task_created_answer(const FeatureRequest& request, const TaskPtr& task) {
  if (task->owner.form == TaskForm::core) return create_task_result(*request.server->task_store, task);
  ResultWriter result(*request.server, request.state->revision, "task");
  write_task(result.out(), *task, request.server->task_store->snapshot(task));
  return result.finish();
}

// Returns the final status of a task. A tool error completes a task of the extension form, but fails a task
// of the core form.
TaskStatus final_task_status(const TaskRecord& task, const Answer& answer) {
  if (!answer) return TaskStatus::failed;
  const bool is_error = json::View(*answer)["isError"].as_bool().value_or(false);
  return is_error && task.owner.form == TaskForm::core ? TaskStatus::failed : TaskStatus::completed;
}

// Resumes the handler of a task and waits until it has ended. When the time to live of the task is over
// before, removes the task and requests the stop of the handler.
Task<void> run_task(FeatureRequest request, ResolvedToolCall resolved, SuspendedHandler<ToolResult> handler) {
  const std::shared_ptr<TaskStore> store = request.state->task_store;
  const TaskPtr task = request.state->task;
  const TaskRunGuard guard(store, task);
  Loop& loop = request.state->link->loop();
  const auto run = handler.run;
  run->woken.reset();
  run->has_waiter = true;
  handler.continuation.resume();
  if (!run->result && !run->thrown) {
    const bool ended = co_await run->woken.wait(loop, task->expires_at - Clock::now());
    if (!ended) {
      store->expire(task);
      co_await run->woken.wait(loop);
    }
  }
  const Answer answer = run->thrown ? answer_for_exception(request, run->thrown)
                                    : answer_for_result(request, *resolved.entry, *run->result);
  const bool first = store->finish(task, final_task_status(*task, answer), answer);
  static_cast<void>(first);
}

Task<Result<ToolResult>> run_plain_handler(FeatureRequest request, ResolvedToolCall resolved) {
  co_return resolved.entry->plain_handler(Context(request.state), json::View(resolved.arguments));
}

}  // namespace

// ---- calls ----------------------------------------------------------------------------------------------

Result<bool> must_start_as_task(const FeatureRequest& request, const ToolEntry& tool) {
  const TaskSupport support = tool.spec.task;
  RequestState& state = *request.state;
  if (is_modern(state.revision)) {
    if (support == TaskSupport::never) return false;
    const bool can = client_declares_tasks_extension(state);
    if (support == TaskSupport::required) return can ? Result<bool>(true) : missing_tasks_extension_error();
    state.may_become_task = can;
    return false;
  }
  // The member `task` of a request is ignored if no tool of the server supports tasks.
  const bool offered = state.revision == Revision::r2025_11_25 && request.server->offers_tasks;
  const bool requested = offered && !request.find_param("task").absent();
  if (requested && support == TaskSupport::never)
    return Error::rpc(rpc::kMethodNotFound, "Tool " + tool.spec.name + " does not support tasks");
  if (!requested && support == TaskSupport::required)
    return Error::rpc(rpc::kMethodNotFound, "Tool " + tool.spec.name + " must be called as a task");
  return requested;
}

Answer start_task(const FeatureRequest& request, const ResolvedToolCall& resolved) {
  std::optional<std::chrono::milliseconds> ttl;
  if (!is_modern(request.state->revision)) {
    const auto requested = requested_ttl(request.find_param("task"));
    if (!requested) return requested.error();
    ttl = *requested;
  }
  const Result<void> collected = collect_input_responses(request);
  if (!collected) return collected.error();
  const Result<TaskPtr> task = create_task(*request.state, ttl);
  if (!task) return Error::rpc(rpc::kInternalError, task.error().message());
  convert_to_task(*request.state, request.server->task_store, *task);
  Task<Result<ToolResult>> handler =
      resolved.entry->plain_handler
          ? run_plain_handler(request, resolved)
          : resolved.entry->coroutine_handler(Context(request.state), resolved.arguments);
  return continue_as_task(request, resolved,
                          suspend_at_start(std::move(handler), request.state->link->loop()));
}

Answer continue_as_task(const FeatureRequest& request, const ResolvedToolCall& resolved,
                        SuspendedHandler<ToolResult> handler) {
  const TaskPtr task = request.state->task;
  Answer answer = task_created_answer(request, task);
  // Posted, so that the answer is sent before the handler continues.
  request.state->link->loop().post([request, resolved, handler = std::move(handler)]() mutable {
    Loop& loop = request.state->link->loop();
    loop.spawn(run_task(std::move(request), std::move(resolved), std::move(handler)));
  });
  return answer;
}

Task<bool> Context::become_task() const {
  const std::shared_ptr<RequestState> state = state_;
  if (state->task) co_return true;
  if (!state->may_become_task) co_return false;
  const Result<TaskPtr> task = create_task(*state, std::nullopt);
  if (!task) co_return false;
  convert_to_task(*state, state->server->task_store, *task);
  BecomeTaskAwaiter awaiter(state);
  co_await awaiter;
  co_return true;
}

bool Context::is_task() const noexcept {
  return state_->task != nullptr;
}

void Context::set_status_message(std::string_view message) const {
  if (state_->task) state_->task_store->set_message(state_->task, message);
}

// ---- input requests -------------------------------------------------------------------------------------

Task<Result<json::Raw>> request_input_as_task(std::shared_ptr<RequestState> state, std::string method,
                                              json::Raw params, std::string key) {
  const std::shared_ptr<TaskInputRequest::Response> response =
      state->task_store->add_input_request(state->task, std::move(key), std::move(method), std::move(params));
  if (!response) co_return Error(ErrorKind::cancelled, "the task has ended or has reached max_questions");
  co_await response->ready.wait(state->link->loop());
  if (response->result.absent()) co_return Error(ErrorKind::cancelled, "the task was cancelled");
  co_return response->result;
}

namespace {

// Returns whether the client can run requests of this method as tasks (revision 2025-11-25), so that the
// response may take longer than the timeout of a request.
bool client_can_create_tasks(const RequestState& state, std::string_view method) {
  if (state.revision != Revision::r2025_11_25) return false;
  const json::View requests = json::View(state.client_capabilities)["tasks"]["requests"];
  if (method == "sampling/createMessage") return !requests["sampling"]["createMessage"].absent();
  return method == "elicitation/create" && !requests["elicitation"]["create"].absent();
}

// Adds the member that requests that the client runs the request as a task.
json::Raw with_task_member(const json::Raw& params) {
  json::Splice splice(params.bytes());
  splice.insert_member(params.text(), "task", R"({"ttl":3600000})");
  return json::Raw::trusted(splice.joined(), params.is_one_line());
}

Task<void> cancel_client_task(std::shared_ptr<ClientLink> link, std::string id) {
  const std::stop_token no_stop;
  static_cast<void>(co_await link->request("tasks/cancel", task_id_params(id), std::string(), no_stop));
}

}  // namespace

Task<Result<json::Raw>> request_input_from_legacy_client(std::shared_ptr<RequestState> state,
                                                         std::string method, json::Raw params) {
  const bool as_task = client_can_create_tasks(*state, method);
  if (state->task) params = with_related_task(params, state->task->id);
  if (as_task) params = with_task_member(params);
  if (state->task) state->task_store->track_core_input_request(state->task, true);
  Task<Result<json::Raw>> request =
      state->link->request(std::move(method), std::move(params), state->id, state->stop);
  Result<json::Raw> answer = co_await request;
  if (as_task && answer && !json::View(*answer)["task"].absent()) {
    const std::string id = json::View(*answer)["task"]["taskId"].as_string().value_or("");
    answer = co_await state->link->request("tasks/result", task_id_params(id), state->id, state->stop);
    if (!answer && state->stop.stop_requested())
      state->link->loop().spawn(cancel_client_task(state->link, id));
  }
  if (state->task) state->task_store->track_core_input_request(state->task, false);
  co_return answer;
}

// ---- methods --------------------------------------------------------------------------------------------

namespace {

Answer handle_task_update(const FeatureRequest& request, const TaskPtr& task) {
  const json::View responses = request.find_param("inputResponses");
  bool valid = responses.is(json::Type::object);
  responses.each_member([&](std::string_view, bool, json::View value) {
    return valid = valid && value.is(json::Type::object);
  });
  if (!valid) return rpc::invalid_params("inputResponses is not an object of objects");
  responses.each_member([&](std::string_view key, bool escaped, json::View value) {
    request.server->task_store->add_input_response(task, escaped ? json::unescape(key) : std::string(key),
                                                   json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  });
  return ResultWriter(*request.server, request.state->revision).finish();
}

Answer serve_extension_task_request(const FeatureRequest& request) {
  if (!client_declares_tasks_extension(*request.state)) return missing_tasks_extension_error();
  const std::optional<std::string> id = request.find_param("taskId").as_string();
  if (!id) return rpc::invalid_params("taskId is not a string");
  const TaskPtr task = request.server->task_store->find(*id, task_owner_of(*request.state));
  if (!task) return unknown_task_error();
  if (request.method == "tasks/update") return handle_task_update(request, task);
  ResultWriter result(*request.server, request.state->revision);
  if (request.method == "tasks/cancel") {
    const bool cancelled = request.server->task_store->cancel(task);
    static_cast<void>(cancelled);
  } else {
    write_detailed_task(result.out(), *task, request.server->task_store->snapshot(task));
  }
  return result.finish();
}

}  // namespace

Task<Answer> serve_task_request(FeatureRequest request) {
  if (is_modern(request.state->revision)) co_return serve_extension_task_request(request);
  CoreTaskRequest core_request(request.server->task_store, task_owner_of(*request.state));
  core_request.method = request.method;
  core_request.params = request.params;
  if (request.server->page_size > 0) core_request.page_size = request.server->page_size;
  core_request.stop = request.state->stop;
  Answer answer = co_await serve_core_task_request(std::move(core_request), request.state->link->loop());
  co_return answer;
}

Task<Result<std::set<std::string>>> read_task_filter(std::shared_ptr<ServerState> server,
                                                     std::shared_ptr<RequestState> state, json::View ids) {
  std::set<std::string> read;
  if (ids.absent() || !server->offers_tasks) co_return read;
  if (!client_declares_tasks_extension(*state)) co_return missing_tasks_extension_error();
  Loop& loop = state->link->loop();
  bool valid = ids.is(json::Type::array);
  if (valid) {
    Slices slices;
    json::ElementWalk walk(ids.text());
    while (valid && walk.next()) {
      const json::View id(walk.value());
      valid = id.is(json::Type::string);
      const std::optional<std::string> text = id.as_string(kMaxTaskIdBytes);  // no task has a longer id
      if (text && server->task_store->find(*text, task_owner_of(*state))) read.insert(*text);
      if (slices.due(walk.value().size())) co_await sleep_for(loop, Slices::kPause);
    }
  }
  if (!valid) co_return rpc::invalid_params("taskIds is not an array of strings");
  co_return read;
}

json::Raw find_detailed_task_json(ServerState& server, const RequestState& state, const std::string& id) {
  const TaskPtr task = server.task_store->find(id, task_owner_of(state));
  return task ? encode_detailed_task(*server.task_store, task) : json::Raw();
}

}  // namespace fairlead::mcp
