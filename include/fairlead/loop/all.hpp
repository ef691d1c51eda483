// all(): awaits several tasks concurrently. The tasks are started in order, and each one runs until it first
// suspends. The awaiting coroutine resumes when the last task has ended and gets the results in the same
// order.
//
// Example:
//   auto both = all(first(), second());
//   auto [a, b] = co_await both;
//
// An exception of a task is rethrown in the awaiting coroutine, after all tasks have ended.
#pragma once

#include <tuple>

#include "fairlead/loop/task.hpp"

namespace fairlead {

namespace detail {

// Awaitable that decrements `pending` and suspends the coroutine that awaits it. When `pending` reaches 0,
// resumes `awaiting`.
class CountDown {
 public:
  CountDown(std::size_t& pending, std::coroutine_handle<> awaiting) noexcept
      : pending_(pending), awaiting_(awaiting) {}
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
    return --pending_ == 0 ? awaiting_ : std::noop_coroutine();
  }
  void await_resume() const noexcept {}

 private:
  std::size_t& pending_;
  std::coroutine_handle<> awaiting_;
};

// The continuation of every task. It is resumed once for each task that ends, and decrements `pending`. The
// awaiting coroutine may destroy this coroutine when the last task has ended.
inline Task<void> count_ended_tasks(std::size_t& pending, std::coroutine_handle<> awaiting) {
  for (;;) {
    CountDown count_down(pending, awaiting);
    co_await count_down;
  }
}

}  // namespace detail

template <class... T>
class [[nodiscard]] All {
 public:
  explicit All(Task<T>... tasks) : tasks_(std::move(tasks)...) {}
  All(const All&) = delete;
  All& operator=(const All&) = delete;

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    counter_ = detail::count_ended_tasks(pending_, awaiting);
    const std::coroutine_handle<> continuation = counter_.await_suspend(std::noop_coroutine());
    std::apply([&](auto&... task) { (task.await_suspend(continuation).resume(), ...); }, tasks_);
    return --pending_ == 0 ? awaiting : std::noop_coroutine();
  }
  std::tuple<T...> await_resume() {
    return std::apply([](auto&... task) { return std::tuple<T...>{task.await_resume()...}; }, tasks_);
  }

 private:
  std::tuple<Task<T>...> tasks_;
  // One more than there are tasks, so that it does not reach 0 before all of them are started.
  std::size_t pending_ = sizeof...(T) + 1;
  Task<void> counter_{Task<void>::Handle()};
};

template <class... T>
All<T...> all(Task<T>... tasks) {
  return All<T...>(std::move(tasks)...);
}

}  // namespace fairlead
