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
      due_timer_(upstream.core->loop),
      drain_timer_(upstream.core->loop) {
  supervisor_.watch([this](const Transition& transition) { on_transition(transition); });
}

Lifecycle::Action Lifecycle::tell(Event event, std::string_view reason) {
  const Action action = supervisor_.on(event, Clock::now(), upstream_.active.size(), reason);
  if (action == Action::close) close();
  return action;
}

Lifecycle::Action Lifecycle::outlook() const {
  return supervisor_.outlook(Clock::now());
}

void Lifecycle::close() {
  drain_timer_.cancel();
  upstream_.starter.release_slot();
  if (upstream_.slot.connection()) {
    upstream_.slot.close();
  } else {
    upstream_.opener.abort();
  }
}

void Lifecycle::retire(std::string_view why, std::chrono::milliseconds grace) {
  tell(Event::retire, why);
  upstream_.starter.leave_queue();
  if (supervisor_.state() != State::draining || upstream_.active.empty()) return;
  drain_timer_.arm_after(grace, [this, why = std::string(why)] {
    upstream_.failures.set_close_reason(with_failure_code(
        Error(ErrorKind::closed, "server " + upstream_.spec().name + " is no longer there: " + why),
        failure::draining));
    tell(Event::drained);
  });
}

void Lifecycle::restore() {
  drain_timer_.cancel();
  tell(Event::restored);
}

void Lifecycle::start_after(std::chrono::milliseconds delay) {
  due_timer_.arm_after(delay, [this] { upstream_.starter.begin(); });
}

void Lifecycle::on_transition(const Transition& transition) {
  Core& core = *upstream_.core;
  const std::string& server = upstream_.spec().name;
  core.log().debug("server changes its state", {{"server", server},
                                                {"key", upstream_.key()},
                                                {"from", std::string(to_string(transition.from))},
                                                {"to", std::string(to_string(transition.to))},
                                                {"event", std::string(to_string(transition.event))},
                                                {"generation", transition.generation},
                                                {"reason", transition.reason}});
  if (transition.from == State::ready) upstream_.health.stop();
  const bool waits = transition.to == State::backing_off || transition.to == State::crash_loop;
  if (waits) {
    due_timer_.arm(supervisor_.retry_at(), [this] {
      tell(Event::due);
      if (supervisor_.state() == State::crash_loop && upstream_.spec().keep_running)
        upstream_.starter.begin();
    });
  } else {
    due_timer_.cancel();
  }
  // Whatever follows is done when the supervisor has finished, and by then the upstream may be gone.
  fairlead::Event changed = std::exchange(changed_, fairlead::Event());
  core.loop.post([weak = upstream_.weak_from_this(), changed]() mutable {
    changed.set();
    const auto self = weak.lock();
    if (self && self->state() == State::idle && self->spec().keep_running) self->starter.begin();
  });
  upstream_.settle_soon();
  if (core.options.handlers.changed) core.options.handlers.changed(upstream_.shared_from_this(), transition);
}

}  // namespace fairlead::pool
