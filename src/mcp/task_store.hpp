// TaskStore: the tasks somebody keeps for the other side: a server for calls of its tools, a client for what
// it is asked. It knows nothing of messages. A task belongs to the loop it runs on; everything here may be
// called from any thread.
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

// The two forms tasks have had; neither can see those of the other.
enum class TaskForm : std::uint8_t { core, extension };

// Whose a task is. Nobody else is told that it exists.
struct TaskOwner {
  TaskForm form = TaskForm::core;
  std::string identity;  // identity_key() of its principal
  std::string session;   // core only: there tasks belong to a session
  bool operator==(const TaskOwner&) const = default;
};

// A question a task waits with.
struct TaskQuestion {
  std::string key;
  std::string method;
  json::Raw params;
  struct Reply {
    json::Raw answer;  // absent when there will be none
    Event given;
  };
  std::shared_ptr<Reply> reply;
};

// What a task was at one moment.
struct TaskSnapshot {
  TaskStatus status = TaskStatus::working;
  std::string message;
  std::string updated_at;
  std::optional<Answer> outcome;
  std::vector<TaskQuestion> open;
};

class TaskStore;

class TaskRecord {
 public:
  using Changed = std::function<void(const std::shared_ptr<TaskRecord>&)>;

  std::string id;
  std::uint64_t number = 0;  // in the order of creation
  TaskOwner owner;
  std::string created_at;
  std::chrono::milliseconds ttl{0};
  std::chrono::milliseconds poll_interval{0};
  Clock::time_point expires;
  std::stop_token stop;
  std::list<Event> watchers;  // set when it has ended; the task's own loop only

 private:
  friend class TaskStore;
  TaskSnapshot now_;
  std::set<std::string> keys_;  // of all questions there ever were
  std::size_t asking_ = 0;      // questions of the core form, which travel by themselves
  Loop* home_ = nullptr;        // nullptr when nothing of it runs any more
  bool gone_ = false;           // expired while it ran
  bool seen_ = false;           // its end has been told
  std::stop_source stopping_;
  Changed changed_;
};

using TaskPtr = std::shared_ptr<TaskRecord>;

class TaskStore {
 public:
  explicit TaskStore(TaskOptions options) : options_(std::move(options)) {}

  // Errors: resource_exhausted. `ttl` as asked for, if it was. `changed` is called after each change, from
  // the thread that made it, and not under a lock.
  Result<TaskPtr> create(TaskOwner owner, std::optional<std::chrono::milliseconds> ttl, Loop& home,
                         TaskRecord::Changed changed);
  // nullptr when there is none, it has expired, or it is somebody else's.
  TaskPtr find(const std::string& id, const TaskOwner& owner);
  // Those after `number`, `most` of them, in the order of their creation.
  std::vector<TaskPtr> list(const TaskOwner& owner, std::uint64_t number, std::size_t most);
  TaskSnapshot look(const TaskPtr& task);
  std::size_t size() const;

  void set_message(const TaskPtr& task, std::string_view message);
  // A question, under a key that none had before. nullptr when it may not ask (any more).
  std::shared_ptr<TaskQuestion::Reply> ask(const TaskPtr& task, std::string key, std::string method,
                                           json::Raw params);
  // The answer to an open question; others are ignored.
  void answer(const TaskPtr& task, const std::string& key, json::Raw answer);
  // Core form: one more or one fewer question is on its way.
  void asking(const TaskPtr& task, bool begins);

  // Ends it, unless it has ended: false then.
  bool finish(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome);
  bool cancel(const TaskPtr& task);
  // Its time is over: it is not found any more, and asked to stop.
  void expire(const TaskPtr& task);
  // Cancels and forgets those of a session.
  void end_session(const std::string& session);
  // Nothing of it runs any more: it cannot answer by itself from now on.
  void let_go(const TaskPtr& task);

 private:
  bool finish_locked(const TaskPtr& task, TaskStatus status, std::optional<Answer> outcome);
  void stop_locked(const TaskPtr& task);
  bool make_room_locked();
  void touch(TaskRecord& task);

  TaskOptions options_;
  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, TaskPtr> tasks_;  // by number
  std::map<std::string, std::uint64_t> numbers_;
};

// Holds a task while something of it runs. When that is destroyed instead of ending, with its loop, the task
// fails.
class TaskHold {
 public:
  TaskHold(std::shared_ptr<TaskStore> store, TaskPtr task)
      : store_(std::move(store)), task_(std::move(task)) {}
  TaskHold(const TaskHold&) = delete;
  ~TaskHold();

 private:
  std::shared_ptr<TaskStore> store_;
  TaskPtr task_;
};

}  // namespace fairlead::mcp
