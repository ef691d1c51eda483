// TaskStore: the tasks that a server runs for tool calls, or a client for requests of the server. The
// encoding of tasks in messages is in task_messages.hpp. A task runs on one loop; all methods of TaskStore
// are thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/peer/methods.hpp"

namespace fairlead::mcp {

// The two forms of tasks in MCP: `core` is part of revision 2025-11-25, `extension` is an extension of the
// modern era. Requests of one form do not find tasks of the other.
enum class TaskForm : std::uint8_t { core, extension };

// The owner of a task. For any other client the task does not exist.
struct TaskOwner {
  TaskForm form = TaskForm::core;
  std::string identity;  // identity_key() of its principal
  std::string session;   // core form only: the session in which the task was created
  bool operator==(const TaskOwner&) const = default;
};

// An open input request of a task.
struct TaskInputRequest {
  std::string key;
  std::string method;
  json::Raw params;
  struct Response {
    json::Raw result;  // absent if the task ended without a response
    Event ready;
  };
  std::shared_ptr<Response> response;
};

// Snapshot of the mutable state of a task.
struct TaskSnapshot {
  TaskStatus status = TaskStatus::working;
  std::string message;
  std::string updated_at;
  std::optional<Answer> outcome;
  std::vector<TaskInputRequest> open_input_requests;
};

class TaskStore;

class TaskRecord {
 public:
  using OnChange = std::function<void(const std::shared_ptr<TaskRecord>&)>;

  std::string id;
  std::uint64_t number = 0;  // tasks are numbered in the order of creation
  TaskOwner owner;
  std::string created_at;
  std::chrono::milliseconds ttl{0};
  std::chrono::milliseconds poll_interval{0};
  Clock::time_point expires_at;
  std::stop_token stop;
  // Events that are set when the task has ended. Used on the task's loop thread only.
  std::list<Event> end_waiters;

 private:
  friend class TaskStore;
  TaskSnapshot snapshot_;
  std::set<std::string> input_request_keys_;  // the keys of all input requests so far
  std::size_t open_core_input_requests_ = 0;  // core form: number of open requests to the client
  Loop* loop_ = nullptr;                      // nullptr once the handler has ended
  bool removed_ = false;                      // expired, or its session ended; erased after its handler
  bool end_observed_ = false;                 // snapshot() was called after the task had ended
  std::stop_source stop_source_;
  OnChange on_change_;
};

using TaskPtr = std::shared_ptr<TaskRecord>;

class TaskStore {
 public:
  explicit TaskStore(TaskOptions options) : options_(std::move(options)) {}

  // Creates a task that runs on `loop`. Fails with `resource_exhausted` if max_tasks is reached and no task
  // can be evicted. `ttl` is the time to live that the client requested. `on_change` is called after each
  // change, on the thread that made it, without a lock held.
  Result<TaskPtr> create(TaskOwner owner, std::optional<std::chrono::milliseconds> ttl, Loop& loop,
                         TaskRecord::OnChange on_change);
  // Returns nullptr if the task is unknown, has expired, or has a different owner.
  TaskPtr find(const std::string& id, const TaskOwner& owner);
  // Returns at most `max_count` tasks of `owner` with a number greater than `after_number`, in the order of
  // their creation.
  std::vector<TaskPtr> list(const TaskOwner& owner, std::uint64_t after_number, std::size_t max_count);
  // Returns the present state of the task. If the task has ended, its end counts as observed: the task may be
  // evicted from then on.
  TaskSnapshot snapshot(const TaskPtr& task);
  std::size_t size() const;

  // Sets the status message. Does nothing if the task has ended.
  void set_message(const TaskPtr& task, std::string_view message);
  // Adds an input request. If the task has already used `key`, a number is appended to it. Returns nullptr if
  // the task has ended or has reached max_questions.
  std::shared_ptr<TaskInputRequest::Response> add_input_request(const TaskPtr& task, std::string key,
                                                                std::string method, json::Raw params);
  // Stores the response to the open input request with this key. Does nothing if no open input request has
  // the key.
  void add_input_response(const TaskPtr& task, const std::string& key, json::Raw result);
  // Core form: called with `begins` true before an input request is sent to the client, and false after it
  // has ended. The status is `input_required` while one is open.
  void track_core_input_request(const TaskPtr& task, bool begins);

  // Ends the task with this status and outcome. Returns false if it had ended before.
  bool finish(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome);
  // Ends the task as cancelled and requests its stop. Returns false if it had ended before.
  bool cancel(const TaskPtr& task);
  // Called when the time to live is over. Removes the task, so that find() no longer returns it, and requests
  // its stop.
  void expire(const TaskPtr& task);
  // Cancels and removes the tasks of a session (core form).
  void end_session(const std::string& session);
  // Called when the handler of the task has ended or was destroyed. Fails the task if it has not ended.
  void on_handler_ended(const TaskPtr& task);

 private:
  bool finish_locked(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome);
  void request_stop_locked(const TaskPtr& task);
  bool make_room_locked();
  void set_updated_now(TaskRecord& task);

  TaskOptions options_;
  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, TaskPtr> tasks_;  // by number
  std::map<std::string, std::uint64_t> numbers_by_id_;
};

// Calls TaskStore::on_handler_ended() when it is destroyed. Owned by the coroutine that runs a task: if the
// coroutine is destroyed with its loop before the handler has ended, the task fails.
class TaskRunGuard {
 public:
  TaskRunGuard(std::shared_ptr<TaskStore> store, TaskPtr task)
      : store_(std::move(store)), task_(std::move(task)) {}
  TaskRunGuard(const TaskRunGuard&) = delete;
  ~TaskRunGuard();

 private:
  std::shared_ptr<TaskStore> store_;
  TaskPtr task_;
};

}  // namespace fairlead::mcp
