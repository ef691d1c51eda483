// Tasks as a client sees them: those that its calls become at the server, which it follows to their end; and
// those it keeps itself for what the server asks (2025-11-25 only).
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

constexpr int kMostUrlRounds = 10;
constexpr std::size_t kMostErrorMembers = 1000;  // what comes behind them is not read
// Whatever the server says, it is asked neither more often than this nor less.
constexpr std::chrono::milliseconds kShortestPoll = 20ms;
constexpr std::chrono::milliseconds kLongestPoll = 60s;
constexpr std::chrono::milliseconds kUsualPoll = 1s;

json::Raw id_params(const std::string& id) {
  json::Writer out;
  out.begin_object().key("taskId").string(id).end_object();
  return out.finish();
}

json::Raw tool_params(const std::string& name, const json::Raw& arguments) {
  json::Writer params;
  params.begin_object().key("name").string(name);
  if (!arguments.absent()) params.key("arguments").raw(arguments);
  params.end_object();
  return params.finish();
}

std::string task_member(std::optional<std::chrono::milliseconds> ttl) {
  return ttl ? R"({"ttl":)" + std::to_string(ttl->count()) + "}" : "{}";
}

Error no_task() {
  return Error(ErrorKind::validation, "the server answered with something that is no task");
}

Clock::duration poll_of(const TaskInfo& task) {
  const auto wanted = task.poll_ms ? std::chrono::milliseconds(*task.poll_ms) : kUsualPoll;
  return std::clamp(wanted, kShortestPoll, kLongestPoll);
}

// co_await: waits, but not beyond a stop.
Task<void> wait_until(Loop& loop, Clock::duration time, std::stop_token stop) {
  Event stopped;
  const std::stop_callback on_stop(stop, [&loop, stopped] {
    // May run inside whatever asked to stop.
    loop.post([stopped]() mutable { stopped.set(); });
  });
  const bool set = co_await stopped.wait(loop, time);
  static_cast<void>(set);
}

json::Indexed index_of(json::Raw value) {
  json::MemberIndex members = json::MemberIndex::of(json::View(value));
  return json::Indexed(std::move(value), std::move(members));
}

// What a modern task came to.
Result<json::Indexed> outcome_of(const TaskInfo& task) {
  if (task.status == TaskStatus::cancelled) return Error(ErrorKind::cancelled, "the task was cancelled");
  const json::Members view(json::View(task.raw), {"result", "error"});
  if (task.status == TaskStatus::completed && !view["result"].absent())
    return index_of(sub(task.raw, view["result"]));
  const json::Members error(view["error"], {"code", "message", "data"}, kMostErrorMembers);
  return Error::rpc(error["code"].as_int().value_or(rpc::kInternalError),
                    error["message"].as_string().value_or("the task failed"),
                    std::string(error["data"].text()));
}

// A result that was followed to its end is as bounded as one that came at once.
std::optional<Error> too_many_members(const json::Indexed& result, std::size_t most) {
  if (result.members().count() <= most) return std::nullopt;
  return Error(ErrorKind::resource_exhausted,
               "the task ended with more than max_message_members (" + std::to_string(most) + ")");
}

// The task that is to be given up is told so; nobody waits for that.
Task<void> cancel_task(std::shared_ptr<Client> client, std::string id) {
  Task<Result<void>> cancelling = client->task_cancel(std::move(id));
  const Result<void> cancelled = co_await cancelling;
  static_cast<void>(cancelled);
}

}  // namespace

// ---- single requests ------------------------------------------------------------------------------------

Task<Result<TaskInfo>> Client::task_get(std::string id) {
  const auto keep = shared_from_this();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("tasks/get", id_params(id), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  std::optional<TaskInfo> task = TaskInfo::from(*answer);
  if (!task) co_return no_task();
  co_return std::move(*task);
}

Task<Result<void>> Client::task_update(std::string id, json::Raw input_responses) {
  const auto keep = shared_from_this();
  json::Writer params;
  params.begin_object().key("taskId").string(id).key("inputResponses").raw(input_responses).end_object();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("tasks/update", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

Task<Result<void>> Client::task_cancel(std::string id) {
  const auto keep = shared_from_this();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("tasks/cancel", id_params(id), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

Task<Result<std::vector<TaskInfo>>> Client::task_list() {
  const auto keep = shared_from_this();
  Task<Result<std::vector<json::Raw>>> listing = list("tasks/list", "tasks");
  const Result<std::vector<json::Raw>> entries = co_await listing;
  if (!entries) co_return entries.error();
  std::vector<TaskInfo> tasks;
  Slices slices;
  for (const json::Raw& entry : *entries) {
    std::optional<TaskInfo> task = TaskInfo::from(entry);
    if (task) tasks.push_back(std::move(*task));
    if (slices.due(entry.text().size())) co_await sleep_for(connection().loop(), Slices::kPause);
  }
  co_return tasks;
}

// ---- calls that become tasks ----------------------------------------------------------------------------

bool ClientSession::server_takes_tasks() const {
  return revision_ == Revision::r2025_11_25 && !capabilities()["tasks"]["requests"]["tools"]["call"].absent();
}

std::optional<TaskInfo> ClientSession::task_in(const json::Indexed& answer) const {
  if (is_modern(revision_))
    return answer["resultType"].as_string() == "task" ? TaskInfo::from(answer.raw()) : std::nullopt;
  return TaskInfo::from(answer.part("task"));
}

// A server of 2025-11-25 says so in the list of its tools, which is looked at once if nobody has.
Task<bool> ClientSession::is_task_only(std::string tool) {
  if (!options_.tasks || !server_takes_tasks()) co_return false;
  if (!tools_seen_) {
    tools_seen_ = true;
    Task<Result<std::vector<json::Raw>>> listing = list("tools/list", "tools");
    const Result<std::vector<json::Raw>> listed = co_await listing;
    if (!listed) options_.connect.log.debug("tools not listed", {{"reason", listed.error().message()}});
  }
  co_return task_only_.contains(tool);
}

// One request as its caller sees it.
Task<Result<json::Indexed>> ClientSession::request_now(std::string method, json::Raw raw_params,
                                                       ToolCallOptions options) {
  Task<RequestParams> reading = RequestParams::read(loop_, std::move(raw_params));
  RequestParams params = co_await reading;
  const bool is_call = method == "tools/call";
  if (is_call && params.task().absent() && params.view().is(json::Type::object)) {
    Task<bool> looking = is_task_only(params.name().as_string().value_or(""));
    const bool task_only = co_await looking;
    if (task_only) params = params.with_task(task_member(std::nullopt));
  }
  for (int round = 0; round < kMostUrlRounds; ++round) {
    Task<Result<json::Indexed>> asking = rounds(method, params, options);
    Result<json::Indexed> answer = co_await asking;
    const std::int64_t code = answer ? 0 : answer.error().detail().rpc_code.value_or(0);
    if (code == kUrlElicitationRequired && revision_ == Revision::r2025_11_25 &&
        options_.handlers.elicit_url) {
      const std::string& data = answer.error().detail().rpc_data;
      Task<bool> going = go_to_urls(json::Raw::trusted(Bytes::copy_of(data)));
      const bool went = co_await going;
      if (went) continue;
      co_return answer;
    }
    if (!answer || !is_call) co_return answer;
    std::optional<TaskInfo> task = task_in(*answer);
    if (!task && (*answer)["resultType"].as_string() == "task") co_return no_task();
    if (!task) co_return answer;
    Task<Result<json::Indexed>> following = follow(std::move(*task), std::move(options));
    Result<json::Indexed> result = co_await following;
    co_return result;
  }
  co_return Error(ErrorKind::resource_exhausted, "the server sent us to a URL more than 10 times");
}

Task<Result<TaskInfo>> ClientSession::call_tool_as_task(std::string name, json::Raw arguments,
                                                        ToolCallOptions options,
                                                        std::optional<std::chrono::milliseconds> ttl) {
  const auto keep = self();
  Task<RequestParams> reading = RequestParams::read(loop_, tool_params(name, arguments));
  RequestParams params = co_await reading;
  if (server_takes_tasks()) params = params.with_task(task_member(ttl));
  Task<Result<json::Indexed>> asking = rounds("tools/call", std::move(params), std::move(options));
  const Result<json::Indexed> answer = co_await asking;
  if (!answer) co_return answer.error();
  std::optional<TaskInfo> task = task_in(*answer);
  if (task) co_return std::move(*task);
  json::Writer out;
  out.begin_object().key("result").raw(answer->raw()).end_object();
  TaskInfo at_once;
  at_once.status = TaskStatus::completed;
  at_once.raw = out.finish();
  co_return at_once;
}

Task<Result<ToolResult>> ClientSession::task_result(TaskInfo task, ToolCallOptions options) {
  const auto keep = self();
  Result<json::Indexed> answer = Error(ErrorKind::validation, "the task has no result");
  if (task.id.empty()) {
    answer = index_of(sub(task.raw, json::View(task.raw)["result"]));
  } else {
    Task<Result<json::Indexed>> following = follow(std::move(task), std::move(options));
    answer = co_await following;
  }
  if (!answer) co_return answer.error();
  Task<Result<ToolResult>> reading = tool_result(std::string(), std::move(*answer));
  Result<ToolResult> result = co_await reading;
  co_return result;
}

// Asks after a task until it has ended. In 2025-11-25 its questions come as requests, and its result is
// fetched.
Task<Result<json::Indexed>> ClientSession::follow(TaskInfo task, ToolCallOptions options) {
  const auto keep = self();
  const Clock::time_point latest =
      options.max_total ? Clock::now() + *options.max_total : Clock::time_point::max();
  std::set<std::string> answered;
  std::string seen;
  while (true) {
    if (options.on_task && seen != task.raw.text()) options.on_task(task);
    seen = task.raw.text();
    const bool fetch = task.ended() || (task.status == TaskStatus::input_required && !is_modern(revision_));
    if (is_modern(revision_) && task.ended()) {
      if (task.raw.text().size() > Slices::kLargeMessage) co_await sleep_for(loop_, Slices::kPause);
      Result<json::Indexed> outcome = outcome_of(task);
      std::optional<Error> over =
          outcome ? too_many_members(*outcome, options_.lists.max_message_members) : std::nullopt;
      if (over) co_return *over;
      co_return outcome;
    }
    if (fetch) {
      ToolCallOptions waiting_options;
      waiting_options.timeout = latest == Clock::time_point::max()
                                    ? kForEver
                                    : std::chrono::ceil<std::chrono::milliseconds>(latest - Clock::now());
      waiting_options.stop = options.stop;
      const RequestParams params(id_params(task.id));
      Task<Result<json::Indexed>> fetching = rounds("tasks/result", params, std::move(waiting_options));
      Result<json::Indexed> result = co_await fetching;
      const ErrorKind kind = result ? ErrorKind::remote : result.error().kind();
      if (kind == ErrorKind::timeout || kind == ErrorKind::cancelled) loop_.spawn(cancel_task(keep, task.id));
      co_return result;
    }
    if (task.status == TaskStatus::input_required) {
      Task<Result<void>> answering = answer_task(task, answered);
      const Result<void> given = co_await answering;
      if (!given) co_return given.error();
    }
    const Clock::duration left =
        latest == Clock::time_point::max() ? Clock::duration::max() : latest - Clock::now();
    Task<void> waiting = wait_until(loop_, std::min(poll_of(task), left), options.stop);
    co_await waiting;
    if (options.stop.stop_requested() || Clock::now() >= latest) {
      loop_.spawn(cancel_task(keep, task.id));
      if (options.stop.stop_requested()) co_return Error(ErrorKind::cancelled, "the call was given up");
      co_return Error::timeout("the task", *options.max_total);
    }
    ToolCallOptions polling_options;
    polling_options.timeout = options.timeout;
    const RequestParams params(id_params(task.id));
    Task<Result<json::Indexed>> polling = rounds("tasks/get", params, std::move(polling_options));
    const Result<json::Indexed> now = co_await polling;
    if (!now) co_return now.error();
    std::optional<TaskInfo> next = TaskInfo::from(now->raw());
    if (!next) co_return no_task();
    task = std::move(*next);
  }
}

// A question is shown until its answer has arrived; it is answered once.
Task<Result<void>> ClientSession::answer_task(TaskInfo task, std::set<std::string>& answered) {
  json::Writer open;
  open.begin_object();
  bool any = false;
  const json::View questions = json::View(task.raw)["inputRequests"];
  if (json::has_more_members(questions, options_.lists.max_message_members))
    co_return too_many_questions(options_.lists.max_message_members);
  questions.each_member([&](std::string_view key, bool escaped, json::View question) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    if (!answered.insert(name).second) return true;
    open.key(name).raw(question.text());
    return any = true;
  });
  open.end_object();
  if (!any) co_return Result<void>();
  Task<Result<json::Raw>> answering = answer_questions(open.finish());
  const Result<json::Raw> answers = co_await answering;
  if (!answers) co_return answers.error();
  Task<Result<void>> updating = task_update(task.id, *answers);
  Result<void> updated = co_await updating;
  co_return updated;
}

// ---- URLs -----------------------------------------------------------------------------------------------

// True when the user agreed to all of them. Waits a while for the server to say that it is done.
Task<bool> ClientSession::go_to_urls(json::Raw data) {
  const json::View elicitations = json::View(data)["elicitations"];
  std::set<std::string> ids;
  for (std::size_t i = 0; i < elicitations.size(); ++i) {
    const json::View one = elicitations[i];
    ids.insert(one["elicitationId"].as_string().value_or(""));
    Task<Result<ElicitResult>> asking = options_.handlers.elicit_url(one["message"].as_string().value_or(""),
                                                                     one["url"].as_string().value_or(""));
    const Result<ElicitResult> agreed = co_await asking;
    if (!agreed || agreed->action != ElicitResult::Action::accept) co_return false;
  }
  const Clock::time_point latest = Clock::now() + options_.url_completion_wait;
  while (!std::includes(completed_urls_.begin(), completed_urls_.end(), ids.begin(), ids.end())) {
    if (Clock::now() >= latest) break;
    url_completed_.reset();
    const bool told = co_await url_completed_.wait(loop_, latest - Clock::now());
    static_cast<void>(told);
  }
  co_return !ids.empty();
}

// ---- tasks kept for the server --------------------------------------------------------------------------

Answer ClientSession::keep_request(const Request& request) {
  const auto wanted = wanted_ttl(request.args()["task"]);
  if (!wanted) return wanted.error();
  const std::weak_ptr<Client> weak = weak_from_this();
  const auto changed = [weak](const TaskPtr& task) {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    if (!client) return;
    json::Writer params;
    params.begin_object();
    write_task(params, *task, client->tasks_->look(task));
    params.end_object();
    client->loop_.post([client, told = params.finish()] {
      const Result<void> sent = client->peer_->post_notification("notifications/tasks/status", told);
      static_cast<void>(sent);
    });
  };
  const Result<TaskPtr> task = tasks_->create(TaskOwner(), *wanted, loop_, changed);
  if (!task) return Error::rpc(rpc::kInternalError, task.error().message());
  loop_.spawn(run_kept(self(), *task, std::string(request.method()), request.params()));
  return created_task(*tasks_, *task);
}

Task<void> ClientSession::run_kept(std::shared_ptr<ClientSession> self, TaskPtr task, std::string method,
                                   json::Raw params) {
  const TaskHold hold(self->tasks_, task);
  Task<Result<json::Raw>> answering = self->answer_one(std::move(method), std::move(params));
  const Result<json::Raw> answer = co_await answering;
  const bool first = self->tasks_->finish(task, answer ? TaskStatus::completed : TaskStatus::failed, answer);
  static_cast<void>(first);
}

}  // namespace fairlead::mcp
