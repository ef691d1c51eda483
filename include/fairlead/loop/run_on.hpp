// RunOn: awaits, on one loop, the outcome of a task that runs on another.
//
//   RunOn<Result<int>> elsewhere(here, other, std::move(task));
//   Result<int> outcome = co_await elsewhere;
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

#include "fairlead/loop/loop.hpp"

namespace fairlead {

// `task` is destroyed on `other`. Awaited on `here`, once. If it is destroyed before the outcome has arrived,
// the task runs on, and its outcome is destroyed on `here`. Tasks, and what is posted, go to `other` in the
// order in which one thread sends them, and so do outcomes to `here`.
template <class T>
class RunOn {
 public:
  RunOn(Loop& here, Loop& other, Task<T> task)
      : crossing_(std::make_shared<Crossing>(here)), other_(other), task_(std::move(task)) {}
  RunOn(const RunOn&) = delete;
  ~RunOn() { crossing_->waiting = nullptr; }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    crossing_->waiting = handle;
    other_.spawn(run(std::move(task_), crossing_));
  }
  T await_resume() { return std::move(*crossing_->outcome); }

 private:
  // Used on `here` only, but for the reference to it.
  struct Crossing {
    explicit Crossing(Loop& loop) : here(loop) {}
    Loop& here;
    std::coroutine_handle<> waiting;
    std::optional<T> outcome;
  };

  static Task<void> run(Task<T> task, std::shared_ptr<Crossing> crossing) {
    T outcome = co_await task;
    Loop& here = crossing->here;
    here.post([crossing = std::move(crossing), outcome = std::move(outcome)]() mutable {
      if (!crossing->waiting) return;
      crossing->outcome.emplace(std::move(outcome));
      std::exchange(crossing->waiting, nullptr).resume();
    });
  }

  std::shared_ptr<Crossing> crossing_;
  Loop& other_;
  Task<T> task_;
};

}  // namespace fairlead
