// run_blocking(): awaits, on a loop, the outcome of code that blocks, which runs on a worker thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/workers.hpp"

namespace fairlead {

// `loop` outlives `workers`. Destroying the task does not stop `job`; its outcome is dropped then. Fails as
// `job` and Workers::submit() do.
template <class T>
Task<Result<T>> run_blocking(Loop& loop, Workers& workers, std::move_only_function<Result<T>()> job) {
  const auto outcome = std::make_shared<std::optional<Result<T>>>();
  Event ended;
  const Result<void> submitted = workers.submit([&loop, outcome, ended, job = std::move(job)]() mutable {
    loop.post([outcome, ended, made = job()]() mutable {
      outcome->emplace(std::move(made));
      ended.set();
    });
  });
  if (!submitted) co_return submitted.error();
  const bool set = co_await ended.wait(loop, Clock::duration::max());
  static_cast<void>(set);
  co_return std::move(**outcome);
}

}  // namespace fairlead
