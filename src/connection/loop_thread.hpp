// LoopThread: a loop with a thread of its own, behind the facades for programs that have none. Private.
#pragma once

#include <future>
#include <thread>
#include <utility>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead {

// To be destroyed last: everything on the loop must be gone before.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;

  Loop& loop() noexcept { return loop_; }
  // Waits for a task that runs on the loop.
  template <class T>
  T wait_for(Task<T> task) {
    std::promise<T> promise;
    std::future<T> future = promise.get_future();
    loop_.spawn(detail::fulfil(std::move(task), std::move(promise)));
    return future.get();
  }

 private:
  Loop loop_;
  std::thread thread_;
};

}  // namespace fairlead
