#include "mcp/task_store.hpp"

#include <algorithm>
#include <ctime>

#include "fairlead/base/base64.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/seal.hpp"

namespace fairlead::mcp {

namespace {

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string milliseconds = std::to_string(1000 + since % 1000).substr(1);
  return std::string(text, size) + "." + milliseconds + "Z";
}

bool is_final(TaskStatus status) {
  return status >= TaskStatus::completed;
}

}  // namespace

void TaskStore::set_updated_now(TaskRecord& task) {
  task.snapshot_.updated_at = timestamp();
}

Result<TaskPtr> TaskStore::create(TaskOwner owner, std::optional<std::chrono::milliseconds> ttl, Loop& loop,
                                  TaskRecord::OnChange on_change) {
  auto task = std::make_shared<TaskRecord>();
  task->id = base64url_encode(Sealer::random_key().substr(0, 18));
  task->owner = std::move(owner);
  task->ttl = std::clamp(ttl.value_or(options_.ttl), std::chrono::milliseconds(1), options_.max_ttl);
  task->poll_interval = options_.poll_interval;
  task->expires_at = Clock::now() + task->ttl;
  task->stop = task->stop_source_.get_token();
  task->loop_ = &loop;
  task->on_change_ = std::move(on_change);
  task->created_at = timestamp();
  task->snapshot_.updated_at = task->created_at;
  const std::lock_guard lock(mutex_);
  if (!make_room_locked()) {
    return Error(ErrorKind::resource_exhausted,
                 "max_tasks (" + std::to_string(options_.max_tasks) + ") tasks are running or retained");
  }
  task->number = ++last_number_;
  numbers_by_id_[task->id] = task->number;
  tasks_[task->number] = task;
  return task;
}

// Evicts expired tasks; if there are none, the oldest tasks whose end the client has observed. Stops when
// fewer than max_tasks / 2 tasks are left. Returns false if no task could be evicted.
bool TaskStore::make_room_locked() {
  if (tasks_.size() < options_.max_tasks) return true;
  const Clock::time_point now = Clock::now();
  const auto evict = [&](const std::function<bool(const TaskRecord&)>& is_evictable) {
    bool evicted = false;
    for (auto entry = tasks_.begin(); entry != tasks_.end();) {
      // A task whose handler runs is not evicted, so that never more than max_tasks handlers run.
      if (entry->second->loop_ || !is_evictable(*entry->second)) {
        ++entry;
        continue;
      }
      evicted = true;
      numbers_by_id_.erase(entry->second->id);
      entry = tasks_.erase(entry);
      if (tasks_.size() < options_.max_tasks / 2) break;
    }
    return evicted;
  };
  return evict([&](const TaskRecord& task) { return task.removed_ || task.expires_at <= now; }) ||
         evict([](const TaskRecord& task) { return task.end_observed_; });
}

TaskPtr TaskStore::find(const std::string& id, const TaskOwner& owner) {
  const std::lock_guard lock(mutex_);
  const auto number = numbers_by_id_.find(id);
  if (number == numbers_by_id_.end()) return nullptr;
  const TaskPtr task = tasks_[number->second];
  return task->owner == owner && !task->removed_ && task->expires_at > Clock::now() ? task : nullptr;
}

std::vector<TaskPtr> TaskStore::list(const TaskOwner& owner, std::uint64_t after_number,
                                     std::size_t max_count) {
  const std::lock_guard lock(mutex_);
  std::vector<TaskPtr> found;
  for (auto entry = tasks_.upper_bound(after_number); entry != tasks_.end() && found.size() < max_count;
       ++entry) {
    const TaskRecord& task = *entry->second;
    if (task.owner == owner && !task.removed_ && task.expires_at > Clock::now())
      found.push_back(entry->second);
  }
  return found;
}

TaskSnapshot TaskStore::snapshot(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->end_observed_ = task->end_observed_ || is_final(task->snapshot_.status);
  return task->snapshot_;
}

std::size_t TaskStore::size() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void TaskStore::set_message(const TaskPtr& task, std::string_view message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_final(task->snapshot_.status)) return;
    task->snapshot_.message = message;
    set_updated_now(*task);
  }
  task->on_change_(task);
}

std::shared_ptr<TaskInputRequest::Response> TaskStore::add_input_request(const TaskPtr& task, std::string key,
                                                                         std::string method,
                                                                         json::Raw params) {
  auto response = std::make_shared<TaskInputRequest::Response>();
  {
    const std::lock_guard lock(mutex_);
    if (is_final(task->snapshot_.status) || task->input_request_keys_.size() >= options_.max_questions)
      return nullptr;
    const std::string base = key;
    for (int suffix = 2; !task->input_request_keys_.insert(key).second; ++suffix)
      key = base + "-" + std::to_string(suffix);
    task->snapshot_.open_input_requests.push_back(
        TaskInputRequest{std::move(key), std::move(method), std::move(params), response});
    task->snapshot_.status = TaskStatus::input_required;
    set_updated_now(*task);
  }
  task->on_change_(task);
  return response;
}

void TaskStore::add_input_response(const TaskPtr& task, const std::string& key, json::Raw result) {
  {
    const std::lock_guard lock(mutex_);
    auto& open = task->snapshot_.open_input_requests;
    const auto found =
        std::find_if(open.begin(), open.end(), [&](const auto& request) { return request.key == key; });
    if (found == open.end() || !task->loop_) return;
    const std::shared_ptr<TaskInputRequest::Response> response = found->response;
    open.erase(found);
    if (open.empty()) task->snapshot_.status = TaskStatus::working;
    set_updated_now(*task);
    task->loop_->post([response, result = std::move(result)]() mutable {
      response->result = std::move(result);
      response->ready.set();
    });
  }
  task->on_change_(task);
}

void TaskStore::track_core_input_request(const TaskPtr& task, bool begins) {
  {
    const std::lock_guard lock(mutex_);
    task->open_core_input_requests_ += begins ? std::size_t{1} : std::size_t(-1);
    if (is_final(task->snapshot_.status)) return;
    const TaskStatus status =
        task->open_core_input_requests_ > 0 ? TaskStatus::input_required : TaskStatus::working;
    if (task->snapshot_.status == status) return;
    task->snapshot_.status = status;
    set_updated_now(*task);
  }
  task->on_change_(task);
}

bool TaskStore::finish_locked(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome) {
  if (is_final(task->snapshot_.status)) return false;
  task->snapshot_.status = status;
  task->snapshot_.outcome = std::move(outcome);
  set_updated_now(*task);
  std::vector<TaskInputRequest> open = std::exchange(task->snapshot_.open_input_requests, {});
  if (task->loop_) {
    task->loop_->post([open = std::move(open), task] {
      for (const TaskInputRequest& request : open) request.response->ready.set();
      // Iterates over a copy, since each waiter that is woken removes itself from the list.
      std::list<Event> waiters = task->end_waiters;
      for (Event& waiter : waiters) waiter.set();
    });
  }
  return true;
}

bool TaskStore::finish(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (!finish_locked(task, status, std::move(outcome))) return false;
  }
  task->on_change_(task);
  return true;
}

// Requests the stop on the loop of the task, since the stop callbacks must run there.
void TaskStore::request_stop_locked(const TaskPtr& task) {
  if (task->loop_) task->loop_->post([stopping = task->stop_source_]() mutable { stopping.request_stop(); });
}

bool TaskStore::cancel(const TaskPtr& task) {
  {
    const std::lock_guard lock(mutex_);
    if (!finish_locked(task, TaskStatus::cancelled, std::nullopt)) return false;
    request_stop_locked(task);
  }
  task->on_change_(task);
  return true;
}

void TaskStore::expire(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->removed_ = true;
  if (finish_locked(task, TaskStatus::cancelled, std::nullopt)) request_stop_locked(task);
}

void TaskStore::end_session(const std::string& session) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, task] : tasks_) {
    if (task->owner.form != TaskForm::core || task->owner.session != session) continue;
    task->removed_ = true;
    if (finish_locked(task, TaskStatus::cancelled, std::nullopt)) request_stop_locked(task);
  }
  std::erase_if(tasks_, [&](const auto& entry) {
    const bool erased = entry.second->removed_ && !entry.second->loop_;
    if (erased) numbers_by_id_.erase(entry.second->id);
    return erased;
  });
}

void TaskStore::on_handler_ended(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->loop_ = nullptr;
  const Error error = Error::rpc(rpc::kInternalError, "The task was stopped before it ended");
  const bool unfinished = finish_locked(task, TaskStatus::failed, Answer(error));
  static_cast<void>(unfinished);
  if (task->removed_) {
    numbers_by_id_.erase(task->id);
    tasks_.erase(task->number);
  }
}

TaskRunGuard::~TaskRunGuard() {
  store_->on_handler_ended(task_);
}

}  // namespace fairlead::mcp
