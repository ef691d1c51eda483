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

bool client_knows_tasks(const RequestState& state) {
  return json::View(state.client_capabilities)["extensions"][kTasksExtension].is(json::Type::object);
}

Error tasks_needed() {
  return Error::rpc(kMissingCapability, "Client capability required",
                    R"({"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})");
}

TaskOwner owner_of(const RequestState& state) {
  TaskOwner owner;
  owner.form = is_modern(state.revision) ? TaskForm::extension : TaskForm::core;
  owner.identity = identity_key(*state.link->principal());
  if (owner.form == TaskForm::core) owner.session = state.link->session();
  return owner;
}

json::Raw detailed(TaskStore& store, const TaskPtr& task) {
  json::Writer out;
  out.begin_object();
  write_detailed_task(out, *task, store.look(task));
  out.end_object();
  return out.finish();
}

// Tells whoever is to hear of a change: the session of a core task, the subscriptions to one of the
// extension.
void tell(const std::weak_ptr<ServerState>& server, const std::shared_ptr<ClientLink>& link,
          const TaskPtr& task) {
  const auto state = server.lock();
  if (!state) return;
  if (task->owner.form == TaskForm::extension) {
    state->tell_task(task->id, detailed(*state->tasks, task));
    return;
  }
  json::Writer params;
  params.begin_object();
  write_task(params, *task, state->tasks->look(task));
  params.end_object();
  // Posted: the answer that says there is such a task comes first.
  link->loop().post([link, told = params.finish()] { link->notify("notifications/tasks/status", told, {}); });
}

Result<TaskPtr> create(const RequestState& state, std::optional<std::chrono::milliseconds> ttl) {
  // A modern request's link is not kept longer than the request: there is nothing to say on it.
  const std::shared_ptr<ClientLink> link = is_modern(state.revision) ? nullptr : state.link;
  const std::weak_ptr<ServerState> server = state.server;
  return state.server->tasks->create(owner_of(state), ttl, state.link->loop(),
                                     [server, link](const TaskPtr& task) { tell(server, link, task); });
}

// From here on the request is a task: nothing is said on its own stream any more.
void become(RequestState& state, std::shared_ptr<TaskStore> store, TaskPtr task) {
  state.stop = task->stop;
  state.tasks = std::move(store);
  state.task = std::move(task);
  state.id.clear();
}

Answer created(const FeatureCall& call, const TaskPtr& task) {
  if (task->owner.form == TaskForm::core) return created_task(*call.server->tasks, task);
  ResultWriter result(*call.server, call.state->revision, "task");
  write_task(result.out(), *task, call.server->tasks->look(task));
  return result.finish();
}

// A tool that failed has completed, in the extension; in the core form it has failed.
TaskStatus status_for(const TaskRecord& task, const Answer& answer) {
  if (!answer) return TaskStatus::failed;
  const bool is_error = json::View(*answer)["isError"].as_bool().value_or(false);
  return is_error && task.owner.form == TaskForm::core ? TaskStatus::failed : TaskStatus::completed;
}

// Runs a handler to its end, or until its time is over, upon which it is asked to stop.
Task<void> run_task(FeatureCall call, FoundTool found, GoesOn<ToolResult> handler) {
  const std::shared_ptr<TaskStore> store = call.state->tasks;
  const TaskPtr task = call.state->task;
  const TaskHold hold(store, task);
  Loop& loop = call.state->link->loop();
  const auto run = handler.run;
  run->woken.reset();
  run->waited_for = true;
  handler.next.resume();
  if (!run->result && !run->thrown) {
    const bool ended = co_await run->woken.wait(loop, task->expires - Clock::now());
    if (!ended) {
      store->expire(task);
      const bool stopped = co_await run->woken.wait(loop, Clock::duration::max());
      static_cast<void>(stopped);
    }
  }
  const Answer answer =
      run->thrown ? answer_of(call, run->thrown) : answer_of(call, *found.entry, *run->result);
  const bool first = store->finish(task, status_for(*task, answer), answer);
  static_cast<void>(first);
}

Task<Result<ToolResult>> run_plain(FeatureCall call, FoundTool found) {
  co_return found.entry->plain(Context(call.state), json::View(found.arguments));
}

}  // namespace

// ---- calls ----------------------------------------------------------------------------------------------

Result<bool> starts_as_task(const FeatureCall& call, const ToolEntry& tool) {
  const TaskSupport support = tool.spec.task;
  RequestState& state = *call.state;
  if (is_modern(state.revision)) {
    if (support == TaskSupport::never) return false;
    const bool can = client_knows_tasks(state);
    if (support == TaskSupport::required) return can ? Result<bool>(true) : tasks_needed();
    state.may_become_task = can;
    return false;
  }
  // Where no task is offered the member means nothing.
  const bool offered = state.revision == Revision::r2025_11_25 && call.server->offers_tasks;
  const bool asked = offered && !call.arg("task").absent();
  if (asked && support == TaskSupport::never)
    return Error::rpc(rpc::kMethodNotFound, "Tool " + tool.spec.name + " does not run as a task");
  if (!asked && support == TaskSupport::required)
    return Error::rpc(rpc::kMethodNotFound, "Tool " + tool.spec.name + " runs as a task only");
  return asked;
}

Answer start_task(const FeatureCall& call, const FoundTool& found) {
  std::optional<std::chrono::milliseconds> ttl;
  if (!is_modern(call.state->revision)) {
    const auto wanted = wanted_ttl(call.arg("task"));
    if (!wanted) return wanted.error();
    ttl = *wanted;
  }
  const Result<void> taken = take_answers(call);
  if (!taken) return taken.error();
  const Result<TaskPtr> task = create(*call.state, ttl);
  if (!task) return Error::rpc(rpc::kInternalError, task.error().message());
  become(*call.state, call.server->tasks, *task);
  Task<Result<ToolResult>> handler = found.entry->plain
                                         ? run_plain(call, found)
                                         : found.entry->coroutine(Context(call.state), found.arguments);
  return keep_task(call, found, not_begun(std::move(handler), call.state->link->loop()));
}

Answer keep_task(const FeatureCall& call, const FoundTool& found, GoesOn<ToolResult> handler) {
  const TaskPtr task = call.state->task;
  Answer answer = created(call, task);
  // Posted, so that the answer is on its way before the handler goes on.
  call.state->link->loop().post([call, found, handler = std::move(handler)]() mutable {
    Loop& loop = call.state->link->loop();
    loop.spawn(run_task(std::move(call), std::move(found), std::move(handler)));
  });
  return answer;
}

Task<bool> Context::become_task() const {
  const std::shared_ptr<RequestState> state = state_;
  if (state->task) co_return true;
  if (!state->may_become_task) co_return false;
  const Result<TaskPtr> task = create(*state, std::nullopt);
  if (!task) co_return false;
  become(*state, state->server->tasks, *task);
  AwaitBecomingTask next(state);
  co_await next;
  co_return true;
}

bool Context::is_task() const noexcept {
  return state_->task != nullptr;
}

void Context::status(std::string_view message) const {
  if (state_->task) state_->tasks->set_message(state_->task, message);
}

// ---- questions ------------------------------------------------------------------------------------------

Task<Result<json::Raw>> ask_as_task(std::shared_ptr<RequestState> state, std::string method, json::Raw params,
                                    std::string key) {
  const std::shared_ptr<TaskQuestion::Reply> reply =
      state->tasks->ask(state->task, std::move(key), std::move(method), std::move(params));
  if (!reply) co_return Error(ErrorKind::cancelled, "the task has ended, or asked max_questions questions");
  const bool given = co_await reply->given.wait(state->link->loop(), Clock::duration::max());
  static_cast<void>(given);
  if (reply->answer.absent()) co_return Error(ErrorKind::cancelled, "the task was cancelled");
  co_return reply->answer;
}

namespace {

// Whether a client of 2025-11-25 keeps its answer to this as a task, so that it may take its time.
bool client_keeps_tasks(const RequestState& state, std::string_view method) {
  if (state.revision != Revision::r2025_11_25) return false;
  const json::View kept = json::View(state.client_capabilities)["tasks"]["requests"];
  if (method == "sampling/createMessage") return !kept["sampling"]["createMessage"].absent();
  return method == "elicitation/create" && !kept["elicitation"]["create"].absent();
}

json::Raw as_task(const json::Raw& params) {
  json::Splice splice(params.bytes());
  splice.insert_member(params.text(), "task", R"({"ttl":3600000})");
  return json::Raw::trusted(splice.joined(), params.one_line());
}

json::Raw task_id_params(const std::string& id) {
  json::Writer out;
  out.begin_object().key("taskId").string(id).end_object();
  return out.finish();
}

Task<void> cancel_at_client(std::shared_ptr<ClientLink> link, std::string id) {
  const std::stop_token never;
  Task<Result<json::Raw>> cancelling =
      link->request("tasks/cancel", task_id_params(id), std::string(), never);
  const Result<json::Raw> answer = co_await cancelling;
  static_cast<void>(answer);
}

}  // namespace

Task<Result<json::Raw>> ask_legacy_client(std::shared_ptr<RequestState> state, std::string method,
                                          json::Raw params) {
  const bool kept = client_keeps_tasks(*state, method);
  if (state->task) params = with_related_task(params, state->task->id);
  if (kept) params = as_task(params);
  if (state->task) state->tasks->asking(state->task, true);
  Task<Result<json::Raw>> asking =
      state->link->request(std::move(method), std::move(params), state->id, state->stop);
  Result<json::Raw> answer = co_await asking;
  if (kept && answer && !json::View(*answer)["task"].absent()) {
    const std::string id = json::View(*answer)["task"]["taskId"].as_string().value_or("");
    Task<Result<json::Raw>> waiting =
        state->link->request("tasks/result", task_id_params(id), state->id, state->stop);
    answer = co_await waiting;
    if (!answer && state->stop.stop_requested()) state->link->loop().spawn(cancel_at_client(state->link, id));
  }
  if (state->task) state->tasks->asking(state->task, false);
  co_return answer;
}

// ---- methods --------------------------------------------------------------------------------------------

namespace {

Answer update(const FeatureCall& call, const TaskPtr& task) {
  const json::View responses = call.arg("inputResponses");
  bool fits = responses.is(json::Type::object);
  responses.each_member(
      [&](std::string_view, bool, json::View value) { return fits = fits && value.is(json::Type::object); });
  if (!fits) return rpc::invalid_params("inputResponses is not an object of objects");
  responses.each_member([&](std::string_view key, bool escaped, json::View value) {
    call.server->tasks->answer(task, escaped ? json::unescape(key) : std::string(key),
                               json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  });
  return ResultWriter(*call.server, call.state->revision).finish();
}

Answer serve_extension(const FeatureCall& call) {
  if (!client_knows_tasks(*call.state)) return tasks_needed();
  const std::optional<std::string> id = call.arg("taskId").as_string();
  if (!id) return rpc::invalid_params("taskId is not a string");
  const TaskPtr task = call.server->tasks->find(*id, owner_of(*call.state));
  if (!task) return unknown_task();
  if (call.method == "tasks/update") return update(call, task);
  ResultWriter result(*call.server, call.state->revision);
  if (call.method == "tasks/cancel") {
    const bool cancelled = call.server->tasks->cancel(task);
    static_cast<void>(cancelled);
  } else {
    write_detailed_task(result.out(), *task, call.server->tasks->look(task));
  }
  return result.finish();
}

}  // namespace

Task<Answer> serve_tasks(FeatureCall call) {
  if (is_modern(call.state->revision)) co_return serve_extension(call);
  CoreTaskRequest request(call.server->tasks, owner_of(*call.state));
  request.method = call.method;
  request.params = call.params;
  if (call.server->page_size > 0) request.page = call.server->page_size;
  request.stop = call.state->stop;
  Task<Answer> serving = serve_core_tasks(std::move(request), call.state->link->loop());
  Answer answer = co_await serving;
  co_return answer;
}

Task<Result<std::set<std::string>>> read_task_filter(std::shared_ptr<ServerState> server,
                                                     std::shared_ptr<RequestState> state, json::View ids) {
  std::set<std::string> read;
  if (ids.absent() || !server->offers_tasks) co_return read;
  if (!client_knows_tasks(*state)) co_return tasks_needed();
  Loop& loop = state->link->loop();
  bool fits = ids.is(json::Type::array);
  if (fits) {
    Slices slices;
    json::ElementWalk walk(ids.text());
    while (fits && walk.next()) {
      const json::View id(walk.value());
      fits = id.is(json::Type::string);
      const std::optional<std::string> text = id.as_string(kMaxTaskIdBytes);  // no task has a longer one
      if (text && server->tasks->find(*text, owner_of(*state))) read.insert(*text);
      if (slices.due(walk.value().size())) co_await sleep_for(loop, Slices::kPause);
    }
  }
  if (!fits) co_return rpc::invalid_params("taskIds is not an array of strings");
  co_return read;
}

json::Raw detailed_task(ServerState& server, const RequestState& state, const std::string& id) {
  const TaskPtr task = server.tasks->find(id, owner_of(state));
  return task ? detailed(*server.tasks, task) : json::Raw();
}

}  // namespace fairlead::mcp
