// Lifecycle: drives the Supervisor of an upstream: reports events to it with their time, and performs the
// actions that it returns. Private to the layer.
#pragma once

#include <chrono>
#include <string_view>

#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/supervisor.hpp"

namespace fairlead::pool {

class ManagedUpstream;

class Lifecycle {
 public:
  using Event = Supervisor::Event;
  using Action = Supervisor::Action;

  // `upstream` owns the lifecycle.
  explicit Lifecycle(ManagedUpstream& upstream);

  const Supervisor& supervisor() const noexcept { return supervisor_; }
  // Reports `event` to the supervisor. Performs Action::close; the caller performs the other actions.
  Action dispatch(Event event, std::string_view reason = {});
  // Returns what dispatch(Event::start_requested) would return now.
  Action action_if_start_requested() const;
  // To be called when the server has answered a call.
  void on_call_answered() noexcept { supervisor_.on_call_answered(); }
  // Returns an event that is set at the next state transition.
  fairlead::Event next_transition() const { return transition_event_; }

  // Stops the upstream until the next request, unless it has active calls.
  void stop_until_requested(std::string_view reason) { dispatch(Event::idle_stop, reason); }
  // Drains active calls for up to `grace`, then stops the upstream. It is not started again before restore().
  void retire(std::string_view reason, std::chrono::milliseconds grace);
  // Allows the upstream to be started again after retire().
  void restore();
  // Starts the upstream after `delay`. A state transition before then cancels the start.
  void start_after(std::chrono::milliseconds delay);

 private:
  void on_transition(const Transition& transition);
  void close();

  ManagedUpstream& upstream_;
  Supervisor supervisor_;
  fairlead::Event transition_event_;
  Timer retry_timer_;
  Timer drain_timer_;
};

}  // namespace fairlead::pool
