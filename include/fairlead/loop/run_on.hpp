// RunOn: awaits, on one loop, the outcome of a task that runs on another.
//
//   RunOn<Result<int>> elsewhere(here, other, std::move(task));
//   Result<int> outcome = co_await elsewhere;
//
// run_charged(): the same with a limit of the bytes that wait for either loop.
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/posted_bytes.hpp"

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

// An outcome on its way back. T is made of an Error, too.
template <class T>
struct ChargedOutcome {
  ChargedOutcome(T value, PostedBytes::Charge charged)
      : outcome(std::move(value)), charge(std::move(charged)) {}
  T outcome;
  PostedBytes::Charge charge;
};

template <class T>
using OutcomeBytes = std::size_t (*)(const T& outcome);

// On `other`.
template <class T>
Task<ChargedOutcome<T>> charge_outcome(PostedBytes posted, PostedBytes::Charge arguments, Task<T> task,
                                       OutcomeBytes<T> outcome_bytes) {
  arguments.release();
  T outcome = co_await task;
  Result<PostedBytes::Charge> charge = posted.charge(outcome_bytes(outcome));
  if (!charge) co_return ChargedOutcome<T>(T(charge.error()), PostedBytes::Charge());
  co_return ChargedOutcome<T>(std::move(outcome), std::move(*charge));
}

// Awaits on `here` the outcome of a task that runs on `other`. The task's arguments of `argument_bytes` are
// charged to `posted` until `other` starts the task, its outcome until `here` has received it. If one of them
// does not fit, the outcome is that error instead; the task has not been started then, or has ended.
template <class T>
Task<T> run_charged(Loop& here, Loop& other, PostedBytes posted, std::size_t argument_bytes, Task<T> task,
                    OutcomeBytes<T> outcome_bytes) {
  Result<PostedBytes::Charge> charge = posted.charge(argument_bytes);
  if (!charge) co_return T(charge.error());
  Task<ChargedOutcome<T>> charged =
      charge_outcome(posted, std::move(*charge), std::move(task), outcome_bytes);
  RunOn<ChargedOutcome<T>> running(here, other, std::move(charged));
  ChargedOutcome<T> received = co_await running;
  co_return std::move(received.outcome);
}

}  // namespace fairlead
