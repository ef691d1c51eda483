// How a call gets to its server: admission, the right upstream, the sending, and sending it again.
#include "fairlead/json/view.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/pool_impl.hpp"
#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

// What comes of one sending of a call, for its progress.
struct SentCall {
  ManagedUpstream::Running& running;
  const mcp::OutgoingRequest& request;
  const ForwardOptions& options;

  void on_progress(const json::Raw& params) {
    running.upstream().sign_of_life();
    if (!request.wants_progress()) return;
    running.progressed = true;
    if (options.on_progress) options.on_progress(params);
  }
};

bool may_repeat(const mcp::OutgoingRequest& request, const ForwardOptions& options) {
  return options.repeatable || (!options.tool.absent() && repeatable(request.method(), options.tool));
}

}  // namespace

// ---- admission -------------------------------------------------------------------------------------------

Task<Result<Gate::Pass>> PoolImpl::enter(std::shared_ptr<Gate> gate, std::string whose,
                                         Clock::duration patience, std::stop_token stop) {
  const std::size_t most = core_->options.limits.max_waiting_calls;
  if (core_->waiting_calls >= most) {
    co_return limit_reached("max_waiting_calls (" + std::to_string(most) + ") calls wait already", patience);
  }
  const Waits counted(*core_);
  Task<Gate::Pass> entering = gate->enter(patience, stop);
  Gate::Pass pass = co_await entering;
  if (pass) co_return pass;
  if (stop.stop_requested())
    co_return with_failure_code(Error(ErrorKind::cancelled, "given up before its turn came"));
  co_return limit_reached("max_calls (" + std::to_string(gate->limit()) + ") calls of " + whose +
                              " are under way, and none ended in time",
                          patience);
}

// Most calls need not wait for anything.
PoolImpl::Admission PoolImpl::admit_at_once(const Target& target) {
  Admission admission;
  const auto server = servers_.find(target.server);
  if (server == servers_.end()) return admission;
  admission.server = server->second.state->calls->try_enter();
  if (admission.server) admission.all = core_->calls->try_enter();
  return admission;
}

Task<Result<PoolImpl::Admission>> PoolImpl::admit(const Target& target, std::stop_token stop) {
  const Result<Server*> found = find(target.server);
  if (!found) co_return found.error();
  const std::shared_ptr<ServerState> server = (*found)->state;
  const Clock::duration patience = server->spec.clocks.queue;
  Admission admission;
  admission.server = server->calls->try_enter();
  if (!admission.server) {
    Task<Result<Gate::Pass>> entering = enter(server->calls, "server " + target.server, patience, stop);
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return entered.error();
    admission.server = std::move(*entered);
  }
  admission.all = core_->calls->try_enter();
  if (!admission.all) {
    Task<Result<Gate::Pass>> entering = enter(core_->calls, "all servers", patience, stop);
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return entered.error();
    admission.all = std::move(*entered);
  }
  co_return admission;
}

// ---- the right upstream ----------------------------------------------------------------------------------

PoolImpl::UpstreamPtr PoolImpl::upstream_for(Server& server, const Target& target) {
  static const std::string kEverybody;
  const Sharing sharing = server.state->sharing;
  const std::string& key = sharing == Sharing::per_session ? target.session
                           : sharing == Sharing::per_user  ? target.user
                                                           : kEverybody;
  const auto found = server.upstreams.find(key);
  if (found != server.upstreams.end()) return found->second;
  UpstreamPtr made = ManagedUpstream::make(core_, server.state, key);
  server.upstreams.emplace(key, made);
  return made;
}

Result<PoolImpl::UpstreamPtr> PoolImpl::upstream_of(const Target& target) {
  if (shutting_down_)
    return with_failure_code(Error(ErrorKind::closed, "the pool is shutting down"), failure::draining);
  const Result<Server*> server = find(target.server);
  if (!server) return server.error();
  if (!(*server)->enabled) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + target.server + " is disabled"),
                             failure::server_stopped);
  }
  return upstream_for(**server, target);
}

// Requests that leave something behind at a server of the legacy era, for the whole of its connection.
void PoolImpl::look_for_state(const Target& target, std::string_view method) {
  if (method != "logging/setLevel" && method != "resources/subscribe") return;
  const Result<Server*> server = find(target.server);
  if (!server || !(*server)->state->keeps_state || target.session.empty()) return;
  keep_apart(target.server, "it is asked for " + std::string(method));
}

// A server that is updated while somebody waits for its start is waited for as it is now.
Task<Result<PoolImpl::UpstreamPtr>> PoolImpl::ready_upstream(const Target& target, std::stop_token stop,
                                                             StartPriority priority) {
  while (true) {
    // Whoever gives up may be the last of a session that has ended: no upstream is made for it.
    if (stop.stop_requested())
      co_return with_failure_code(Error(ErrorKind::cancelled, "given up before it was sent"));
    const Result<UpstreamPtr> upstream = upstream_of(target);
    if (!upstream) co_return upstream;
    if ((*upstream)->ready() && priority == StartPriority::call) (*upstream)->stop_if_uninformed();
    if ((*upstream)->ready()) co_return upstream;
    Task<Result<void>> readying = (*upstream)->become_ready(stop, priority);
    const Result<void> ready = co_await readying;
    if (ready) co_return upstream;
    if (stop.stop_requested()) co_return ready.error();
    const Result<UpstreamPtr> now = upstream_of(target);
    const bool another = now && *now != *upstream;
    if (!another) co_return ready.error();
  }
}

// ---- calls -----------------------------------------------------------------------------------------------

Task<Result<rpc::Message>> Pool::call(Target target, rpc::Message request, ForwardOptions options) {
  std::shared_ptr<const mcp::OutgoingRequest> outgoing =
      std::make_shared<const mcp::VerbatimRequest>(std::move(request));
  Task<Result<ForwardedAnswer>> forwarding =
      forward(std::move(target), std::move(outgoing), std::move(options));
  const Result<ForwardedAnswer> answer = co_await forwarding;
  if (!answer) co_return answer.error();
  co_return answer->message;
}

Task<Result<ForwardedAnswer>> PoolImpl::forward(Target target,
                                                std::shared_ptr<const mcp::OutgoingRequest> request,
                                                ForwardOptions options) {
  const auto self = shared_from_this();
  Admission admission = admit_at_once(target);
  if (!admission.all) {
    admission = Admission();
    Task<Result<Admission>> admitting = admit(target, options.stop);
    Result<Admission> admitted = co_await admitting;
    if (!admitted) co_return admitted.error();
    admission = std::move(*admitted);
  }
  look_for_state(target, request->method());
  std::optional<Error> first_failure;  // of a call that may have run
  for (unsigned attempt = 1;; ++attempt) {
    Result<UpstreamPtr> found = upstream_of(target);
    std::optional<Error> refused = found ? (*found)->tool_refusal(request->tool()) : std::nullopt;
    if (refused) co_return first_failure ? *first_failure : *refused;
    if (found && (*found)->ready()) (*found)->stop_if_uninformed();
    if (found && !(*found)->ready()) {
      Task<Result<UpstreamPtr>> readying = ready_upstream(target, options.stop);
      found = co_await readying;
    }
    if (!found) co_return first_failure ? *first_failure : found.error();
    ManagedUpstream& upstream = **found;
    const std::shared_ptr<UpstreamConnection> connection = upstream.connection();
    if (!upstream.ready() || !connection) {
      // Lost again since we were told.
      if (attempt == 1) continue;
      co_return with_failure_code(
          Error(ErrorKind::closed, "server " + target.server + " was lost before the call was sent"));
    }
    ManagedUpstream::Running running(*found, target, request->method(), options.caller, request.get());
    SentCall sent{running, *request, options};
    CallOptions sending;
    sending.timeout = options.idle.value_or(upstream.spec().clocks.idle);
    sending.max_total = options.absolute.value_or(upstream.spec().clocks.absolute);
    sending.stop = options.stop;
    // Set for every call, so that every call has a progress token and progress re-arms its idle clock.
    sending.on_progress = [&sent](const json::Raw& params) { sent.on_progress(params); };
    Result<rpc::Message> answer = co_await connection->call(request, std::move(sending));
    if (answer) {
      upstream.call_answered(request->tool());
      if (first_failure)
        answer = mark_retried(*answer, attempt, *first_failure, core_->options.client.connect.limits);
      co_return ForwardedAnswer(std::move(*answer), connection->server().revision);
    }
    const Error error = upstream.call_failed(connection, answer.error());
    const bool unsent = error.detail().unsent;
    const bool again = attempt == 1 && cut_off(error) && !options.stop.stop_requested() &&
                       (unsent || (may_repeat(*request, options) && !running.part_seen()));
    if (!again) co_return error;
    if (!unsent) first_failure = error;
    core_->log().info("a call is sent once more", {{"server", target.server}, {"reason", error.message()}});
  }
}

class PoolImpl::Held final : public Lease::Held {
 public:
  Held(Admission admission, Target target, UpstreamPtr upstream)
      : admission_(std::move(admission)),
        target_(std::move(target)),
        running_(std::move(upstream), target_, "", nullptr) {}

 private:
  Admission admission_;
  Target target_;
  ManagedUpstream::Running running_;
};

class PoolImpl::Hold final : public Lease::Held {
 public:
  explicit Hold(UpstreamPtr upstream) : upstream_(std::move(upstream)) { upstream_->begin_hold(); }
  ~Hold() override { upstream_->end_hold(); }

 private:
  UpstreamPtr upstream_;
};

Task<Result<Lease>> PoolImpl::acquire(Target target, std::stop_token stop, StartPriority priority) {
  const auto self = shared_from_this();
  Task<Result<Admission>> admitting = admit(target, stop);
  Result<Admission> admitted = co_await admitting;
  if (!admitted) co_return admitted.error();
  Task<Result<UpstreamPtr>> readying = ready_upstream(target, stop, priority);
  const Result<UpstreamPtr> found = co_await readying;
  if (!found) co_return found.error();
  std::shared_ptr<UpstreamConnection> connection = (*found)->connection();
  if (!(*found)->ready() || !connection)
    co_return with_failure_code(
        Error(ErrorKind::closed, "server " + target.server + " was lost as soon as it was ready"));
  auto held = std::make_unique<Held>(std::move(*admitted), std::move(target), *found);
  co_return Lease(*found, std::move(connection), std::move(held));
}

Result<Lease> PoolImpl::hold(const std::shared_ptr<Upstream>& upstream) {
  const auto held = std::static_pointer_cast<ManagedUpstream>(upstream);
  std::shared_ptr<UpstreamConnection> connection = held->connection();
  if (!held->ready() || !connection)
    return with_failure_code(Error(ErrorKind::closed, "server " + held->spec().name + " is not ready"));
  return Lease(held, std::move(connection), std::make_unique<Hold>(held));
}

Result<void> PoolImpl::notify(const Target& target, std::string_view method, const json::Raw& params) {
  const Result<UpstreamPtr> upstream = upstream_of(target);
  if (!upstream) return upstream.error();
  if (!(*upstream)->ready()) return {};
  return (*upstream)->connection()->notify(method, params);
}

Task<Result<std::shared_ptr<Upstream>>> PoolImpl::warm(Target target, std::stop_token stop) {
  const auto self = shared_from_this();
  Task<Result<UpstreamPtr>> readying = ready_upstream(target, std::move(stop));
  const Result<UpstreamPtr> found = co_await readying;
  if (!found) co_return found.error();
  co_return std::shared_ptr<Upstream>(*found);
}

}  // namespace fairlead::pool
