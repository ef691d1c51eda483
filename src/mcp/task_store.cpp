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

bool is_end(TaskStatus status) {
  return status >= TaskStatus::completed;
}

}  // namespace

void TaskStore::touch(TaskRecord& task) {
  task.now_.updated_at = timestamp();
}

Result<TaskPtr> TaskStore::create(TaskOwner owner, std::optional<std::chrono::milliseconds> ttl, Loop& home,
                                  TaskRecord::Changed changed) {
  auto task = std::make_shared<TaskRecord>();
  task->id = base64url_encode(Sealer::random_key().substr(0, 18));
  task->owner = std::move(owner);
  task->ttl = std::clamp(ttl.value_or(options_.ttl), std::chrono::milliseconds(1), options_.max_ttl);
  task->poll_interval = options_.poll_interval;
  task->expires = Clock::now() + task->ttl;
  task->stop = task->stopping_.get_token();
  task->home_ = &home;
  task->changed_ = std::move(changed);
  task->created_at = timestamp();
  task->now_.updated_at = task->created_at;
  const std::lock_guard lock(mutex_);
  if (!make_room_locked()) {
    return Error(ErrorKind::resource_exhausted,
                 "max_tasks (" + std::to_string(options_.max_tasks) + ") tasks are running or kept");
  }
  task->number = ++last_number_;
  numbers_[task->id] = task->number;
  tasks_[task->number] = task;
  return task;
}

// What has expired goes first, then the oldest whose end its owner knows.
bool TaskStore::make_room_locked() {
  if (tasks_.size() < options_.max_tasks) return true;
  const Clock::time_point now = Clock::now();
  const auto drop = [&](const std::function<bool(const TaskRecord&)>& may_go) {
    bool dropped = false;
    for (auto place = tasks_.begin(); place != tasks_.end();) {
      // One that still runs keeps its place, so that there are never more than max_tasks of them.
      if (place->second->home_ || !may_go(*place->second)) {
        ++place;
        continue;
      }
      dropped = true;
      numbers_.erase(place->second->id);
      place = tasks_.erase(place);
      if (tasks_.size() < options_.max_tasks / 2) break;
    }
    return dropped;
  };
  return drop([&](const TaskRecord& task) { return task.gone_ || task.expires <= now; }) ||
         drop([](const TaskRecord& task) { return task.seen_; });
}

TaskPtr TaskStore::find(const std::string& id, const TaskOwner& owner) {
  const std::lock_guard lock(mutex_);
  const auto number = numbers_.find(id);
  if (number == numbers_.end()) return nullptr;
  const TaskPtr task = tasks_[number->second];
  return task->owner == owner && !task->gone_ && task->expires > Clock::now() ? task : nullptr;
}

std::vector<TaskPtr> TaskStore::list(const TaskOwner& owner, std::uint64_t number, std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::vector<TaskPtr> found;
  for (auto place = tasks_.upper_bound(number); place != tasks_.end() && found.size() < most; ++place) {
    const TaskRecord& task = *place->second;
    if (task.owner == owner && !task.gone_ && task.expires > Clock::now()) found.push_back(place->second);
  }
  return found;
}

TaskSnapshot TaskStore::look(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->seen_ = task->seen_ || is_end(task->now_.status);
  return task->now_;
}

std::size_t TaskStore::size() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void TaskStore::set_message(const TaskPtr& task, std::string_view message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_end(task->now_.status)) return;
    task->now_.message = message;
    touch(*task);
  }
  task->changed_(task);
}

std::shared_ptr<TaskQuestion::Reply> TaskStore::ask(const TaskPtr& task, std::string key, std::string method,
                                                    json::Raw params) {
  auto reply = std::make_shared<TaskQuestion::Reply>();
  {
    const std::lock_guard lock(mutex_);
    if (is_end(task->now_.status) || task->keys_.size() >= options_.max_questions) return nullptr;
    const std::string wanted = key;
    for (int again = 2; !task->keys_.insert(key).second; ++again) key = wanted + "-" + std::to_string(again);
    task->now_.open.push_back(TaskQuestion{std::move(key), std::move(method), std::move(params), reply});
    task->now_.status = TaskStatus::input_required;
    touch(*task);
  }
  task->changed_(task);
  return reply;
}

void TaskStore::answer(const TaskPtr& task, const std::string& key, json::Raw answer) {
  {
    const std::lock_guard lock(mutex_);
    auto& open = task->now_.open;
    const auto found =
        std::find_if(open.begin(), open.end(), [&](const auto& one) { return one.key == key; });
    if (found == open.end() || !task->home_) return;
    const std::shared_ptr<TaskQuestion::Reply> reply = found->reply;
    open.erase(found);
    if (open.empty()) task->now_.status = TaskStatus::working;
    touch(*task);
    task->home_->post([reply, answer = std::move(answer)]() mutable {
      reply->answer = std::move(answer);
      reply->given.set();
    });
  }
  task->changed_(task);
}

void TaskStore::asking(const TaskPtr& task, bool begins) {
  {
    const std::lock_guard lock(mutex_);
    task->asking_ += begins ? std::size_t{1} : std::size_t(-1);
    if (is_end(task->now_.status)) return;
    const TaskStatus status = task->asking_ > 0 ? TaskStatus::input_required : TaskStatus::working;
    if (task->now_.status == status) return;
    task->now_.status = status;
    touch(*task);
  }
  task->changed_(task);
}

bool TaskStore::finish_locked(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome) {
  if (is_end(task->now_.status)) return false;
  task->now_.status = status;
  task->now_.outcome = std::move(outcome);
  touch(*task);
  std::vector<TaskQuestion> open = std::exchange(task->now_.open, {});
  if (task->home_) {
    task->home_->post([open = std::move(open), task] {
      for (const TaskQuestion& question : open) question.reply->given.set();
      // A copy: whoever is woken takes itself out of the list.
      std::list<Event> woken = task->watchers;
      for (Event& one : woken) one.set();
    });
  }
  return true;
}

bool TaskStore::finish(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (!finish_locked(task, status, std::move(outcome))) return false;
  }
  task->changed_(task);
  return true;
}

// On the task's own loop: what hears of it belongs there.
void TaskStore::stop_locked(const TaskPtr& task) {
  if (task->home_) task->home_->post([stopping = task->stopping_]() mutable { stopping.request_stop(); });
}

bool TaskStore::cancel(const TaskPtr& task) {
  {
    const std::lock_guard lock(mutex_);
    if (!finish_locked(task, TaskStatus::cancelled, std::nullopt)) return false;
    stop_locked(task);
  }
  task->changed_(task);
  return true;
}

void TaskStore::expire(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->gone_ = true;
  if (finish_locked(task, TaskStatus::cancelled, std::nullopt)) stop_locked(task);
}

void TaskStore::end_session(const std::string& session) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, task] : tasks_) {
    if (task->owner.form != TaskForm::core || task->owner.session != session) continue;
    task->gone_ = true;
    if (finish_locked(task, TaskStatus::cancelled, std::nullopt)) stop_locked(task);
  }
  std::erase_if(tasks_, [&](const auto& one) {
    const bool goes = one.second->gone_ && !one.second->home_;
    if (goes) numbers_.erase(one.second->id);
    return goes;
  });
}

void TaskStore::let_go(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  task->home_ = nullptr;
  const Error why = Error::rpc(rpc::kInternalError, "The task was given up");
  const bool unfinished = finish_locked(task, TaskStatus::failed, Answer(why));
  static_cast<void>(unfinished);
  if (task->gone_) {
    numbers_.erase(task->id);
    tasks_.erase(task->number);
  }
}

TaskHold::~TaskHold() {
  store_->let_go(task_);
}

}  // namespace fairlead::mcp
