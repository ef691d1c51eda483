#include "pool/direct_call.hpp"

#include <exception>
#include <string>
#include <utility>

#include "fairlead/base/block_cache.hpp"
#include "pool/retry.hpp"

namespace fairlead::pool {

namespace {

Error exception_error(const std::exception& thrown) {
  return Error(ErrorKind::resource_exhausted, std::string("exception: ") + thrown.what());
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
                       ConnectionPtr&& connection, Admission&& admission, Target&& target,
                       const std::shared_ptr<const mcp::ForwardedRequest>& request, ForwardOptions&& options,
                       const std::shared_ptr<AnswerHandler>& handler) {
  Loop& loop = upstream->core->loop;
  const auto call =
      make_cached<DirectCall>(std::move(forwarder), upstream, std::move(connection), std::move(admission),
                              std::move(target), request, std::move(options), handler);
  loop.service<InFlight>().add(call);
  std::optional<Error> refused;
  try {
    refused = call->ForwardCall::start();
  } catch (const std::exception& thrown) {
    refused = exception_error(thrown);
  }
  if (refused) call->on_finished(*refused);
}

DirectCall::DirectCall(std::shared_ptr<CallForwarder> forwarder, const UpstreamPtr& upstream,
                       ConnectionPtr&& connection, Admission&& admission, Target&& target,
                       const std::shared_ptr<const mcp::ForwardedRequest>& request, ForwardOptions&& options,
                       const std::shared_ptr<AnswerHandler>& handler)
    : ForwardCall(*connection->client(), *request, options.idle.value_or(upstream->spec().clocks.idle),
                  options.absolute.value_or(upstream->spec().clocks.absolute), options.stop),
      forwarder_(std::move(forwarder)),
      connection_(std::move(connection)),
      admission_(std::move(admission)),
      target_(std::move(target)),
      request_(request),
      options_(std::move(options)),
      handler_(handler),
      active_(std::in_place, upstream, target_, request_->method(), options_.call_context, request_.get()) {}

void DirectCall::on_finished(Result<rpc::Message> outcome) {
  const std::shared_ptr<DirectCall> self = std::move(own_reference_.call);
  own_reference_.unlink();
  try {
    if (!outcome) return fail(outcome.error());
    active_->upstream().on_call_answered(request_->tool());
    complete(ForwardedAnswer(std::move(*outcome), connection_->server().revision));
  } catch (const std::exception& thrown) {
    complete(exception_error(thrown));  // so that other calls of the connection are not affected
  }
}

void DirectCall::on_forwarded_progress(const json::Raw& params) {
  active_->upstream().health.record_activity();
  if (!request_->wants_progress()) return;
  active_->progressed = true;
  if (options_.on_progress) options_.on_progress(params);
}

void DirectCall::complete(Result<ForwardedAnswer> answer) {
  active_.reset();
  admission_ = Admission();
  if (const auto handler = std::exchange(handler_, nullptr)) handler->on_answer(std::move(answer));
}

void DirectCall::fail(const Error& reason) {
  ManagedUpstream& upstream = active_->upstream();
  const Error error = upstream.failures.on_call_failed(connection_, reason);
  if (!may_retry(error, *request_, options_, *active_)) return complete(error);
  upstream.core->log().info("retrying a call", {{"server", target_.server}, {"reason", error.message()}});
  CallForwarder::Attempted attempted;
  attempted.count = 1;
  if (!error.detail().unsent) attempted.failure = error;
  attempted.admission = std::move(admission_);
  Loop& loop = upstream.core->loop;
  active_.reset();
  loop.spawn(retry(shared_from_this(), std::move(attempted)));
}

Task<void> DirectCall::retry(std::shared_ptr<DirectCall> self, CallForwarder::Attempted attempted) {
  std::optional<Result<ForwardedAnswer>> answer;
  try {
    Task<Result<ForwardedAnswer>> retried =
        self->forwarder_->forward(self->target_, self->request_, self->options_, std::move(attempted));
    answer = co_await retried;
  } catch (const std::exception& thrown) {
    answer = exception_error(thrown);
  }
  self->complete(std::move(*answer));
}

}  // namespace fairlead::pool
