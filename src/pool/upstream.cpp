#include "pool/upstream.hpp"

#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

// Returns whether `declared` has every capability of `required`, with the same value.
bool covers(json::View declared, json::View required) {
  bool all = true;
  required.each_member([&](std::string_view key, bool, json::View value) {
    all = declared[key].text() == value.text();
    return all;
  });
  return all;
}

// Returns whether the outcome of a ping is a response. An error response of any kind shows that the server is
// alive; a timeout does not.
bool is_response(const Result<void>& ping) {
  return ping || ping.error().kind() == ErrorKind::remote || ping.error().kind() == ErrorKind::http_status ||
         ping.error().kind() == ErrorKind::authorization;
}

}  // namespace

std::shared_ptr<ManagedUpstream> ManagedUpstream::make(std::shared_ptr<PoolCore> core,
                                                       std::shared_ptr<ServerContext> server, std::string key,
                                                       std::string user) {
  std::shared_ptr<ManagedUpstream> upstream(
      new ManagedUpstream(std::move(core), std::move(server), std::move(key), std::move(user)));
  if (upstream->spec().keep_running) upstream->starter.start();
  return upstream;
}

ManagedUpstream::ManagedUpstream(std::shared_ptr<PoolCore> of_pool, std::shared_ptr<ServerContext> of_server,
                                 std::string key, std::string of_user)
    : core(std::move(of_pool)),
      server(std::move(of_server)),
      user(std::move(of_user)),
      failures(*this),
      health(core->loop, server->spec, active, health_actions()),
      lifecycle(*this),
      starter(*this),
      opener(*this),
      slot(*this),
      key_(std::move(key)) {
  core->add_upstream(*this);
}

ManagedUpstream::~ManagedUpstream() {
  core->remove_upstream(*this);
}

bool ManagedUpstream::inactive() const noexcept {
  return (state() == UpstreamState::idle || state() == UpstreamState::stopped) && !starter.in_progress() &&
         active.empty();
}

bool ManagedUpstream::evictable() const noexcept {
  return ready() && active.unused() && !starter.in_progress() && slot.has_process() && !spec().keep_running;
}

bool ManagedUpstream::retired() const {
  return state() == UpstreamState::stopped ||
         (state() == UpstreamState::draining &&
          lifecycle.action_if_start_requested() == Lifecycle::Action::refuse);
}

void ManagedUpstream::post_inactive_check() {
  core->loop.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->inactive() && self->core->on_inactive) self->core->on_inactive(*self);
  });
}

void ManagedUpstream::on_use_ended() {
  if (!active.unused()) return;
  active.mark_idle(Clock::now());
  if (core->process_permits->waiter_count() > 0) core->evict_idle();
}

void ManagedUpstream::on_call_answered(std::string_view tool) {
  use.record_response();
  lifecycle.on_call_answered();
  server->tool_crashes.on_answered(tool);
  health.record_activity();
}

void ManagedUpstream::stop_if_capabilities_outdated() {
  const auto& capabilities_for = core->options.handlers.capabilities_for;
  if (use.has_been_called() || !active.unused() || !capabilities_for) return;
  if (mcp::is_modern(slot.connection()->server().revision)) return;
  if (!covers(json::View(opener.declared_capabilities()), json::View(capabilities_for(*this))))
    lifecycle.stop_until_requested("clients have capabilities that were not declared to it");
}

HealthMonitor::Actions ManagedUpstream::health_actions() {
  HealthMonitor::Actions actions;
  actions.send_ping = [this] { core->loop.spawn(ping(weak_from_this(), connection(), generation())); };
  actions.on_ping_timeout = [this] {
    core->log().warning("server does not answer a ping", {{"server", spec().name}});
  };
  actions.on_unresponsive = [this] { failures.on_unresponsive(); };
  actions.on_idle = [this] { lifecycle.stop_until_requested("idle for idle_stop"); };
  return actions;
}

Task<void> ManagedUpstream::ping(std::weak_ptr<ManagedUpstream> weak,
                                 std::shared_ptr<UpstreamConnection> connection, std::uint64_t generation) {
  const Result<void> answer = co_await connection->ping();
  const auto self = weak.lock();
  if (!self || self->generation() != generation) co_return;
  if (is_response(answer)) {
    self->health.record_activity();
  } else if (is_connection_loss(answer.error()) && self->slot.connection() == connection) {
    self->failures.on_connection_lost(generation, answer.error());
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
    status.connection_description =
        core->options.redactor->redact(connected->server().connection_description);
    status.missing_containment = connected->server().missing_containment;
  }
  status.healthy = ready() && health.healthy(Clock::now());
  status.since = supervisor.since();
  status.last_activity = health.last_activity();
  status.active_call_count = active.size();
  status.waiting_caller_count = starter.waiter_count();
  status.consecutive_failures = supervisor.consecutive_failures();
  status.last_error = failures.last_error();
  status.sharing = server->sharing;
  status.sharing_evidence = server->sharing_evidence;
  status.history.assign(supervisor.history().begin(), supervisor.history().end());
  return status;
}

}  // namespace fairlead::pool
