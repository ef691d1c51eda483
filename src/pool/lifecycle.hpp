// Lifecycle: the state of an upstream. A Supervisor decides; this tells it what happened and when, and does
// what it decides. Private to the layer.
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

  // `upstream` owns it.
  explicit Lifecycle(ManagedUpstream& upstream);

  const Supervisor& supervisor() const noexcept { return supervisor_; }
  Action tell(Event event, std::string_view reason = {});
  // What `wanted` would be answered with now.
  Action outlook() const;
  // A call was answered.
  void served() noexcept { supervisor_.served(); }
  // Set at the next change of state.
  fairlead::Event next_change() const { return changed_; }

  // It may stop until it is wanted again.
  void rest(std::string_view why) { tell(Event::rest, why); }
  // Calls under way may finish for `grace`.
  void retire(std::string_view why, std::chrono::milliseconds grace);
  void restore();
  // Starts a server that is kept running after `delay`, unless its state changes.
  void start_after(std::chrono::milliseconds delay);

 private:
  void on_transition(const Transition& transition);
  void close();

  ManagedUpstream& upstream_;
  Supervisor supervisor_;
  fairlead::Event changed_;
  Timer due_timer_;
  Timer drain_timer_;
};

}  // namespace fairlead::pool
