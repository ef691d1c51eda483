// Workers: a bounded thread pool for code that blocks, so that it does not block a loop.
#pragma once

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead {

class Workers {
 public:
  // Returns the limits for a pool with one thread. Such a pool runs jobs in the order of submission.
  static Limits single_thread_limits() {
    Limits limits;
    limits.max_blocking_threads = 1;
    return limits;
  }

  explicit Workers(const Limits& limits = {});
  // Waits for the running jobs. Queued jobs are destroyed without being run.
  ~Workers();

  // Runs `job` on a thread of the pool. Fails with `resource_exhausted` when max_blocking_queue is reached.
  // Threads are started on demand. Thread-safe.
  Result<void> submit(std::move_only_function<void()> job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead
