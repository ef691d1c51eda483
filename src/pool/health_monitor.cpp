#include "pool/health_monitor.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::pool {

void HealthMonitor::start() {
  running_ = true;
  ping_pending_ = false;
  record_activity();
  schedule_check();
}

void HealthMonitor::stop() {
  running_ = false;
  check_timer_.cancel();
  ping_timer_.cancel();
}

void HealthMonitor::record_activity() {
  last_activity_ = Clock::now();
  ping_timed_out_ = false;
  if (std::exchange(ping_pending_, false)) ping_timer_.cancel();
}

bool HealthMonitor::healthy(Clock::time_point now) const noexcept {
  const Clocks& clocks = spec_.clocks;
  const bool recent = clocks.health.count() == 0 || now - last_activity_ <= clocks.health + clocks.ping;
  return running_ && !ping_timed_out_ && recent;
}

void HealthMonitor::schedule_check() {
  const Clocks& clocks = spec_.clocks;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  if (stops_when_idle()) next = (calls_.unused() ? calls_.idle_since() : now) + clocks.idle_stop;
  if (clocks.health.count() > 0)
    next = std::min(next, (ping_pending_ ? now : last_activity_) + clocks.health);
  if (next != Clock::time_point::max()) check_timer_.arm(next, [this] { check(); });
}

void HealthMonitor::check() {
  if (!running_) return;
  const Clocks& clocks = spec_.clocks;
  const Clock::time_point now = Clock::now();
  const bool idle = stops_when_idle() && calls_.unused() && now - calls_.idle_since() >= clocks.idle_stop;
  if (idle) return actions_.on_idle();
  if (clocks.health.count() > 0 && now - last_activity_ >= clocks.health) ping();
  if (running_) schedule_check();
}

void HealthMonitor::ping() {
  if (ping_pending_ || !running_) return;
  ping_pending_ = true;
  last_call_before_ping_ = calls_.last_number();
  ping_timer_.arm_after(spec_.clocks.ping, [this] {
    if (!running_) return;
    ping_timed_out_ = true;
    actions_.on_ping_timeout();
    replace_if_unresponsive();
  });
  actions_.send_ping();
}

void HealthMonitor::replace_if_unresponsive() {
  if (!ping_timed_out_ || !running_ || calls_.any_up_to(last_call_before_ping_)) return;
  ping_timed_out_ = false;
  actions_.on_unresponsive();
}

}  // namespace fairlead::pool
