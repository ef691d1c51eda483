// Runs a handler until it has its result or asks a question that only the next round can answer.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "mcp/request_state.hpp"

namespace fairlead::mcp {

// What a handler came to: a result, an exception, or neither, when it asked a question.
template <class T>
struct Ended {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
};

namespace detail {

template <class T>
struct Run {
  Ended<T> ended;
  Event woken;
  bool waited_for = false;
};

template <class T>
Task<void> finish_into(Task<Result<T>> handler, std::shared_ptr<Run<T>> run, Loop& loop) {
  try {
    Result<T> result = co_await handler;
    run->ended.result.emplace(std::move(result));
  } catch (...) {
    run->ended.thrown = std::current_exception();
  }
  // Posted, as whoever is woken destroys this very frame.
  if (run->waited_for) {
    loop.post([run] { run->woken.set(); });
  }
}

}  // namespace detail

template <class T>
Task<Ended<T>> run_handler(std::shared_ptr<RequestState> state, Task<Result<T>> handler) {
  auto run = std::make_shared<detail::Run<T>>();
  Loop& loop = state->link->loop();
  state->on_question = [run] { run->woken.set(); };
  Task<void> running = detail::finish_into(std::move(handler), run, loop);
  running.await_suspend(std::noop_coroutine()).resume();
  if (!run->ended.result && !run->ended.thrown) {
    run->waited_for = true;
    const bool woken = co_await run->woken.wait(loop, Clock::duration::max());
    static_cast<void>(woken);
  }
  state->on_question = nullptr;
  co_return std::move(run->ended);
}

}  // namespace fairlead::mcp
