#include "pool/call_forwarder.hpp"

#include "fairlead/json/view.hpp"
#include "fairlead/process/failure.hpp"
#include "pool/direct_call.hpp"
#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

// Handles the progress of one attempt of a call.
struct CallAttempt {
  ActiveCall& active;
  const mcp::ForwardedRequest& request;
  const ForwardOptions& options;

  void on_progress(const json::Raw& params) {
    active.upstream().health.record_activity();
    if (!request.wants_progress()) return;
    active.progressed = true;
    if (options.on_progress) options.on_progress(params);
  }
};

// The guard of a lease from acquire(). The lease counts as an active call.
class CallLease final : public Lease::Guard {
 public:
  CallLease(Admission admission, Target target, std::shared_ptr<ManagedUpstream> upstream)
      : admission_(std::move(admission)),
        target_(std::move(target)),
        active_call_(std::move(upstream), target_, "", nullptr) {}

 private:
  Admission admission_;
  Target target_;
  ActiveCall active_call_;
};

// The guard of a lease from keep_alive(). The lease does not count as a call; it only prevents idle stop and
// eviction.
class KeepAliveLease final : public Lease::Guard {
 public:
  explicit KeepAliveLease(std::shared_ptr<ManagedUpstream> upstream) : upstream_(std::move(upstream)) {
    upstream_->active.add_keep_alive();
  }
  ~KeepAliveLease() override {
    upstream_->active.remove_keep_alive();
    upstream_->on_use_ended();
  }

 private:
  std::shared_ptr<ManagedUpstream> upstream_;
};

// Calls without a session are distinguished by the address of the client's connection.
CallerKey caller_key(const Target& target, const Principal* client) {
  if (!client) return CallerKey({}, target.session);
  return CallerKey(client_key(*client), target.session.empty() ? client->client_address : target.session);
}

// Returns the error for a tool that has ended the process too often, or nullopt if the tool may be called.
std::optional<Error> tool_refusal_error(const ManagedUpstream& upstream, std::string_view tool) {
  if (upstream.server->tool_crashes.empty()) return std::nullopt;
  return upstream.server->tool_crashes.refusal_error(upstream.spec().name, tool, Clock::now());
}

}  // namespace

// If the server is updated while a caller waits for its start, the caller waits for the updated server.
Task<Result<CallForwarder::UpstreamPtr>> CallForwarder::ready_upstream(const Target& target,
                                                                       std::stop_token stop,
                                                                       StartPriority priority,
                                                                       std::string client) {
  while (true) {
    // Checked first, so that a call that was cancelled because its session has ended does not create an
    // upstream for that session.
    if (stop.stop_requested())
      co_return with_failure_code(Error(ErrorKind::cancelled, "cancelled before the call was sent"));
    const Result<UpstreamPtr> upstream = registry_->get_or_create_upstream(target);
    if (!upstream) co_return upstream;
    if ((*upstream)->ready() && priority == StartPriority::call) (*upstream)->stop_if_capabilities_outdated();
    if ((*upstream)->ready()) co_return upstream;
    const Result<void> ready = co_await (*upstream)->starter.wait_until_ready(stop, priority, client);
    if (ready) co_return upstream;
    if (stop.stop_requested()) co_return ready.error();
    // An upstream of a session or a user that has failed to start may be erased by now. That is no reason to
    // start another one.
    if (!(*upstream)->retired()) co_return ready.error();
    const Result<UpstreamPtr> current = registry_->get_or_create_upstream(target);
    const bool replaced = current && *current != *upstream;
    if (!replaced) co_return ready.error();
  }
}

// ---- calls -----------------------------------------------------------------------------------------------

Task<Result<ForwardedAnswer>> CallForwarder::forward(Target target,
                                                     std::shared_ptr<const mcp::ForwardedRequest> request,
                                                     ForwardOptions options, Attempted attempted) {
  const auto self = shared_from_this();
  const Result<ServerRegistry::Entry*> server = registry_->find(target.server);
  if (!server) co_return attempted.failure ? *attempted.failure : server.error();
  Admission admission = std::move(attempted.admission);
  if (!admission.pool_permit) admission = admission_.try_admit(*(*server)->context);
  if (!admission.pool_permit) {
    admission = Admission();
    Result<Admission> admitted =
        co_await admission_.admit((*server)->context, options.stop, caller_key(target, options.client));
    if (!admitted) co_return admitted.error();
    admission = std::move(*admitted);
  }
  registry_->unshare_if_stateful(target, request->method());
  std::optional<Error> first_failure = std::move(attempted.failure);
  for (unsigned attempt = attempted.count + 1;; ++attempt) {
    Result<UpstreamPtr> found = registry_->get_or_create_upstream(target);
    std::optional<Error> refused = found ? tool_refusal_error(**found, request->tool()) : std::nullopt;
    if (refused) co_return first_failure ? *first_failure : *refused;
    if (found && (*found)->ready()) (*found)->stop_if_capabilities_outdated();
    if (found && !(*found)->ready()) {
      found = co_await ready_upstream(target, options.stop, StartPriority::call,
                                      caller_key(target, options.client).client);
    }
    if (!found) co_return first_failure ? *first_failure : found.error();
    ManagedUpstream& upstream = **found;
    const std::shared_ptr<UpstreamConnection> connection = upstream.connection();
    if (!upstream.ready() || !connection) {
      // The connection was lost after ready_upstream() had returned.
      if (attempt == 1) continue;
      co_return with_failure_code(
          Error(ErrorKind::closed, "server " + target.server + " was lost before the call was sent"));
    }
    ActiveCall active(*found, target, request->method(), options.call_context, request.get());
    CallAttempt call_attempt{active, *request, options};
    CallOptions call_options;
    call_options.timeout = options.idle.value_or(upstream.spec().clocks.idle);
    call_options.max_total_time = options.absolute.value_or(upstream.spec().clocks.absolute);
    call_options.stop = options.stop;
    // Set for every call, because only a call with a progress handler is sent with a progress token, and
    // progress restarts the idle timeout.
    call_options.on_progress = [&call_attempt](const json::Raw& params) { call_attempt.on_progress(params); };
    Result<rpc::Message> answer = co_await connection->call(request, std::move(call_options));
    if (answer) {
      upstream.on_call_answered(request->tool());
      if (first_failure) answer = mark_retried(*answer, attempt, *first_failure);
      co_return ForwardedAnswer(std::move(*answer), connection->server().revision);
    }
    const Error error = upstream.failures.on_call_failed(connection, answer.error());
    if (attempt > 1 || !may_retry(error, *request, options, active)) co_return error;
    if (!error.detail().unsent) first_failure = error;
    core_->log().info("retrying a call", {{"server", target.server}, {"reason", error.message()}});
  }
}

bool CallForwarder::try_forward(const std::shared_ptr<DirectForward>& call) {
  const Result<UpstreamPtr> found = registry_->get_or_create_upstream(call->target);
  if (!found) return false;
  ManagedUpstream& upstream = **found;
  if (!upstream.ready() || tool_refusal_error(upstream, call->request().tool())) return false;
  upstream.stop_if_capabilities_outdated();
  std::shared_ptr<UpstreamConnection> connection = upstream.ready() ? upstream.connection() : nullptr;
  if (!connection || !connection->client()) return false;
  Admission admission = admission_.try_admit(*upstream.server);
  if (!admission.pool_permit) return false;
  DirectCall::start(shared_from_this(), *found, std::move(connection), std::move(admission), call);
  return true;
}

Task<Result<Lease>> CallForwarder::acquire(Target target, std::stop_token stop, StartPriority priority,
                                           const Principal* client) {
  const auto self = shared_from_this();
  const Result<ServerRegistry::Entry*> server = registry_->find(target.server);
  if (!server) co_return server.error();
  const CallerKey caller = caller_key(target, client);
  Result<Admission> admitted = co_await admission_.admit((*server)->context, stop, caller);
  if (!admitted) co_return admitted.error();
  const Result<UpstreamPtr> found = co_await ready_upstream(target, stop, priority, caller.client);
  if (!found) co_return found.error();
  std::shared_ptr<UpstreamConnection> connection = (*found)->connection();
  if (!(*found)->ready() || !connection)
    co_return with_failure_code(
        Error(ErrorKind::closed, "server " + target.server + " was lost as soon as it was ready"));
  auto guard = std::make_unique<CallLease>(std::move(*admitted), std::move(target), *found);
  co_return Lease(*found, std::move(connection), std::move(guard));
}

Result<Lease> CallForwarder::keep_alive(const std::shared_ptr<Upstream>& upstream) {
  const auto managed = std::static_pointer_cast<ManagedUpstream>(upstream);
  std::shared_ptr<UpstreamConnection> connection = managed->connection();
  if (!managed->ready() || !connection)
    return with_failure_code(Error(ErrorKind::closed, "server " + managed->spec().name + " is not ready"));
  return Lease(managed, std::move(connection), std::make_unique<KeepAliveLease>(managed));
}

Result<void> CallForwarder::notify(const Target& target, std::string_view method, const json::Raw& params) {
  const Result<UpstreamPtr> upstream = registry_->get_or_create_upstream(target);
  if (!upstream) return upstream.error();
  if (!(*upstream)->ready()) return {};
  return (*upstream)->connection()->notify(method, params);
}

Task<Result<std::shared_ptr<Upstream>>> CallForwarder::warm(Target target, std::stop_token stop,
                                                            const Principal* client) {
  const auto self = shared_from_this();
  Task<Result<UpstreamPtr>> starting = ready_upstream(target, std::move(stop), StartPriority::call,
                                                      client ? client_key(*client) : std::string());
  const Result<UpstreamPtr> found = co_await starting;
  if (!found) co_return found.error();
  co_return std::shared_ptr<Upstream>(*found);
}

}  // namespace fairlead::pool
