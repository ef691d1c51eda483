#include "pool/core.hpp"

#include <algorithm>
#include <thread>

#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

std::size_t default_concurrent_starts() noexcept {
  return std::max<std::size_t>(4, 2 * std::size_t{std::thread::hardware_concurrency()});
}

Error with_retry(Error error, Clock::duration after) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(std::max(after, Clock::duration::zero()));
  return std::move(error).with([&](ErrorDetail& d) { d.retry_after = whole; });
}

Error limit_reached(std::string message, Clock::duration retry_after) {
  return with_retry(with_failure_code(Error(ErrorKind::resource_exhausted, std::move(message))), retry_after);
}

Core::Core(Loop& on, PoolOptions given)
    : loop(on),
      options(std::move(given)),
      processes(std::make_shared<Gate>(on, options.limits.max_stdio_processes)),
      starts(std::make_shared<Gate>(on, options.limits.max_concurrent_starts)),
      calls(std::make_shared<Gate>(on, options.limits.max_calls)),
      waiting_calls(options.limits),
      room_timer_(on) {
  quiet_.set();
  if (!options.redactor) options.redactor = std::make_shared<SharedRedactor>();
  options.client.connect.log = options.client.connect.log.redacting(options.redactor);
}

Error Core::redacted(Error error) const {
  return json::redact(*options.redactor->current(), std::move(error));
}

Task<Result<Gate::Pass>> Core::enter_process(Clock::duration patience, StartPriority priority) {
  const auto keep = shared_from_this();
  Gate::Pass at_once = processes->try_enter();
  if (at_once) co_return at_once;
  const PoolLimits& limits = options.limits;
  if (processes->waiting() >= limits.max_start_queue) {
    co_return limit_reached(
        "max_start_queue (" + std::to_string(limits.max_start_queue) + ") servers wait for a process already",
        patience);
  }
  // Posted, to be done when this one stands in line.
  loop.post([keep] { keep->make_room(); });
  const bool urgent = priority == StartPriority::call;
  Task<Gate::Pass> entering = processes->enter(patience, std::stop_token(), urgent);
  Gate::Pass pass = co_await entering;
  if (pass) co_return pass;
  Clock::time_point ripe_at = Clock::now() + patience;
  next_to_evict(Clock::now(), ripe_at);
  co_return limit_reached("max_stdio_processes (" + std::to_string(limits.max_stdio_processes) +
                              ") processes run already, and none became idle in time",
                          ripe_at - Clock::now());
}

// The least recently used of those that are idle; what is kept for one session or user, and perhaps remembers
// something, only when there is no other. Null when none may go yet; then `ripe_at` is when one may, if
// sooner.
ManagedUpstream* Core::next_to_evict(Clock::time_point now, Clock::time_point& ripe_at) const {
  ManagedUpstream* best = nullptr;
  for (ManagedUpstream* upstream : upstreams_) {
    if (!upstream->evictable()) continue;
    const Clock::time_point ripe = upstream->active.idle_since() + options.limits.evict_after;
    if (ripe > now) {
      ripe_at = std::min(ripe_at, ripe);
      continue;
    }
    const auto rank = [](const ManagedUpstream& u) {
      return std::pair(!u.key().empty(), u.active.idle_since());
    };
    if (!best || rank(*upstream) < rank(*best)) best = upstream;
  }
  return best;
}

void Core::make_room() {
  const auto gives_place = [](const ManagedUpstream* upstream) { return upstream->slot.gives_place(); };
  const auto leaving = static_cast<std::size_t>(std::ranges::count_if(upstreams_, gives_place));
  Clock::time_point ripe_at = Clock::time_point::max();
  for (std::size_t due = leaving; due < processes->waiting(); ++due) {
    ManagedUpstream* idle = next_to_evict(Clock::now(), ripe_at);
    if (!idle) break;
    idle->lifecycle.rest("its place among max_stdio_processes is needed");
  }
  if (processes->waiting() > 0 && ripe_at != Clock::time_point::max())
    room_timer_.arm(ripe_at, [this] { make_room(); });
}

void Core::died() {
  if (--live_ > 0) return;
  quiet_.set();
}

Task<bool> Core::all_gone(Clock::duration patience) {
  const auto keep = shared_from_this();
  if (live_ == 0) co_return true;
  quiet_.reset();
  const bool gone = co_await quiet_.wait(loop, patience);
  co_return gone;
}

}  // namespace fairlead::pool
