#include "pool/upstream.hpp"

#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

// Whether `declared` has every capability of `wanted`, as it is there.
bool covers(json::View declared, json::View wanted) {
  bool all = true;
  wanted.each_member([&](std::string_view key, bool, json::View value) {
    all = declared[key].text() == value.text();
    return all;
  });
  return all;
}

// A refusal is an answer too, of whatever kind, but having waited in vain is not.
bool is_answer(const Result<void>& ping) {
  return ping || ping.error().kind() == ErrorKind::remote || ping.error().kind() == ErrorKind::http_status ||
         ping.error().kind() == ErrorKind::authorization;
}

}  // namespace

std::shared_ptr<ManagedUpstream> ManagedUpstream::make(std::shared_ptr<Core> core,
                                                       std::shared_ptr<ServerState> server, std::string key) {
  std::shared_ptr<ManagedUpstream> made(
      new ManagedUpstream(std::move(core), std::move(server), std::move(key)));
  if (made->spec().keep_running) made->starter.begin();
  return made;
}

ManagedUpstream::ManagedUpstream(std::shared_ptr<Core> of_pool, std::shared_ptr<ServerState> of_server,
                                 std::string key)
    : core(std::move(of_pool)),
      server(std::move(of_server)),
      failures(*this),
      health(core->loop, server->spec, active, health_actions()),
      lifecycle(*this),
      starter(*this),
      opener(*this),
      slot(*this),
      key_(std::move(key)) {
  core->enroll(*this);
}

ManagedUpstream::~ManagedUpstream() {
  core->dismiss(*this);
}

bool ManagedUpstream::at_rest() const noexcept {
  return (state() == State::idle || state() == State::stopped) && !starter.under_way() && active.empty();
}

bool ManagedUpstream::evictable() const noexcept {
  return ready() && active.unused() && !starter.under_way() && slot.holds_process() && !spec().keep_running;
}

void ManagedUpstream::settle_soon() {
  core->loop.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->at_rest() && self->core->settled) self->core->settled(*self);
  });
}

void ManagedUpstream::note_idle() {
  if (!active.unused()) return;
  active.mark_idle(Clock::now());
  if (core->processes->waiting() > 0) core->make_room();
}

void ManagedUpstream::call_answered(std::string_view tool) {
  use.note_answer();
  lifecycle.served();
  server->tool_crashes.answered(tool);
  health.sign_of_life();
}

void ManagedUpstream::stop_if_uninformed() {
  const auto& capabilities = core->options.handlers.capabilities;
  if (use.used() || !active.unused() || !capabilities) return;
  if (mcp::is_modern(slot.connection()->server().revision)) return;
  if (!covers(json::View(opener.declared()), json::View(capabilities(*this))))
    lifecycle.rest("clients have capabilities that it was not told of");
}

HealthMonitor::Actions ManagedUpstream::health_actions() {
  HealthMonitor::Actions actions;
  actions.ping = [this] { core->loop.spawn(ping(weak_from_this(), connection(), generation())); };
  actions.silent = [this] {
    core->log().warning("server does not answer a ping", {{"server", spec().name}});
  };
  actions.unresponsive = [this] { failures.unresponsive(); };
  actions.idle = [this] { lifecycle.rest("idle for idle_stop"); };
  return actions;
}

Task<void> ManagedUpstream::ping(std::weak_ptr<ManagedUpstream> weak,
                                 std::shared_ptr<UpstreamConnection> connection, std::uint64_t generation) {
  Task<Result<void>> asking = connection->ping();
  const Result<void> answer = co_await asking;
  const auto self = weak.lock();
  if (!self || self->generation() != generation) co_return;
  if (is_answer(answer)) {
    self->health.sign_of_life();
  } else if (cut_off(answer.error()) && self->slot.connection() == connection) {
    self->failures.connection_lost(generation, answer.error());
  }
}

UpstreamStatus ManagedUpstream::status() const {
  const Supervisor& supervisor = lifecycle.supervisor();
  UpstreamStatus status;
  status.server = spec().name;
  status.key = key_;
  status.state = state();
  status.generation = generation();
  if (const auto connected = connection()) {
    status.connection = core->options.redactor->redact(connected->server().connection);
    status.missing_containment = connected->server().missing_containment;
  }
  status.healthy = ready() && health.healthy(Clock::now());
  status.since = supervisor.since();
  status.last_sign = health.last_sign();
  status.calls = active.size();
  status.waiting = starter.waiting();
  status.failures = supervisor.failures();
  status.last_error = failures.last_error();
  status.sharing = server->sharing;
  status.sharing_evidence = server->evidence;
  status.history.assign(supervisor.history().begin(), supervisor.history().end());
  return status;
}

}  // namespace fairlead::pool
