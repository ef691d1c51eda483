// An upstream's states and its end; upstream_starting.cpp has its beginning, upstream_watching.cpp what is
// between.
#include "pool/upstream.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::pool {

namespace {

std::uint32_t seed_of(const ManagedUpstream* upstream) {
  return static_cast<std::uint32_t>(std::hash<const void*>()(upstream) >> 4 | 1);
}

}  // namespace

// ---- calls under way -------------------------------------------------------------------------------------

ManagedUpstream::Running::Running(std::shared_ptr<ManagedUpstream> at, const Target& target,
                                  std::string_view method, std::shared_ptr<void> caller,
                                  const mcp::OutgoingRequest* request)
    : upstream_(std::move(at)),
      number_(++upstream_->last_number_),
      asked_before_(upstream_->asked_),
      target_(target),
      method_(method),
      caller_(std::move(caller)),
      request_(request) {
  upstream_->calls_.push_back(*this);
  if (method.empty()) return;  // a lease
  if (target.session.empty()) upstream_->warn_of_missing_session(target);
  if (!std::exchange(upstream_->used_, true)) {
    upstream_->only_session_ = target.session;
  } else if (upstream_->only_session_ && *upstream_->only_session_ != target.session) {
    upstream_->only_session_.reset();
  }
}

ManagedUpstream::Running::~Running() {
  upstream_->end_running(*this);
}

void ManagedUpstream::warn_of_missing_session(const Target& target) {
  if (server_->sharing != Sharing::per_session || std::exchange(server_->warned_of_missing_session, true))
    return;
  core_->log().warning(
      "clients without a session share one process",
      {{"server", target.server}, {"sharing", std::string(to_string(Sharing::per_session))}});
}

void ManagedUpstream::end_running(Running& call) {
  calls_.erase(calls_.iterator_to(call));
  replace_if_dead();
  if (!calls_.empty()) return;
  if (state() == State::draining) tell(Event::drained);
  if (at_rest()) settle_soon();
  if (unused()) became_idle();
}

void ManagedUpstream::end_hold() {
  --holds_;
  if (unused()) became_idle();
}

void ManagedUpstream::became_idle() {
  idle_since_ = Clock::now();
  if (core_->processes->waiting() > 0) core_->make_room();
}

std::vector<RunningCall> ManagedUpstream::calls() const {
  std::vector<RunningCall> all;
  for (const Running& call : calls_)
    all.push_back(RunningCall{call.target_.session, call.target_.user, call.method_, call.caller_});
  return all;
}

// ---- states ----------------------------------------------------------------------------------------------

std::shared_ptr<ManagedUpstream> ManagedUpstream::make(std::shared_ptr<Core> core,
                                                       std::shared_ptr<ServerState> server, std::string key) {
  std::shared_ptr<ManagedUpstream> made(
      new ManagedUpstream(std::move(core), std::move(server), std::move(key)));
  if (made->spec().keep_running) made->begin_attempt();
  return made;
}

ManagedUpstream::ManagedUpstream(std::shared_ptr<Core> core, std::shared_ptr<ServerState> server,
                                 std::string key)
    : core_(std::move(core)),
      server_(std::move(server)),
      key_(std::move(key)),
      supervisor_(server_->spec.restart, seed_of(this)),
      spawn_timer_(core_->loop),
      due_timer_(core_->loop),
      drain_timer_(core_->loop),
      watch_timer_(core_->loop),
      ping_timer_(core_->loop) {
  core_->enroll(*this);
  supervisor_.watch([this](const Transition& transition) { on_transition(transition); });
}

// A pool that is not shut down first leaves nothing running either.
ManagedUpstream::~ManagedUpstream() {
  core_->dismiss(*this);
  if (connection_) connection_->abort();
}

ManagedUpstream::Action ManagedUpstream::tell(Event event, std::string_view reason) {
  const Action action = supervisor_.on(event, Clock::now(), calls_.size(), reason);
  if (action == Action::close) close_connection();
  return action;
}

void ManagedUpstream::on_transition(const Transition& transition) {
  core_->log().debug("server changes its state", {{"server", spec().name},
                                                  {"key", key_},
                                                  {"from", std::string(to_string(transition.from))},
                                                  {"to", std::string(to_string(transition.to))},
                                                  {"event", std::string(to_string(transition.event))},
                                                  {"generation", transition.generation},
                                                  {"reason", transition.reason}});
  const bool waits = transition.to == State::backing_off || transition.to == State::crash_loop;
  if (waits) {
    due_timer_.arm(supervisor_.retry_at(), [this] {
      tell(Event::due);
      if (state() == State::crash_loop && spec().keep_running) begin_attempt();
    });
  } else {
    due_timer_.cancel();
  }
  // Whatever follows is done when the supervisor has finished, and by then the upstream may be gone.
  fairlead::Event changed = std::exchange(changed_, fairlead::Event());
  core_->loop.post([weak = weak_from_this(), changed]() mutable {
    changed.set();
    const auto self = weak.lock();
    if (self && self->state() == State::idle && self->spec().keep_running) self->begin_attempt();
  });
  settle_soon();
  if (core_->options.handlers.changed) core_->options.handlers.changed(shared_from_this(), transition);
}

void ManagedUpstream::settle_soon() {
  core_->loop.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->at_rest() && self->core_->settled) self->core_->settled(*self);
  });
}

bool ManagedUpstream::at_rest() const noexcept {
  return (state() == State::idle || state() == State::stopped) && !attempt_ && calls_.empty();
}

bool ManagedUpstream::evictable() const noexcept {
  return ready() && unused() && !attempt_ && place_ && place_->process && !spec().keep_running;
}

// ---- ending ----------------------------------------------------------------------------------------------

void ManagedUpstream::rest(std::string_view why) {
  tell(Event::rest, why);
}

void ManagedUpstream::retire(std::string_view why, std::chrono::milliseconds grace) {
  tell(Event::retire, why);
  if (attempt_ && attempt_->queued) attempt_->requeue.request_stop();
  if (state() != State::draining || calls_.empty()) return;
  drain_timer_.arm_after(grace, [this, why = std::string(why)] {
    close_reason_ = with_failure_code(
        Error(ErrorKind::closed, "server " + spec().name + " is no longer there: " + why), failure::draining);
    tell(Event::drained);
  });
}

void ManagedUpstream::restore() {
  drain_timer_.cancel();
  tell(Event::restored);
}

void ManagedUpstream::close_connection() {
  watch_timer_.cancel();
  ping_timer_.cancel();
  drain_timer_.cancel();
  start_slot_ = Gate::Pass();
  if (connection_) {
    leaving_process_ = static_cast<bool>(place_->process);
    Place place = std::move(*place_);
    place_.reset();
    core_->loop.spawn(
        close_down(shared_from_this(), std::exchange(connection_, nullptr), std::move(place), generation()));
  } else {
    // bring_up() says when it is gone.
    opening_stop_.request_stop();
    if (const std::shared_ptr<Connection> opening = opening_.lock()) opening->close();
  }
}

Task<void> ManagedUpstream::close_down(std::shared_ptr<ManagedUpstream> self,
                                       std::shared_ptr<UpstreamConnection> connection, Place place,
                                       std::uint64_t generation) {
  Task<void> closing = connection->close();
  co_await closing;
  { const Place left = std::move(place); }
  self->leaving_process_ = false;
  if (self->generation() == generation) self->tell(Event::gone);
}

UpstreamStatus ManagedUpstream::status() const {
  const Clock::time_point now = Clock::now();
  const Clocks& clocks = spec().clocks;
  UpstreamStatus status;
  status.server = spec().name;
  status.key = key_;
  status.state = state();
  status.generation = generation();
  if (connection_) status.connection = core_->options.redactor->redact(connection_->server().connection);
  status.healthy =
      ready() && !suspect_ && (clocks.health.count() == 0 || now - last_sign_ <= clocks.health + clocks.ping);
  status.since = supervisor_.since();
  status.last_sign = last_sign_;
  status.calls = calls_.size();
  status.waiting = attempt_ ? attempt_->waiting.size() : 0;
  status.failures = supervisor_.failures();
  status.last_error = last_error_;
  status.sharing = server_->sharing;
  status.sharing_evidence = server_->evidence;
  status.history.assign(supervisor_.history().begin(), supervisor_.history().end());
  return status;
}

}  // namespace fairlead::pool
