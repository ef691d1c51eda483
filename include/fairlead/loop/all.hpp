// all(): awaits several tasks side by side. They are started in order, each runs until it first waits, and
// the awaiting coroutine goes on when the last of them has ended, with their results in the same order.
//
//   auto both = all(first(), second());
//   auto [a, b] = co_await both;
//
// What a task throws reaches the awaiting coroutine, once all have ended.
#pragma once

#include <tuple>

#include "fairlead/loop/task.hpp"

namespace fairlead {

namespace detail {

// co_await: counts one down. The last one passes control on.
class Arrival {
 public:
  Arrival(std::size_t& left, std::coroutine_handle<> awaiting) noexcept : left_(left), awaiting_(awaiting) {}
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
    return --left_ == 0 ? awaiting_ : std::noop_coroutine();
  }
  void await_resume() const noexcept {}

 private:
  std::size_t& left_;
  std::coroutine_handle<> awaiting_;
};

// What each task goes on to when it ends, and is then done with: whoever awaits may destroy it.
inline Task<void> count_arrivals(std::size_t& left, std::coroutine_handle<> awaiting) {
  for (;;) {
    Arrival one(left, awaiting);
    co_await one;
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
    arrivals_ = detail::count_arrivals(left_, awaiting);
    const std::coroutine_handle<> arrived = arrivals_.await_suspend(std::noop_coroutine());
    std::apply([&](auto&... task) { (task.await_suspend(arrived).resume(), ...); }, tasks_);
    return --left_ == 0 ? awaiting : std::noop_coroutine();
  }
  std::tuple<T...> await_resume() {
    return std::apply([](auto&... task) { return std::tuple<T...>{task.await_resume()...}; }, tasks_);
  }

 private:
  std::tuple<Task<T>...> tasks_;
  std::size_t left_ = sizeof...(T) + 1;  // the one more is held while they are started
  Task<void> arrivals_{Task<void>::Handle()};
};

template <class... T>
All<T...> all(Task<T>... tasks) {
  return All<T...>(std::move(tasks)...);
}

}  // namespace fairlead
