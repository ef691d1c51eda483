#include "pool/direct_call.hpp"

#include <utility>

#include "base/exception_error.hpp"
#include "fairlead/base/block_cache.hpp"
#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

std::shared_ptr<void> call_context_of(const std::shared_ptr<DirectForward>& forward) {
  void* const context = forward->call_context();
  return context ? std::shared_ptr<void>(forward, context) : nullptr;
}

}  // namespace

class DirectCall::InFlight {
 public:
  explicit InFlight(Loop&) {}
  InFlight(const InFlight&) = delete;
  ~InFlight() {
    while (!calls_.empty()) {
      const std::shared_ptr<DirectCall> call = std::move(calls_.front().call);
      calls_.pop_front();
    }
  }

  void add(const std::shared_ptr<DirectCall>& call) {
    call->own_reference_.call = call;
    calls_.push_back(call->own_reference_);
  }

 private:
  boost::intrusive::list<OwnReference, boost::intrusive::constant_time_size<false>> calls_;
};

bool may_retry(const Error& error, const mcp::ForwardedRequest& request, const ForwardOptions& options,
               const ActiveCall& attempt) {
  if (!is_connection_loss(error) || options.stop.stop_requested()) return false;
  if (error.detail().unsent) return true;
  const bool repeatable =
      options.repeatable || (!options.tool.absent() && is_repeatable(request.method(), options.tool));
  return repeatable && !attempt.server_has_begun();
}

void DirectCall::start(std::shared_ptr<CallForwarder> forwarder, const UpstreamPtr& upstream,
                       ConnectionPtr&& connection, Admission&& admission,
                       const std::shared_ptr<DirectForward>& forward) {
  const auto call = make_cached<DirectCall>(std::move(forwarder), upstream, std::move(connection),
                                            std::move(admission), forward);
  upstream->core->loop.service<InFlight>().add(call);
  std::optional<Error> refused;
  try {
    refused = call->ForwardCall::start();
  } catch (const std::exception& thrown) {
    refused = exception_error(thrown);
  }
  if (refused) call->on_failure(std::move(*refused));
}

DirectCall::DirectCall(std::shared_ptr<CallForwarder>&& forwarder, const UpstreamPtr& upstream,
                       ConnectionPtr&& connection, Admission&& admission,
                       const std::shared_ptr<DirectForward>& forward)
    : ForwardCall(*connection->client(), forward->request(),
                  forward->options.idle.value_or(upstream->spec().clocks.idle),
                  forward->options.absolute.value_or(upstream->spec().clocks.absolute),
                  forward->options.stop),
      forwarder_(std::move(forwarder)),
      connection_(std::move(connection)),
      admission_(std::move(admission)),
      forward_(forward),
      active_(std::in_place, upstream, forward->target, forward->request().method(), call_context_of(forward),
              &forward->request()) {}

std::shared_ptr<DirectCall> DirectCall::release_own_reference() {
  own_reference_.unlink();
  return std::move(own_reference_.call);
}

void DirectCall::on_response(rpc::Message&& response) {
  const std::shared_ptr<DirectCall> self = release_own_reference();
  try {
    active_->upstream().on_call_answered(forward_->request().tool());
    complete(response, connection_->server().revision);
  } catch (const std::exception& thrown) {
    complete(exception_error(thrown));  // so that other calls of the connection are not affected
  }
}

void DirectCall::on_failure(Error reason) {
  const std::shared_ptr<DirectCall> self = release_own_reference();
  try {
    ManagedUpstream& upstream = active_->upstream();
    const Error error = upstream.failures.on_call_failed(connection_, reason);
    if (!may_retry(error, forward_->request(), forward_->options, *active_)) return complete(error);
    upstream.core->log().info("retrying a call",
                              {{"server", forward_->target.server}, {"reason", error.message()}});
    CallForwarder::Attempted attempted;
    attempted.count = 1;
    if (!error.detail().unsent) attempted.failure = error;
    attempted.admission = std::move(admission_);
    Loop& loop = upstream.core->loop;
    active_.reset();
    loop.spawn(retry(self, std::move(attempted)));
  } catch (const std::exception& thrown) {
    complete(exception_error(thrown));
  }
}

void DirectCall::on_forwarded_progress(const json::Raw& params) {
  active_->upstream().health.record_activity();
  if (!forward_->request().wants_progress()) return;
  active_->progressed = true;
  if (forward_->options.on_progress) forward_->options.on_progress(params);
}

std::shared_ptr<DirectForward> DirectCall::release_forward() {
  active_.reset();
  admission_ = Admission();
  return std::move(forward_);
}

void DirectCall::complete(const rpc::Message& response, mcp::Revision revision) {
  if (const auto forward = release_forward()) forward->on_answer(response, revision);
}

void DirectCall::complete(const Error& error) {
  if (const auto forward = release_forward()) forward->on_failure(error);
}

Task<void> DirectCall::retry(std::shared_ptr<DirectCall> self, CallForwarder::Attempted attempted) {
  std::optional<Result<ForwardedAnswer>> answer;
  try {
    ForwardOptions options = self->forward_->options;
    options.call_context = call_context_of(self->forward_);
    Task<Result<ForwardedAnswer>> retried = self->forwarder_->forward(
        self->forward_->target, self->forward_->copy_request(), std::move(options), std::move(attempted));
    answer = co_await retried;
  } catch (const std::exception& thrown) {
    answer = exception_error(thrown);
  }
  if (*answer) {
    self->complete((*answer)->message, (*answer)->revision);
  } else {
    self->complete(answer->error());
  }
}

}  // namespace fairlead::pool
