// LoopThread: a loop with a thread of its own, for the blocking API of programs that have no loop.
// Private to the library.
#pragma once

#include <future>
#include <thread>
#include <utility>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead {

// REQUIRES: all objects on the loop are destroyed before the LoopThread.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;

  Loop& loop() noexcept { return loop_; }
  // Runs `task` on the loop and blocks the calling thread until its result is available.
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
