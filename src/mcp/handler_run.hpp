// run_handler(): runs a handler until it returns a result, throws, becomes a task, or needs an input response
// that only the next round of its request can contain. Private to the layer.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "mcp/request_state.hpp"

namespace fairlead::mcp {

namespace detail {

// State of a running handler, shared by the coroutine that runs it and the one that waits for it.
template <class T>
struct HandlerRun {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
  Event woken;
  bool has_waiter = false;
};

template <class T>
Task<void> run_and_store(Task<Result<T>> handler, std::shared_ptr<HandlerRun<T>> run, Loop& loop) {
  try {
    Result<T> result = co_await handler;
    run->result.emplace(std::move(result));
  } catch (...) {
    run->thrown = std::current_exception();
  }
  // Posted, since the waiter, when it is woken, destroys the frame of this coroutine.
  if (run->has_waiter) {
    loop.post([run] { run->woken.set(); });
  }
}

}  // namespace detail

// A suspended handler, which continues as a task when continuation.resume() is called.
template <class T>
struct SuspendedHandler {
  std::shared_ptr<detail::HandlerRun<T>> run;
  Task<void> running;
  std::coroutine_handle<> continuation;
};

// Outcome of run_handler(): a result, an exception, or a handler that continues as a task. All three are
// empty if the handler needs an input response that only the next round can contain.
template <class T>
struct HandlerOutcome {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
  std::optional<SuspendedHandler<T>> suspended;
};

// Returns a handler that is suspended at its start.
template <class T>
SuspendedHandler<T> suspend_at_start(Task<Result<T>> handler, Loop& loop) {
  auto run = std::make_shared<detail::HandlerRun<T>>();
  Task<void> running = detail::run_and_store(std::move(handler), run, loop);
  const std::coroutine_handle<> continuation = running.await_suspend(std::noop_coroutine());
  return SuspendedHandler<T>{std::move(run), std::move(running), continuation};
}

// Runs `handler` on the loop of `state->link`. A handler that needs an input response of the next round is
// destroyed; it runs again from its start in that round.
template <class T>
Task<HandlerOutcome<T>> run_handler(std::shared_ptr<RequestState> state, Task<Result<T>> handler) {
  auto run = std::make_shared<detail::HandlerRun<T>>();
  Loop& loop = state->link->loop();
  state->on_suspend = [run] { run->woken.set(); };
  Task<void> running = detail::run_and_store(std::move(handler), run, loop);
  running.await_suspend(std::noop_coroutine()).resume();
  if (!run->result && !run->thrown) {
    run->has_waiter = true;
    co_await run->woken.wait(loop);
  }
  state->on_suspend = nullptr;
  HandlerOutcome<T> outcome;
  if (state->suspended_handler) {
    outcome.suspended.emplace(
        SuspendedHandler<T>{run, std::move(running), std::exchange(state->suspended_handler, nullptr)});
  } else {
    outcome.result = std::move(run->result);
    outcome.thrown = run->thrown;
  }
  co_return outcome;
}

}  // namespace fairlead::mcp
