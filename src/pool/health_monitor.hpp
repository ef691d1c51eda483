// HealthMonitor: checks a ready connection with timers. It pings a server that has sent nothing for
// `clocks.health`. It reports a server that answers neither pings nor calls, so that the pool replaces it,
// and a server that has had no call for `clocks.idle_stop`, so that the pool stops it. Private to the layer.
#pragma once

#include <functional>

#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/server_spec.hpp"
#include "pool/active_calls.hpp"

namespace fairlead::pool {

class HealthMonitor {
 public:
  struct Actions {
    std::function<void()> send_ping;  // sends a ping; when it is answered, the owner calls record_activity()
    std::function<void()> on_ping_timeout;  // a ping was not answered within clocks.ping
    std::function<void()> on_unresponsive;  // neither a ping nor a call that was sent before it was answered
    std::function<void()> on_idle;          // no call for clocks.idle_stop
  };

  // REQUIRES: `spec` and `calls` outlive the monitor. The actions may call stop().
  HealthMonitor(Loop& loop, const ServerSpec& spec, const ActiveCalls& calls, Actions actions)
      : spec_(spec), calls_(calls), actions_(std::move(actions)), check_timer_(loop), ping_timer_(loop) {}

  // To be called when a connection is ready.
  void start();
  // To be called when the connection is no longer ready.
  void stop();
  // To be called when the server has sent something.
  void record_activity();
  Clock::time_point last_activity() const noexcept { return last_activity_; }
  // Pings the server unless a ping is pending.
  void ping();
  // Runs Actions::on_unresponsive if the last ping has timed out and every call sent before it has ended: a
  // busy server may be unable to answer a ping while it processes a call.
  void replace_if_unresponsive();
  // Returns whether the last ping was answered and the server has sent something within clocks.health +
  // clocks.ping.
  bool healthy(Clock::time_point now) const noexcept;

 private:
  bool stops_when_idle() const noexcept { return spec_.clocks.idle_stop.count() > 0 && !spec_.keep_running; }
  // Arms check_timer_ for the next idle or health check.
  void schedule_check();
  void check();

  const ServerSpec& spec_;
  const ActiveCalls& calls_;
  Actions actions_;
  Timer check_timer_;
  Timer ping_timer_;
  Clock::time_point last_activity_{};
  bool running_ = false;
  bool ping_pending_ = false;
  std::uint64_t last_call_before_ping_ = 0;  // number of the last call that was sent before the ping
  bool ping_timed_out_ = false;              // the last ping has timed out
};

}  // namespace fairlead::pool
