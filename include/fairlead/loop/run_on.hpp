// RunOn: awaits on one loop the outcome of a task that runs on another loop.
//
// Example:
//   RunOn<Result<int>> running(loop, other_loop, first());
//   Result<int> outcome = co_await running;
//
// run_charged(): the same, with a limit on the bytes that are queued for either loop.
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/posted_bytes.hpp"

namespace fairlead {

// Awaited once, on `awaiting_loop`. `task` runs and is destroyed on `running_loop`. If RunOn is destroyed
// before the outcome has arrived, the task keeps running, and its outcome is destroyed on `awaiting_loop`.
// Tasks and posted callbacks of one thread run on `running_loop` in the order in which the thread submits
// them. Outcomes reach `awaiting_loop` in the order in which the tasks end.
template <class T>
class RunOn {
 public:
  RunOn(Loop& awaiting_loop, Loop& running_loop, Task<T> task)
      : state_(std::make_shared<SharedState>(awaiting_loop)),
        running_loop_(running_loop),
        task_(std::move(task)) {}
  RunOn(const RunOn&) = delete;
  ~RunOn() { state_->waiting = nullptr; }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    state_->waiting = handle;
    running_loop_.spawn(run(std::move(task_), state_));
  }
  T await_resume() { return std::move(*state_->outcome); }

 private:
  // Used on `awaiting_loop` only. The exception is the reference to that loop, which `running_loop` reads.
  struct SharedState {
    explicit SharedState(Loop& loop) : awaiting_loop(loop) {}
    Loop& awaiting_loop;
    std::coroutine_handle<> waiting;
    std::optional<T> outcome;
  };

  static Task<void> run(Task<T> task, std::shared_ptr<SharedState> state) {
    T outcome = co_await task;
    Loop& awaiting_loop = state->awaiting_loop;
    awaiting_loop.post([state = std::move(state), outcome = std::move(outcome)]() mutable {
      if (!state->waiting) return;
      state->outcome.emplace(std::move(outcome));
      std::exchange(state->waiting, nullptr).resume();
    });
  }

  std::shared_ptr<SharedState> state_;
  Loop& running_loop_;
  Task<T> task_;
};

// The outcome of a task with the charge for its bytes. REQUIRES: T can be constructed from an Error.
template <class T>
struct ChargedOutcome {
  ChargedOutcome(T value, PostedBytes::Charge charged)
      : outcome(std::move(value)), charge(std::move(charged)) {}
  T outcome;
  PostedBytes::Charge charge;
};

// Returns the number of bytes to charge for an outcome.
template <class T>
using OutcomeBytes = std::size_t (*)(const T& outcome);

// Awaits `task` on the loop where it runs, and charges its outcome. Releases the charge of its arguments
// first.
template <class T>
Task<ChargedOutcome<T>> charge_outcome(PostedBytes posted, PostedBytes::Charge arguments, Task<T> task,
                                       OutcomeBytes<T> outcome_bytes) {
  arguments.release();
  T outcome = co_await task;
  Result<PostedBytes::Charge> charge = posted.charge(outcome_bytes(outcome));
  if (!charge) co_return ChargedOutcome<T>(T(charge.error()), PostedBytes::Charge());
  co_return ChargedOutcome<T>(std::move(outcome), std::move(*charge));
}

// Awaits on `awaiting_loop` the outcome of a task that runs on `running_loop`. The task's arguments of
// `argument_bytes` are charged to `posted` until `running_loop` starts the task; its outcome is charged until
// `awaiting_loop` has received it. Fails with the error of PostedBytes::charge() if the arguments exceed the
// limit (the task is not started) or if the outcome exceeds it (the task has ended).
template <class T>
Task<T> run_charged(Loop& awaiting_loop, Loop& running_loop, PostedBytes posted, std::size_t argument_bytes,
                    Task<T> task, OutcomeBytes<T> outcome_bytes) {
  Result<PostedBytes::Charge> charge = posted.charge(argument_bytes);
  if (!charge) co_return T(charge.error());
  Task<ChargedOutcome<T>> charged =
      charge_outcome(posted, std::move(*charge), std::move(task), outcome_bytes);
  RunOn<ChargedOutcome<T>> running(awaiting_loop, running_loop, std::move(charged));
  ChargedOutcome<T> received = co_await running;
  co_return std::move(received.outcome);
}

}  // namespace fairlead
