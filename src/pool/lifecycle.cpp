#include "pool/lifecycle.hpp"

#include "fairlead/process/failure.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

std::uint32_t seed_of(const ManagedUpstream& upstream) {
  return static_cast<std::uint32_t>(std::hash<const void*>()(&upstream) >> 4 | 1);
}

}  // namespace

Lifecycle::Lifecycle(ManagedUpstream& upstream)
    : upstream_(upstream),
      supervisor_(upstream.server->spec.restart, seed_of(upstream)),
      retry_timer_(upstream.core->loop),
      drain_timer_(upstream.core->loop) {
  supervisor_.set_observer([this](const Transition& transition) { on_transition(transition); });
}

Lifecycle::Action Lifecycle::dispatch(Event event, std::string_view reason) {
  const Action action = supervisor_.handle_event(event, Clock::now(), upstream_.active.size(), reason);
  if (action == Action::close) close();
  return action;
}

Lifecycle::Action Lifecycle::action_if_start_requested() const {
  return supervisor_.action_if_start_requested(Clock::now());
}

void Lifecycle::close() {
  drain_timer_.cancel();
  upstream_.starter.release_start_permit();
  if (upstream_.slot.connection()) {
    upstream_.slot.close();
  } else {
    upstream_.opener.abort();
  }
}

void Lifecycle::retire(std::string_view reason, std::chrono::milliseconds grace) {
  dispatch(Event::retire, reason);
  upstream_.starter.wake_queued_start();
  if (supervisor_.state() != UpstreamState::draining || upstream_.active.empty()) return;
  drain_timer_.arm_after(grace, [this, reason = std::string(reason)] {
    upstream_.failures.set_close_reason(with_failure_code(
        Error(ErrorKind::closed, "server " + upstream_.spec().name + " was stopped: " + reason),
        failure::draining));
    dispatch(Event::drained);
  });
}

void Lifecycle::restore() {
  drain_timer_.cancel();
  dispatch(Event::enabled);
}

void Lifecycle::start_after(std::chrono::milliseconds delay) {
  retry_timer_.arm_after(delay, [this] { upstream_.starter.start(); });
}

void Lifecycle::on_transition(const Transition& transition) {
  PoolCore& core = *upstream_.core;
  const std::string& server = upstream_.spec().name;
  core.log().debug("server state changed", {{"server", server},
                                            {"key", upstream_.key()},
                                            {"from", std::string(to_string(transition.from))},
                                            {"to", std::string(to_string(transition.to))},
                                            {"event", std::string(to_string(transition.event))},
                                            {"generation", transition.generation},
                                            {"reason", transition.reason}});
  if (transition.from == UpstreamState::ready) upstream_.health.stop();
  const bool retries =
      transition.to == UpstreamState::backing_off || transition.to == UpstreamState::crash_loop;
  if (retries) {
    retry_timer_.arm(supervisor_.retry_at(), [this] {
      dispatch(Event::retry_due);
      if (supervisor_.state() == UpstreamState::crash_loop && upstream_.spec().keep_running)
        upstream_.starter.start();
    });
  } else {
    retry_timer_.cancel();
  }
  // Posted, because Supervisor::handle_event() has not returned yet. The upstream may be destroyed before the
  // callback runs.
  fairlead::Event changed = std::exchange(transition_event_, fairlead::Event());
  core.loop.post([weak = upstream_.weak_from_this(), changed]() mutable {
    changed.set();
    const auto self = weak.lock();
    if (self && self->state() == UpstreamState::idle && self->spec().keep_running) self->starter.start();
  });
  upstream_.post_inactive_check();
  core.options.monitor->add_transition(upstream_.shared_from_this(), transition);
  if (core.options.handlers.on_state_changed)
    core.options.handlers.on_state_changed(upstream_.shared_from_this(), transition);
}

}  // namespace fairlead::pool
