// The calling half of Peer: calls, their responses, deadlines and cancellation.
#include <algorithm>
#include <charconv>
#include <limits>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "peer/active_request.hpp"

namespace fairlead {

namespace {

std::chrono::milliseconds to_milliseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

constexpr std::size_t kMaxListedCalls = 100;   // with more calls in flight, report_mismatch() names no id
constexpr std::size_t kMaxShownIdBytes = 200;  // bytes of an id in an error message

Error marked_unsent(Error error) {
  return std::move(error).with([](ErrorDetail& d) { d.unsent = true; });
}

}  // namespace

// ---- one call --------------------------------------------------------------------------------------------

Peer::OutgoingCall::~OutgoingCall() {
  stop_callback_.reset();
  if (in_flight_) peer_->abandon_call(*this, "no longer wanted");
}

void Peer::OutgoingCall::finish(rpc::Message&& response) {
  in_flight_ = false;
  on_response(std::move(response));
}

void Peer::OutgoingCall::fail(Error reason) {
  in_flight_ = false;
  on_failure(std::move(reason));
}

void Peer::OutgoingCall::handle_progress(const rpc::Message& notification) {
  if (timeout_ && max_deadline_ > deadline) deadline = std::min(max_deadline_, Clock::now() + *timeout_);
  if (!wants_progress()) return;
  const json::View value = notification.param(peer_->options_.dialect.progress_value_key);
  on_progress(value.absent() ? notification.params()
                             : json::Raw::trusted(notification.frame().part(value.text())));
}

bool Peer::CallBase::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  const std::optional<Error> refused = start();
  if (refused) outcome_ = *refused;
  return !refused;
}

void Peer::CallBase::on_response(rpc::Message&& response) {
  outcome_ = std::move(response);
  handle_.resume();
}

void Peer::CallBase::on_failure(Error reason) {
  outcome_ = std::move(reason);
  handle_.resume();
}

void Peer::OutgoingCall::CancelOnStop::operator()() const {
  // May run on any thread, inside request_stop().
  peer->loop().post([peer = peer, id = id] { peer->cancel_call(id); });
}

Result<json::Raw> Peer::Call::await_resume() {
  if (!*outcome_) return outcome_->error();
  const rpc::Message& response = **outcome_;
  if (response.is(rpc::Kind::error)) return response.remote_error();
  return response.result();
}

// ---- all calls -------------------------------------------------------------------------------------------

// Registers the call before writing it, because the response may arrive before the write has completed.
std::optional<Error> Peer::start_call(OutgoingCall& call) {
  const Limits& limits = options_.limits;
  if (end_reason_) return marked_unsent(*end_reason_);
  if (call.stop_.stop_requested())
    return Error(ErrorKind::cancelled, "the call was cancelled before it was sent");
  if (in_flight_.size() >= (options_.lock_step ? 1 : limits.max_calls_in_flight)) {
    return Error(ErrorKind::resource_exhausted,
                 options_.lock_step ? "a call is in flight already (lock step allows one at a time)"
                                    : "max_calls_in_flight (" + std::to_string(limits.max_calls_in_flight) +
                                          ") calls are waiting for responses");
  }
  if (connection_->backlog() > limits.max_backlog_bytes) {
    return Error(ErrorKind::resource_exhausted, "max_backlog_bytes (" +
                                                    std::to_string(limits.max_backlog_bytes) +
                                                    ") are already queued for " + connection_->description());
  }
  if (!call.timeout_) call.timeout_ = limits.call_timeout;
  const Clock::time_point now = Clock::now();
  if (call.max_total_time_) call.max_deadline_ = now + *call.max_total_time_;
  call.deadline = std::min(call.max_deadline_, now + *call.timeout_);
  call.start_position_ = connection_->queued_position();
  in_flight_.add(call);
  Result<void> posted;
  try {
    char digits[std::numeric_limits<std::uint64_t>::digits10 + 1];
    const char* const end = std::to_chars(std::begin(digits), std::end(digits), call.id).ptr;
    posted =
        connection_->post(call.encode(std::string_view(digits, end)), RelatedRequest{call.related_request()});
  } catch (...) {
    in_flight_.remove(call.id);
    throw;
  }
  if (!posted) {
    in_flight_.remove(call.id);
    return marked_unsent(posted.error());
  }
  ++stats_.calls;
  arm_deadline_timer();
  // Resumes reading, which must not pause while a call waits for its response. Posted, because the coroutine
  // that makes the call is not suspended yet.
  if (awaiting_drain_) loop().post([self = shared_from_this()] { self->reading_allowed_.set(); });
  if (call.stop_.stop_possible())
    call.stop_callback_.emplace(call.stop_, OutgoingCall::CancelOnStop{shared_from_this(), call.id});
  return std::nullopt;
}

void Peer::abandon_call(OutgoingCall& call, const char* reason) {
  if (!in_flight_.find(call.id)) return;
  in_flight_.abandon(call);
  send_cancel(call.id, reason);
}

void Peer::cancel_call(std::uint64_t id) {
  rpc::PendingCall* call = in_flight_.find(id);
  if (!call) return;
  in_flight_.abandon(*call);
  send_cancel(id, "cancelled by the caller");
  call->fail(Error(ErrorKind::cancelled, "the call was cancelled by its caller"));
}

void Peer::send_cancel(std::uint64_t id, const char* reason) {
  const Dialect& dialect = options_.dialect;
  if (dialect.cancel_method.empty() || closed()) return;
  json::Writer params;
  params.begin_object()
      .key(dialect.cancel_id_key)
      .unsigned_integer(id)
      .key("reason")
      .string(reason)
      .end_object();
  static_cast<void>(post_notification(dialect.cancel_method, std::move(params).finish()));
}

void Peer::handle_response(rpc::Message&& message, const std::shared_ptr<Batch>& batch) {
  if (finish_call(std::move(message))) {
    if (batch) finish_without_response(*batch);
  } else if (message.lacks_result() && options_.malformed_frames == MalformedFramePolicy::respond) {
    ++stats_.malformed_frames;
    reject(message, rpc::invalid_request("Invalid Request: neither method, result nor error"), batch);
  } else {
    report_mismatch(message);
    if (batch) finish_without_response(*batch);
  }
}

// Finishes the call with the id of the response. Returns false if the response belongs to no call; a response
// to an abandoned call is dropped, and the function returns true.
bool Peer::finish_call(rpc::Message&& message) {
  const std::optional<std::uint64_t> id = rpc::parse_call_id(message.id());
  if (!id) return false;
  if (rpc::PendingCall* call = in_flight_.remove(*id)) {
    call->finish(std::move(message));
    return true;
  }
  if (!in_flight_.erase_abandoned(*id)) return false;
  ++stats_.late_responses;
  options_.log.debug("late response dropped", {{"id", *id}});
  return true;
}

void Peer::report_mismatch(const rpc::Message& message) {
  ++stats_.mismatched_responses;
  const std::size_t waiting = in_flight_.size();
  const std::uint64_t first = waiting > 0 && waiting <= kMaxListedCalls ? in_flight_.ids().front() : 0;
  std::string expected = waiting == 0 ? "none"
                         : first      ? std::to_string(first)
                                      : std::to_string(waiting) + " calls";
  if (first && waiting > 1) expected += " and " + std::to_string(waiting - 1) + " more";
  const std::string_view id = message.id().empty() ? "no id" : message.id();
  if (message.is(rpc::Kind::error) && (message.id().empty() || message.id() == "null")) {
    fault_log_.write(options_.log, LogLevel::warning,
                     "the remote peer reported an error that belongs to no call",
                     {{"error", message.remote_error().message()}});
  }
  fault_log_.write(options_.log, LogLevel::warning, "id mismatch: the response belongs to no call",
                   {LogField::json_number("id", id), {"expected", expected}});
  if (!options_.lock_step || waiting == 0) return;
  rpc::PendingCall* call = in_flight_.remove(first);
  call->fail(
      Error(ErrorKind::id_mismatch,
            "the response has id " + std::string(id.substr(0, kMaxShownIdBytes)) + ", expected " + expected));
}

bool Peer::handle_progress(const rpc::Message& message) {
  if (message.method() != options_.dialect.progress_method) return false;
  const json::View token = message.param(options_.dialect.progress_token_key);
  const std::optional<std::uint64_t> id = rpc::parse_call_id(token.text());
  rpc::PendingCall* call = id ? in_flight_.find(*id) : nullptr;
  if (!call) return false;
  call->handle_progress(message);
  return true;
}

// Looks up each call by its id, because finishing one call may destroy others, together with their callers.
void Peer::fail_calls(const Error& reason) {
  const std::uint64_t written = connection_->written_position();
  for (const std::uint64_t id : in_flight_.ids()) {
    rpc::PendingCall* call = in_flight_.remove(id);
    if (!call) continue;
    const bool is_unsent = static_cast<OutgoingCall*>(call)->start_position_ >= written;
    call->fail(is_unsent ? marked_unsent(reason) : reason);
  }
}

void Peer::handle_call_failure(std::string_view id, Error reason) {
  const std::optional<std::uint64_t> call_id = rpc::parse_call_id(id);
  if (rpc::PendingCall* call = call_id ? in_flight_.remove(*call_id) : nullptr) call->fail(std::move(reason));
}

void Peer::arm_deadline_timer() {
  const Clock::time_point next = in_flight_.next_deadline();
  if (next >= armed_deadline_) return;
  armed_deadline_ = next;
  deadline_timer_.arm(next, [this] { expire_calls(); });
}

void Peer::expire_calls() {
  const auto self = shared_from_this();
  armed_deadline_ = Clock::time_point::max();
  for (const std::uint64_t id : in_flight_.expired_ids(Clock::now())) {
    rpc::PendingCall* call = in_flight_.find(id);
    if (!call) continue;
    auto& pending = static_cast<OutgoingCall&>(*call);
    in_flight_.abandon(*call);
    send_cancel(id, "timed out");
    const bool total = pending.max_deadline_ <= pending.deadline;
    const auto waited = total ? *pending.max_total_time_ : *pending.timeout_;
    call->fail(Error::timeout("`" + std::string(pending.method()) + "`", to_milliseconds(waited)));
  }
  arm_deadline_timer();
}

}  // namespace fairlead
