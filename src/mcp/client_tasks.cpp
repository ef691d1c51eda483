// ClientSession: tasks. Calls may become tasks of the server, which the client polls until they end. The
// client itself may run requests of the server as tasks (revision 2025-11-25 only).
#include <algorithm>

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"
#include "mcp/task_messages.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

using namespace std::chrono_literals;

constexpr int kMaxUrlRounds = 10;               // how often one call may require URL elicitations
constexpr std::size_t kMaxErrorMembers = 1000;  // members of an error object; further ones are ignored
// Bounds of the poll interval that the server suggests.
constexpr std::chrono::milliseconds kMinPollInterval = 20ms;
constexpr std::chrono::milliseconds kMaxPollInterval = 60s;
constexpr std::chrono::milliseconds kDefaultPollInterval = 1s;

// Returns the member `task` of the params of a tools/call request, as JSON.
std::string task_param_json(std::optional<std::chrono::milliseconds> ttl) {
  return ttl ? R"({"ttl":)" + std::to_string(ttl->count()) + "}" : "{}";
}

Error invalid_task_error() {
  return Error(ErrorKind::validation, "the server returned an invalid task");
}

Clock::duration poll_interval(const TaskInfo& task) {
  const auto suggested = task.poll_ms ? std::chrono::milliseconds(*task.poll_ms) : kDefaultPollInterval;
  return std::clamp(suggested, kMinPollInterval, kMaxPollInterval);
}

// Waits for `time`, or until stop is requested.
Task<void> sleep_or_stop(Loop& loop, Clock::duration time, std::stop_token stop) {
  Event stopped;
  const std::stop_callback on_stop(stop, [&loop, stopped] {
    // Posted, because this may run inside the function that requests the stop.
    loop.post([stopped]() mutable { stopped.set(); });
  });
  static_cast<void>(co_await stopped.wait(loop, time));
}

json::IndexedRaw with_member_index(json::Raw value) {
  json::MemberIndex members = json::MemberIndex::of(json::View(value));
  return json::IndexedRaw(std::move(value), std::move(members));
}

// Returns the result or the error of a modern task that has ended.
Result<json::IndexedRaw> task_outcome(const TaskInfo& task) {
  if (task.status == TaskStatus::cancelled) return Error(ErrorKind::cancelled, "the task was cancelled");
  const json::Members view(json::View(task.raw), {"result", "error"});
  if (task.status == TaskStatus::completed && !view["result"].absent())
    return with_member_index(raw_part(task.raw, view["result"]));
  const json::Members error(view["error"], {"code", "message", "data"}, kMaxErrorMembers);
  return Error::rpc(error["code"].as_int().value_or(rpc::kInternalError),
                    error["message"].as_string().value_or("the task failed"),
                    std::string(error["data"].text()));
}

// Returns an error if the result of a task has more members than the result of a request may have.
std::optional<Error> check_result_member_count(const json::IndexedRaw& result, std::size_t limit) {
  if (result.members().member_count() <= limit) return std::nullopt;
  return Error(ErrorKind::resource_exhausted,
               "the result of the task has more than max_message_members (" + std::to_string(limit) + ")");
}

// Returns false if the response certainly contains a result and not a task.
bool may_be_task(const json::IndexedRaw& response) {
  bool found = false;
  response.members().each(response.text(), [&](std::string_view key, bool escaped, std::string_view) {
    found = found || json::key_equals(key, escaped, "task") || json::key_equals(key, escaped, "resultType");
    return !found;
  });
  return found;
}

// Cancels a task at the server. Spawned on the loop; its result is ignored.
Task<void> cancel_task(std::shared_ptr<Client> client, std::string id) {
  static_cast<void>(co_await client->task_cancel(std::move(id)));
}

}  // namespace

// ---- single requests ------------------------------------------------------------------------------------

Task<Result<TaskInfo>> Client::task_get(std::string id) {
  const auto keep_alive = shared_from_this();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("tasks/get", task_id_params(id), std::move(options));
  if (!response) co_return response.error();
  std::optional<TaskInfo> task = TaskInfo::parse(*response);
  if (!task) co_return invalid_task_error();
  co_return std::move(*task);
}

Task<Result<void>> Client::task_update(std::string id, json::Raw input_responses) {
  const auto keep_alive = shared_from_this();
  json::Writer params;
  params.begin_object().key("taskId").string(id).key("inputResponses").raw(input_responses).end_object();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("tasks/update", params.finish(), std::move(options));
  if (!response) co_return response.error();
  co_return Result<void>();
}

Task<Result<void>> Client::task_cancel(std::string id) {
  const auto keep_alive = shared_from_this();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("tasks/cancel", task_id_params(id), std::move(options));
  if (!response) co_return response.error();
  co_return Result<void>();
}

Task<Result<std::vector<TaskInfo>>> Client::task_list() {
  const auto keep_alive = shared_from_this();
  const Result<std::vector<json::Raw>> entries = co_await list("tasks/list", "tasks");
  if (!entries) co_return entries.error();
  std::vector<TaskInfo> tasks;
  Slices slices;
  for (const json::Raw& entry : *entries) {
    std::optional<TaskInfo> task = TaskInfo::parse(entry);
    if (task) tasks.push_back(std::move(*task));
    if (slices.due(entry.text().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
  co_return tasks;
}

// ---- calls that become tasks ----------------------------------------------------------------------------

std::optional<TaskInfo> ClientSession::task_from(const json::IndexedRaw& response) const {
  if (is_modern(revision_))
    return response["resultType"].as_string() == "task" ? TaskInfo::parse(response.raw()) : std::nullopt;
  const json::Raw task = response.raw_member("task");
  return task.absent() ? std::nullopt : TaskInfo::parse(task);
}

// Servers of revision 2025-11-25 declare in the tools/list result which tools must run as tasks. If the
// client has not requested tools/list yet, it does so once for this purpose.
Task<bool> ClientSession::requires_task(std::string tool) {
  if (!tools_list_requested_) {
    tools_list_requested_ = true;
    const Result<std::vector<json::Raw>> listed = co_await list("tools/list", "tools");
    if (!listed) options_.connect.log.debug("cannot list tools", {{"reason", listed.error().message()}});
  }
  co_return task_required_tools_.contains(tool);
}

Task<Result<json::IndexedRaw>> ClientSession::request_to_completion(std::string method, RequestParams params,
                                                                    ClientCallOptions options) {
  const bool is_call = method == "tools/call";
  const bool may_require_task = is_call && options_.accept_tasks && server_supports_core_tasks();
  if (may_require_task && params.task().absent() && params.view().is(json::Type::object)) {
    const bool task_required = co_await requires_task(params.name().as_string().value_or(""));
    if (task_required) params = params.with_task(task_param_json(std::nullopt));
  }
  for (int round = 0; round < kMaxUrlRounds; ++round) {
    Result<json::IndexedRaw> response = co_await run_rounds(method, params, options);
    const std::int64_t code = response ? 0 : response.error().detail().rpc_code.value_or(0);
    if (code == kUrlElicitationRequired && revision_ == Revision::r2025_11_25 &&
        options_.handlers.elicit_url) {
      const std::string& data = response.error().detail().rpc_data;
      const bool accepted = co_await elicit_urls(json::Raw::trusted(Bytes::copy_of(data)));
      if (accepted) continue;
      co_return response;
    }
    if (!response || !is_call || !may_be_task(*response)) co_return response;
    std::optional<TaskInfo> task = task_from(*response);
    if (!task && (*response)["resultType"].as_string() == "task") co_return invalid_task_error();
    if (!task) co_return response;
    Result<json::IndexedRaw> result = co_await await_task(std::move(*task), std::move(options));
    co_return result;
  }
  co_return Error(ErrorKind::resource_exhausted, "the server required URL elicitations more than 10 times");
}

Task<Result<TaskInfo>> ClientSession::call_tool_as_task(std::string name, json::Raw arguments,
                                                        ClientCallOptions options,
                                                        std::optional<std::chrono::milliseconds> ttl) {
  const auto keep_alive = self();
  RequestParams params = RequestParams::of_tool_call(name, arguments);
  if (server_supports_core_tasks()) params = params.with_task(task_param_json(ttl));
  const Result<json::IndexedRaw> response = co_await run_rounds("tools/call", params, options);
  if (!response) co_return response.error();
  std::optional<TaskInfo> task = task_from(*response);
  if (task) co_return std::move(*task);
  json::Writer out;
  out.begin_object().key("result").raw(response->raw()).end_object();
  TaskInfo completed;
  completed.status = TaskStatus::completed;
  completed.raw = out.finish();
  co_return completed;
}

Task<Result<ToolResult>> ClientSession::task_result(TaskInfo task, ClientCallOptions options) {
  const auto keep_alive = self();
  Result<json::IndexedRaw> response = Error(ErrorKind::validation, "the task has no result");
  if (task.id.empty()) {
    response = with_member_index(raw_part(task.raw, json::View(task.raw)["result"]));
  } else {
    response = co_await await_task(std::move(task), std::move(options));
  }
  if (!response) co_return response.error();
  Result<ToolResult> result = co_await read_tool_result(std::string(), std::move(*response));
  co_return result;
}

// In revision 2025-11-25 the input requests of the task arrive as requests of the server, and its result is
// requested with tasks/result.
Task<Result<json::IndexedRaw>> ClientSession::await_task(TaskInfo task, ClientCallOptions options) {
  const auto keep_alive = self();
  const Clock::time_point deadline =
      options.max_total_time ? Clock::now() + *options.max_total_time : Clock::time_point::max();
  std::set<std::string> answered_keys;
  std::string reported_task;
  while (true) {
    if (options.on_task && reported_task != task.raw.text()) options.on_task(task);
    reported_task = task.raw.text();
    const bool fetch_result =
        task.ended() || (task.status == TaskStatus::input_required && !is_modern(revision_));
    if (is_modern(revision_) && task.ended()) {
      if (task.raw.text().size() > Slices::kLargeMessageBytes) co_await sleep_for(loop_, Slices::kPause);
      Result<json::IndexedRaw> outcome = task_outcome(task);
      std::optional<Error> limit_error =
          outcome ? check_result_member_count(*outcome, options_.list_limits.max_message_members)
                  : std::nullopt;
      if (limit_error) co_return *limit_error;
      co_return outcome;
    }
    if (fetch_result) {
      ClientCallOptions waiting_options;
      waiting_options.timeout = deadline == Clock::time_point::max()
                                    ? kNoTimeout
                                    : std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      waiting_options.stop = options.stop;
      const RequestParams params(task_id_params(task.id));
      Result<json::IndexedRaw> result = co_await run_rounds("tasks/result", params, waiting_options);
      const ErrorKind kind = result ? ErrorKind::remote : result.error().kind();
      if (kind == ErrorKind::timeout || kind == ErrorKind::cancelled)
        loop_.spawn(cancel_task(keep_alive, task.id));
      co_return result;
    }
    if (task.status == TaskStatus::input_required) {
      const Result<void> answered_inputs = co_await answer_task_input_requests(task, answered_keys);
      if (!answered_inputs) co_return answered_inputs.error();
    }
    const Clock::duration left =
        deadline == Clock::time_point::max() ? Clock::duration::max() : deadline - Clock::now();
    co_await sleep_or_stop(loop_, std::min(poll_interval(task), left), options.stop);
    if (options.stop.stop_requested() || Clock::now() >= deadline) {
      loop_.spawn(cancel_task(keep_alive, task.id));
      if (options.stop.stop_requested()) co_return Error(ErrorKind::cancelled, "the call was cancelled");
      co_return Error::timeout("the task", *options.max_total_time);
    }
    ClientCallOptions polling_options;
    polling_options.timeout = options.timeout;
    const RequestParams params(task_id_params(task.id));
    const Result<json::IndexedRaw> polled = co_await run_rounds("tasks/get", params, polling_options);
    if (!polled) co_return polled.error();
    std::optional<TaskInfo> next = TaskInfo::parse(polled->raw());
    if (!next) co_return invalid_task_error();
    task = std::move(*next);
  }
}

// The state of the task contains an input request until the server has received the response, but the client
// answers the input request only once.
Task<Result<void>> ClientSession::answer_task_input_requests(TaskInfo task,
                                                             std::set<std::string>& answered_keys) {
  json::Writer open;
  open.begin_object();
  bool has_open = false;
  const json::View input_requests = json::View(task.raw)["inputRequests"];
  if (json::has_more_members_than(input_requests, options_.list_limits.max_message_members))
    co_return too_many_input_requests_error(options_.list_limits.max_message_members);
  input_requests.each_member([&](std::string_view key, bool escaped, json::View input_request) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    if (!answered_keys.insert(name).second) return true;
    open.key(name).raw(input_request.text());
    return has_open = true;
  });
  open.end_object();
  if (!has_open) co_return Result<void>();
  const Result<json::Raw> answers = co_await answer_input_requests(open.finish());
  if (!answers) co_return answers.error();
  Result<void> updated = co_await task_update(task.id, *answers);
  co_return updated;
}

// ---- URLs -----------------------------------------------------------------------------------------------

// After the handlers have returned, waits up to url_completion_wait for the server to report that the
// elicitations are complete. Returns false if `data` contains no elicitation.
Task<bool> ClientSession::elicit_urls(json::Raw data) {
  const json::View elicitations = json::View(data)["elicitations"];
  std::set<std::string> ids;
  for (std::size_t i = 0; i < elicitations.size(); ++i) {
    const json::View elicitation = elicitations[i];
    ids.insert(elicitation["elicitationId"].as_string().value_or(""));
    Task<Result<ElicitResult>> handled = options_.handlers.elicit_url(
        elicitation["message"].as_string().value_or(""), elicitation["url"].as_string().value_or(""));
    const Result<ElicitResult> outcome = co_await handled;
    if (!outcome || outcome->action != ElicitResult::Action::accept) co_return false;
  }
  const Clock::time_point deadline = Clock::now() + options_.url_completion_wait;
  while (!std::includes(completed_elicitation_ids_.begin(), completed_elicitation_ids_.end(), ids.begin(),
                        ids.end())) {
    if (Clock::now() >= deadline) break;
    elicitation_completed_.reset();
    static_cast<void>(co_await elicitation_completed_.wait(loop_, deadline - Clock::now()));
  }
  co_return !ids.empty();
}

// ---- tasks that the client runs for the server ----------------------------------------------------------

Answer ClientSession::start_task_for(const Request& request) {
  const auto ttl = requested_ttl(request.params_view()["task"]);
  if (!ttl) return ttl.error();
  const std::weak_ptr<Client> weak = weak_from_this();
  const auto on_change = [weak](const TaskPtr& task) {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    if (!client) return;
    json::Writer params;
    params.begin_object();
    write_task(params, *task, client->task_store_->snapshot(task));
    params.end_object();
    client->loop_.post([client, payload = params.finish()] {
      const Result<void> sent = client->peer_->post_notification("notifications/tasks/status", payload);
      static_cast<void>(sent);
    });
  };
  const Result<TaskPtr> task = task_store_->create(TaskOwner(), *ttl, loop_, on_change);
  if (!task) return Error::rpc(rpc::kInternalError, task.error().message());
  loop_.spawn(run_task(self(), *task, std::string(request.method()), request.params()));
  return create_task_result(*task_store_, *task);
}

Task<void> ClientSession::run_task(std::shared_ptr<ClientSession> self, TaskPtr task, std::string method,
                                   json::Raw params) {
  const TaskRunGuard guard(self->task_store_, task);
  const Result<json::Raw> response =
      co_await self->call_request_handler(std::move(method), std::move(params));
  const bool first =
      self->task_store_->finish(task, response ? TaskStatus::completed : TaskStatus::failed, response);
  static_cast<void>(first);
}

}  // namespace fairlead::mcp
