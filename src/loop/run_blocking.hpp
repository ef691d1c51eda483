// run_blocking(): runs blocking code on a worker thread and awaits its outcome on a loop.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/workers.hpp"

namespace fairlead {

namespace detail {

template <class T>
struct BlockingOutcome {
  std::optional<Result<T>> value;
  std::exception_ptr thrown;
};

}  // namespace detail

// Returns the result of `job`. Fails with the error of `job` or of Workers::submit(), and rethrows an
// exception of `job`. Destroying the task does not stop `job`, whose result is then dropped. If `workers` is
// destroyed while `job` is queued, `job` does not run, and the task stays suspended until it is destroyed.
// REQUIRES: `loop` outlives `workers`.
template <class T>
Task<Result<T>> run_blocking(Loop& loop, Workers& workers, std::move_only_function<Result<T>()> job) {
  const auto outcome = std::make_shared<detail::BlockingOutcome<T>>();
  Event ended;
  const Result<void> submitted =
      workers.submit([&loop, shared = outcome, ended, job = std::move(job)]() mutable {
        try {
          shared->value.emplace(job());
        } catch (...) {
          shared->thrown = std::current_exception();
        }
        // Moved, so that the last reference to the outcome is released on the loop thread.
        loop.post([shared = std::move(shared), ended]() mutable { ended.set(); });
      });
  if (!submitted) co_return submitted.error();
  co_await ended.wait(loop);
  if (outcome->thrown) std::rethrow_exception(outcome->thrown);
  co_return std::move(*outcome->value);
}

}  // namespace fairlead
