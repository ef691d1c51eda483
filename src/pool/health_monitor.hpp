// HealthMonitor: the clocks of a ready connection: it is pinged when it has given no sign of life for
// `health`, replaced when it does not answer, and stopped when it has been idle for `idle_stop`. Private to
// the layer.
#pragma once

#include <functional>

#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/server_spec.hpp"
#include "pool/active_calls.hpp"

namespace fairlead::pool {

class HealthMonitor {
 public:
  struct Actions {
    std::function<void()> ping;          // send one; sign_of_life() when it is answered
    std::function<void()> silent;        // a ping was not answered within clocks.ping
    std::function<void()> unresponsive;  // neither a ping nor a call that was under way before it
    std::function<void()> idle;          // no call for clocks.idle_stop
  };

  // `spec` and `calls` outlive it. The actions may call stop().
  HealthMonitor(Loop& loop, const ServerSpec& spec, const ActiveCalls& calls, Actions actions)
      : spec_(spec), calls_(calls), actions_(std::move(actions)), check_timer_(loop), ping_timer_(loop) {}

  // A connection is ready, and has answered just now.
  void start();
  // It is not ready any more.
  void stop();
  void sign_of_life();
  Clock::time_point last_sign() const noexcept { return last_sign_; }
  // Pings unless a ping is under way.
  void ping();
  // A server that works on a call may not be able to answer a ping beside it, so it is unresponsive only when
  // every call that was under way before the ping has ended too.
  void replace_if_unresponsive();
  bool healthy(Clock::time_point now) const noexcept;

 private:
  bool stops_when_idle() const noexcept { return spec_.clocks.idle_stop.count() > 0 && !spec_.keep_running; }
  void schedule();
  void check();

  const ServerSpec& spec_;
  const ActiveCalls& calls_;
  Actions actions_;
  Timer check_timer_;
  Timer ping_timer_;
  Clock::time_point last_sign_{};
  bool running_ = false;
  bool pinging_ = false;
  std::uint64_t pinged_after_ = 0;  // the last call before the ping
  bool suspect_ = false;            // it has not answered its ping
};

}  // namespace fairlead::pool
