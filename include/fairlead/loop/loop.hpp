// Loop: one thread's event loop. A connection, a child process and a peer live on one loop for life, so
// nothing on it needs a lock. Only post(), spawn(), stop() and here() may be called from other threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "fairlead/base/bytes.hpp"
#include "fairlead/loop/fair_queue.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/turn_meter.hpp"

namespace boost::asio {
class io_context;
}

namespace fairlead {

using Clock = std::chrono::steady_clock;

class Loop {
 public:
  using Callback = std::move_only_function<void()>;

  // Throws std::system_error when the operating system has no descriptors left for it.
  Loop();
  // Destroys the tasks that are still suspended on this loop. REQUIRES: run() is not running.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). The calling thread is the loop's thread for that time; while another thread is, it
  // waits.
  void run();
  // Runs until `done` says so or stop(); for programs whose own thread is the loop.
  void run_until(const std::function<bool()>& done);
  void stop();

  // Runs `callback` on the loop, after what is running there now. From any thread.
  void post(Callback callback);
  // Starts a task on the loop and owns it until it ends. What it throws ends the program: a task
  // that may fail returns a Result. From any thread.
  void spawn(Task<void> task);
  // Runs `task` on this loop and waits for its result on the calling thread. When nobody runs the loop,
  // the calling thread does, for as long as the task takes. Never call it from the loop itself.
  template <class T>
  T block_on(Task<T> task);

  // Whether the calling thread is running this loop.
  bool here() const noexcept;

  // A buffer shared by everything that reads on this loop: one large read each, and an idle
  // connection holds no buffer of its own. Valid until the current callback returns. It starts at
  // 64 KiB; grow_scratch(), called after a read that filled it, doubles it up to 1 MiB.
  std::span<char> scratch();
  void grow_scratch();

  // Memory for large frames, used again and again: fresh pages for every megabyte cost more than the megabyte
  // itself. A few blocks are remembered, none over 4 MiB; large_buffer() gives one that nobody uses any more,
  // or an empty string.
  std::string large_buffer();
  void remember_large(const Bytes& block);

  // For what clients have left to do at the end of a turn. Loop thread only.
  FairQueue& fair() noexcept;

  // How long callbacks hold the loop's thread. Loop thread only.
  TurnMeter& turns() noexcept;

  boost::asio::io_context& context() noexcept;

 private:
  struct Impl;
  // As run_until(), unless another thread runs the loop: then returns at once.
  void run_until_if_free(const std::function<bool()>& done);
  std::unique_ptr<Impl> impl_;
};

// co_await resume_on(loop): the rest of the coroutine runs on that loop.
class ResumeOn {
 public:
  explicit ResumeOn(Loop& loop) noexcept : loop_(&loop) {}
  bool await_ready() const noexcept { return loop_->here(); }
  void await_suspend(std::coroutine_handle<> handle) const {
    loop_->post([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  Loop* loop_;
};

namespace detail {

// The promise is the coroutine's own: whoever waits may be gone before set_value() has returned.
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

template <class T>
T Loop::block_on(Task<T> task) {
  std::promise<T> promise;
  std::future<T> future = promise.get_future();
  spawn(detail::fulfil(std::move(task), std::move(promise)));
  run_until_if_free([&] { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  return future.get();
}

}  // namespace fairlead
