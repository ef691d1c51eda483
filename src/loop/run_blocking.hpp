// run_blocking(): awaits, on a loop, the outcome of code that blocks, which runs on a worker thread.
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

// `loop` outlives `workers`. Destroying the task does not stop `job`; its outcome is dropped then. Fails as
// `job` and Workers::submit() do, and throws what `job` throws. If `workers` is destroyed while `job` is
// queued, `job` does not run and the task stays suspended until it is destroyed.
template <class T>
Task<Result<T>> run_blocking(Loop& loop, Workers& workers, std::move_only_function<Result<T>()> job) {
  const auto outcome = std::make_shared<detail::BlockingOutcome<T>>();
  Event ended;
  const Result<void> submitted =
      workers.submit([&loop, made = outcome, ended, job = std::move(job)]() mutable {
        try {
          made->value.emplace(job());
        } catch (...) {
          made->thrown = std::current_exception();
        }
        // The loop releases the outcome, whose last reference this may be.
        loop.post([made = std::move(made), ended]() mutable { ended.set(); });
      });
  if (!submitted) co_return submitted.error();
  const bool set = co_await ended.wait(loop, Clock::duration::max());
  static_cast<void>(set);
  if (outcome->thrown) std::rethrow_exception(outcome->thrown);
  co_return std::move(*outcome->value);
}

}  // namespace fairlead
