// Runs a handler until it has its result or asks a question that only the next round can answer.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "mcp/request_state.hpp"

namespace fairlead::mcp {

namespace detail {

template <class T>
struct Run {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
  Event woken;
  bool waited_for = false;
};

template <class T>
Task<void> finish_into(Task<Result<T>> handler, std::shared_ptr<Run<T>> run, Loop& loop) {
  try {
    Result<T> result = co_await handler;
    run->result.emplace(std::move(result));
  } catch (...) {
    run->thrown = std::current_exception();
  }
  // Posted, as whoever is woken destroys this very frame.
  if (run->waited_for) {
    loop.post([run] { run->woken.set(); });
  }
}

}  // namespace detail

// A handler that is to go on as a task: it is suspended at `next`.
template <class T>
struct GoesOn {
  std::shared_ptr<detail::Run<T>> run;
  Task<void> running;
  std::coroutine_handle<> next;
};

// What a handler came to: a result, an exception, a task, or none of them, when it asked a question.
template <class T>
struct Ended {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
  std::optional<GoesOn<T>> goes_on;
};

// A handler that has not begun.
template <class T>
GoesOn<T> not_begun(Task<Result<T>> handler, Loop& loop) {
  auto run = std::make_shared<detail::Run<T>>();
  Task<void> running = detail::finish_into(std::move(handler), run, loop);
  const std::coroutine_handle<> next = running.await_suspend(std::noop_coroutine());
  return GoesOn<T>{std::move(run), std::move(running), next};
}

template <class T>
Task<Ended<T>> run_handler(std::shared_ptr<RequestState> state, Task<Result<T>> handler) {
  auto run = std::make_shared<detail::Run<T>>();
  Loop& loop = state->link->loop();
  state->on_question = [run] { run->woken.set(); };
  Task<void> running = detail::finish_into(std::move(handler), run, loop);
  running.await_suspend(std::noop_coroutine()).resume();
  if (!run->result && !run->thrown) {
    run->waited_for = true;
    const bool woken = co_await run->woken.wait(loop, Clock::duration::max());
    static_cast<void>(woken);
  }
  state->on_question = nullptr;
  Ended<T> ended;
  if (state->becoming) {
    ended.goes_on.emplace(GoesOn<T>{run, std::move(running), std::exchange(state->becoming, nullptr)});
  } else {
    ended.result = std::move(run->result);
    ended.thrown = run->thrown;
  }
  co_return ended;
}

}  // namespace fairlead::mcp
