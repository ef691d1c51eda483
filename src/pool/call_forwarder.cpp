#include "pool/call_forwarder.hpp"

#include "fairlead/json/view.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

// What comes of one sending of a call, for its progress.
struct SentCall {
  ActiveCall& running;
  const mcp::OutgoingRequest& request;
  const ForwardOptions& options;

  void on_progress(const json::Raw& params) {
    running.upstream().health.sign_of_life();
    if (!request.wants_progress()) return;
    running.progressed = true;
    if (options.on_progress) options.on_progress(params);
  }
};

// Counts as a call under way.
class AcquiredLease final : public Lease::Held {
 public:
  AcquiredLease(Admission admission, Target target, std::shared_ptr<ManagedUpstream> upstream)
      : admission_(std::move(admission)),
        target_(std::move(target)),
        running_(std::move(upstream), target_, "", nullptr) {}

 private:
  Admission admission_;
  Target target_;
  ActiveCall running_;
};

// Counts for nothing but that the upstream is not idle.
class HeldLease final : public Lease::Held {
 public:
  explicit HeldLease(std::shared_ptr<ManagedUpstream> upstream) : upstream_(std::move(upstream)) {
    upstream_->active.begin_hold();
  }
  ~HeldLease() override {
    upstream_->active.end_hold();
    upstream_->note_idle();
  }

 private:
  std::shared_ptr<ManagedUpstream> upstream_;
};

bool may_repeat(const mcp::OutgoingRequest& request, const ForwardOptions& options) {
  return options.repeatable || (!options.tool.absent() && repeatable(request.method(), options.tool));
}

// Calls without a session are told apart by their connections.
Caller caller_of(const Target& target, const Principal* client) {
  if (!client) return Caller({}, target.session);
  return Caller(client_key(*client), target.session.empty() ? client->client_address : target.session);
}

// The error of a tool that has ended the process too often; nullopt if it may be called.
std::optional<Error> refusal_of_tool(const ManagedUpstream& upstream, std::string_view tool) {
  return upstream.server->tool_crashes.refusal(upstream.spec().name, tool, Clock::now());
}

}  // namespace

// If a server is updated while a caller waits for its start, the caller waits for the updated one.
Task<Result<CallForwarder::UpstreamPtr>> CallForwarder::ready_upstream(const Target& target,
                                                                       std::stop_token stop,
                                                                       StartPriority priority,
                                                                       std::string client) {
  while (true) {
    // A caller that gives up may be the last of a session that has ended: no upstream is made for it.
    if (stop.stop_requested())
      co_return with_failure_code(Error(ErrorKind::cancelled, "given up before it was sent"));
    const Result<UpstreamPtr> upstream = registry_->upstream_of(target);
    if (!upstream) co_return upstream;
    if ((*upstream)->ready() && priority == StartPriority::call) (*upstream)->stop_if_uninformed();
    if ((*upstream)->ready()) co_return upstream;
    Task<Result<void>> readying = (*upstream)->starter.become_ready(stop, priority, client);
    const Result<void> ready = co_await readying;
    if (ready) co_return upstream;
    if (stop.stop_requested()) co_return ready.error();
    const Result<UpstreamPtr> now = registry_->upstream_of(target);
    const bool another = now && *now != *upstream;
    if (!another) co_return ready.error();
  }
}

// ---- calls -----------------------------------------------------------------------------------------------

Task<Result<ForwardedAnswer>> CallForwarder::forward(Target target,
                                                     std::shared_ptr<const mcp::OutgoingRequest> request,
                                                     ForwardOptions options) {
  const auto self = shared_from_this();
  const Result<ServerRegistry::Server*> server = registry_->find(target.server);
  if (!server) co_return server.error();
  Admission admission = admission_.admit_at_once(*(*server)->state);
  if (!admission.all) {
    admission = Admission();
    Task<Result<Admission>> admitting =
        admission_.admit((*server)->state, options.stop, caller_of(target, options.client));
    Result<Admission> admitted = co_await admitting;
    if (!admitted) co_return admitted.error();
    admission = std::move(*admitted);
  }
  registry_->note_method(target, request->method());
  std::optional<Error> first_failure;  // of a call that may have run
  for (unsigned attempt = 1;; ++attempt) {
    Result<UpstreamPtr> found = registry_->upstream_of(target);
    std::optional<Error> refused = found ? refusal_of_tool(**found, request->tool()) : std::nullopt;
    if (refused) co_return first_failure ? *first_failure : *refused;
    if (found && (*found)->ready()) (*found)->stop_if_uninformed();
    if (found && !(*found)->ready()) {
      Task<Result<UpstreamPtr>> readying =
          ready_upstream(target, options.stop, StartPriority::call, caller_of(target, options.client).client);
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
    ActiveCall running(*found, target, request->method(), options.caller, request.get());
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
      if (first_failure) answer = mark_retried(*answer, attempt, *first_failure);
      co_return ForwardedAnswer(std::move(*answer), connection->server().revision);
    }
    const Error error = upstream.failures.call_failed(connection, answer.error());
    const bool unsent = error.detail().unsent;
    const bool again = attempt == 1 && cut_off(error) && !options.stop.stop_requested() &&
                       (unsent || (may_repeat(*request, options) && !running.part_seen()));
    if (!again) co_return error;
    if (!unsent) first_failure = error;
    core_->log().info("a call is sent once more", {{"server", target.server}, {"reason", error.message()}});
  }
}

Task<Result<Lease>> CallForwarder::acquire(Target target, std::stop_token stop, StartPriority priority,
                                           const Principal* client) {
  const auto self = shared_from_this();
  const Result<ServerRegistry::Server*> server = registry_->find(target.server);
  if (!server) co_return server.error();
  const Caller caller = caller_of(target, client);
  Task<Result<Admission>> admitting = admission_.admit((*server)->state, stop, caller);
  Result<Admission> admitted = co_await admitting;
  if (!admitted) co_return admitted.error();
  Task<Result<UpstreamPtr>> readying = ready_upstream(target, stop, priority, caller.client);
  const Result<UpstreamPtr> found = co_await readying;
  if (!found) co_return found.error();
  std::shared_ptr<UpstreamConnection> connection = (*found)->connection();
  if (!(*found)->ready() || !connection)
    co_return with_failure_code(
        Error(ErrorKind::closed, "server " + target.server + " was lost as soon as it was ready"));
  auto held = std::make_unique<AcquiredLease>(std::move(*admitted), std::move(target), *found);
  co_return Lease(*found, std::move(connection), std::move(held));
}

Result<Lease> CallForwarder::hold(const std::shared_ptr<Upstream>& upstream) {
  const auto held = std::static_pointer_cast<ManagedUpstream>(upstream);
  std::shared_ptr<UpstreamConnection> connection = held->connection();
  if (!held->ready() || !connection)
    return with_failure_code(Error(ErrorKind::closed, "server " + held->spec().name + " is not ready"));
  return Lease(held, std::move(connection), std::make_unique<HeldLease>(held));
}

Result<void> CallForwarder::notify(const Target& target, std::string_view method, const json::Raw& params) {
  const Result<UpstreamPtr> upstream = registry_->upstream_of(target);
  if (!upstream) return upstream.error();
  if (!(*upstream)->ready()) return {};
  return (*upstream)->connection()->notify(method, params);
}

Task<Result<std::shared_ptr<Upstream>>> CallForwarder::warm(Target target, std::stop_token stop,
                                                            const Principal* client) {
  const auto self = shared_from_this();
  Task<Result<UpstreamPtr>> readying = ready_upstream(target, std::move(stop), StartPriority::call,
                                                      client ? client_key(*client) : std::string());
  const Result<UpstreamPtr> found = co_await readying;
  if (!found) co_return found.error();
  co_return std::shared_ptr<Upstream>(*found);
}

}  // namespace fairlead::pool
