// Workers: a bounded pool of threads for code that blocks. Loops hand work over and go on.
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
  // For a pool of one thread, which runs its jobs in the order in which they were submitted.
  static Limits one_thread() {
    Limits limits;
    limits.max_blocking_threads = 1;
    return limits;
  }

  explicit Workers(const Limits& limits = {});
  // Waits for the work under way; work still queued is dropped.
  ~Workers();

  // Runs `job` on a thread of the pool. Fails with resource_exhausted when max_blocking_queue is reached.
  // Threads start when they are first needed.
  Result<void> submit(std::move_only_function<void()> job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead
