#include "pool/health_monitor.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::pool {

void HealthMonitor::start() {
  running_ = true;
  pinging_ = false;
  sign_of_life();
  schedule();
}

void HealthMonitor::stop() {
  running_ = false;
  check_timer_.cancel();
  ping_timer_.cancel();
}

void HealthMonitor::sign_of_life() {
  last_sign_ = Clock::now();
  suspect_ = false;
  if (std::exchange(pinging_, false)) ping_timer_.cancel();
}

bool HealthMonitor::healthy(Clock::time_point now) const noexcept {
  const Clocks& clocks = spec_.clocks;
  const bool recent = clocks.health.count() == 0 || now - last_sign_ <= clocks.health + clocks.ping;
  return running_ && !suspect_ && recent;
}

void HealthMonitor::schedule() {
  const Clocks& clocks = spec_.clocks;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  if (stops_when_idle()) next = (calls_.unused() ? calls_.idle_since() : now) + clocks.idle_stop;
  if (clocks.health.count() > 0) next = std::min(next, (pinging_ ? now : last_sign_) + clocks.health);
  if (next != Clock::time_point::max()) check_timer_.arm(next, [this] { check(); });
}

void HealthMonitor::check() {
  if (!running_) return;
  const Clocks& clocks = spec_.clocks;
  const Clock::time_point now = Clock::now();
  const bool idle = stops_when_idle() && calls_.unused() && now - calls_.idle_since() >= clocks.idle_stop;
  if (idle) return actions_.idle();
  if (clocks.health.count() > 0 && now - last_sign_ >= clocks.health) ping();
  if (running_) schedule();
}

void HealthMonitor::ping() {
  if (pinging_ || !running_) return;
  pinging_ = true;
  pinged_after_ = calls_.last_number();
  ping_timer_.arm_after(spec_.clocks.ping, [this] {
    if (!running_) return;
    suspect_ = true;
    actions_.silent();
    replace_if_unresponsive();
  });
  actions_.ping();
}

void HealthMonitor::replace_if_unresponsive() {
  if (!suspect_ || !running_ || calls_.any_until(pinged_after_)) return;
  suspect_ = false;
  actions_.unresponsive();
}

}  // namespace fairlead::pool
