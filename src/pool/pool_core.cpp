#include "pool/pool_core.hpp"

#include <algorithm>
#include <thread>

#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

std::size_t default_max_concurrent_starts() noexcept {
  return std::max<std::size_t>(4, 2 * std::size_t{std::thread::hardware_concurrency()});
}

Error with_retry_after(Error error, Clock::duration retry_after) {
  const auto rounded =
      std::chrono::ceil<std::chrono::milliseconds>(std::max(retry_after, Clock::duration::zero()));
  return std::move(error).with([&](ErrorDetail& d) { d.retry_after = rounded; });
}

Error limit_error(std::string message, Clock::duration retry_after) {
  return with_retry_after(with_failure_code(Error(ErrorKind::resource_exhausted, std::move(message))),
                          retry_after);
}

PoolCore::PoolCore(Loop& pool_loop, PoolOptions pool_options)
    : loop(pool_loop),
      options(std::move(pool_options)),
      process_permits(std::make_shared<Semaphore>(loop, options.limits.max_stdio_processes)),
      start_permits(std::make_shared<Semaphore>(loop, options.limits.max_concurrent_starts)),
      call_permits(std::make_shared<Semaphore>(loop, options.limits.max_calls)),
      waiting_calls(options.limits),
      eviction_timer_(loop) {
  all_closed_.set();
  if (!options.redactor) options.redactor = std::make_shared<SharedRedactor>();
  if (!options.monitor) options.monitor = std::make_shared<PoolMonitor>(options.redactor);
  options.client.connect.log = options.client.connect.log.redacting(options.redactor);
}

Error PoolCore::redacted(Error error) const {
  return json::redact(*options.redactor->snapshot(), std::move(error));
}

Task<Result<Semaphore::Permit>> PoolCore::acquire_process_permit(Clock::duration timeout,
                                                                 StartPriority priority) {
  const auto self = shared_from_this();
  Semaphore::Permit available = process_permits->try_acquire();
  if (available) co_return available;
  const PoolLimits& limits = options.limits;
  if (process_permits->waiter_count() >= limits.max_start_queue) {
    co_return limit_error(
        "max_start_queue (" + std::to_string(limits.max_start_queue) + ") servers already wait for a process",
        timeout);
  }
  // Posted, because evict_idle() must count this start as a waiter, and it is queued only below.
  loop.post([self] { self->evict_idle(); });
  const bool urgent = priority == StartPriority::call;
  Semaphore::Permit permit = co_await process_permits->acquire(timeout, std::stop_token(), urgent);
  if (permit) co_return permit;
  Clock::time_point evictable_at = Clock::now() + timeout;
  next_to_evict(Clock::now(), evictable_at);
  co_return limit_error("max_stdio_processes (" + std::to_string(limits.max_stdio_processes) +
                            ") processes are running, and none became idle in time",
                        evictable_at - Clock::now());
}

ManagedUpstream* PoolCore::next_to_evict(Clock::time_point now, Clock::time_point& evictable_at) const {
  ManagedUpstream* best = nullptr;
  for (ManagedUpstream* upstream : upstreams_) {
    if (!upstream->evictable()) continue;
    const Clock::time_point evictable_from = upstream->active.idle_since() + options.limits.evict_after;
    if (evictable_from > now) {
      evictable_at = std::min(evictable_at, evictable_from);
      continue;
    }
    const auto rank = [](const ManagedUpstream& u) {
      return std::pair(!u.key().empty(), u.active.idle_since());
    };
    if (!best || rank(*upstream) < rank(*best)) best = upstream;
  }
  return best;
}

void PoolCore::evict_idle() {
  const auto is_closing = [](const ManagedUpstream* upstream) { return upstream->slot.closing_process(); };
  const auto closing = static_cast<std::size_t>(std::ranges::count_if(upstreams_, is_closing));
  Clock::time_point evictable_at = Clock::time_point::max();
  // If the limit was lowered, more permits may be in use than it allows.
  const std::size_t in_use = process_permits->in_use();
  const std::size_t excess = in_use - std::min(in_use, process_permits->limit());
  const std::size_t waiting = process_permits->waiter_count();
  for (std::size_t permits = closing; waiting > 0 && permits < waiting + excess; ++permits) {
    ManagedUpstream* idle = next_to_evict(Clock::now(), evictable_at);
    if (!idle) break;
    idle->lifecycle.stop_until_requested("evicted: another server needs one of max_stdio_processes");
  }
  if (process_permits->waiter_count() > 0 && evictable_at != Clock::time_point::max())
    eviction_timer_.arm(evictable_at, [this] { evict_idle(); });
}

void PoolCore::on_connection_closed() {
  if (--live_connection_count_ > 0) return;
  all_closed_.set();
}

Task<bool> PoolCore::wait_until_all_closed(Clock::duration timeout) {
  const auto self = shared_from_this();
  if (live_connection_count_ == 0) co_return true;
  all_closed_.reset();
  const bool closed = co_await all_closed_.wait(loop, timeout);
  co_return closed;
}

}  // namespace fairlead::pool
