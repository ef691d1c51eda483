// Loop: an event loop of one thread. A connection, a child process or a peer stays on one loop for its
// lifetime, so objects on a loop need no lock. Only post(), spawn(), stop(), block_on() and in_loop_thread()
// may be called from other threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "fairlead/loop/fair_queue.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/turn_meter.hpp"

namespace fairlead {

namespace detail {
class Reactor;
}

using Clock = std::chrono::steady_clock;

class Loop {
 public:
  using Callback = std::move_only_function<void()>;

  // Throws std::system_error when the process is out of file descriptors.
  Loop();
  // Destroys the tasks that are still suspended on this loop. REQUIRES: run() is not running.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). The calling thread is the loop thread for that time. Blocks while another thread runs
  // the loop.
  void run();
  // Runs until `done`, which is called after each callback, returns true, or until stop(). For programs whose
  // main thread runs the loop.
  void run_until(const std::function<bool()>& done);
  void stop();

  // Runs `callback` on the loop thread, after the current turn. Thread-safe.
  void post(Callback callback);
  // Starts a task on the loop and owns it until it ends. An exception of the task terminates the program,
  // except std::bad_alloc, which ends the task only: a task that may fail returns a Result. Thread-safe.
  void spawn(Task<void> task);
  // Runs `task` on this loop and blocks the calling thread until its result is available. If no thread runs
  // the loop, the calling thread runs it until then. REQUIRES: not called on the loop thread.
  template <class T>
  T block_on(Task<T> task);

  // Returns when the current callback began, without asking the clock. For times that need not be exact, such
  // as the last use of a session. Loop thread only, while the loop runs.
  Clock::time_point now() const noexcept;

  // Returns whether the calling thread is running this loop. Thread-safe.
  bool in_loop_thread() const noexcept;

  // Returns the read buffer that all connections of this loop share, so that each read can be large and an
  // idle connection needs no buffer. Its content is valid until the current callback returns. The buffer
  // starts at 64 KiB. grow_scratch_buffer() doubles it, up to 1 MiB; call it after a read that filled the
  // buffer.
  std::span<char> scratch_buffer();
  void grow_scratch_buffer();

  // Returns the queue for work of clients that does not fit into the current turn. Loop thread only.
  FairQueue& fair_queue() noexcept;

  // Returns the meter of how long callbacks occupy the loop thread. Loop thread only.
  TurnMeter& turn_meter() noexcept;

  // Returns the object of type Service that belongs to this loop, constructed from the loop at the first
  // call. It is destroyed with the loop, after the tasks of the loop. Loop thread only.
  template <class Service>
  Service& service();

  // For the implementation of timers and descriptors.
  detail::Reactor& reactor() noexcept;

 private:
  struct Impl;
  using ServiceKey = const void*;
  std::shared_ptr<void>& service_slot(ServiceKey key);
  // Like run_until(), but returns at once if another thread runs the loop.
  void run_until_if_free(const std::function<bool()>& done);
  std::unique_ptr<Impl> impl_;
};

// co_await ResumeOn(loop): the rest of the coroutine runs on that loop.
class ResumeOn {
 public:
  explicit ResumeOn(Loop& loop) noexcept : loop_(&loop) {}
  bool await_ready() const noexcept { return loop_->in_loop_thread(); }
  void await_suspend(std::coroutine_handle<> handle) const {
    loop_->post([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  Loop* loop_;
};

namespace detail {

// Its address identifies a type.
template <class Service>
inline constexpr char service_key = 0;

// Sets `promise` to the outcome of `task`. The coroutine owns the promise because the waiting thread may
// destroy its own objects before set_value() has returned.
template <class T>
Task<void> fulfil(Task<T> task, std::promise<T> promise) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
      promise.set_value();
    } else {
      T value = co_await task;
      promise.set_value(std::move(value));
    }
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

}  // namespace detail

template <class Service>
Service& Loop::service() {
  const ServiceKey key = &detail::service_key<Service>;
  if (const auto& known = service_slot(key)) return *static_cast<Service*>(known.get());
  // The constructor may call service() for another type.
  const auto made = std::make_shared<Service>(*this);
  service_slot(key) = made;
  return *made;
}

template <class T>
T Loop::block_on(Task<T> task) {
  std::promise<T> promise;
  std::future<T> future = promise.get_future();
  spawn(detail::fulfil(std::move(task), std::move(promise)));
  run_until_if_free([&] { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  return future.get();
}

}  // namespace fairlead
