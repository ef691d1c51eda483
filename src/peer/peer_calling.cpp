// The calling half of a peer: our calls, their answers, deadlines and cancellation.
#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "peer/serving.hpp"

namespace fairlead {

namespace {

std::chrono::milliseconds whole_ms(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

constexpr std::size_t kNamedCalls = 100;  // with more calls in flight a mismatch does not look for their ids
constexpr std::size_t kShownId = 200;     // bytes of an id that an error message shows

Error unsent(Error error) {
  return std::move(error).with([](ErrorDetail& d) { d.unsent = true; });
}

}  // namespace

// ---- one call --------------------------------------------------------------------------------------------

Peer::Pending::~Pending() {
  stop_.reset();
  if (handle_) peer_->give_up(*this, "no longer wanted");
}

bool Peer::Pending::await_suspend(std::coroutine_handle<> handle) {
  const std::optional<Error> refused = peer_->begin(*this);
  if (refused) {
    outcome_ = *refused;
    return false;
  }
  handle_ = handle;
  return true;
}

void Peer::Pending::finish(Result<rpc::Message> outcome) {
  outcome_ = std::move(outcome);
  std::exchange(handle_, nullptr).resume();
}

void Peer::Pending::progress(const rpc::Message& notification) {
  if (options_.timeout && latest_ > deadline) deadline = std::min(latest_, Clock::now() + *options_.timeout);
  if (!options_.on_progress) return;
  const json::View value = notification.param(peer_->options_.dialect.progress_value_key);
  options_.on_progress(value.absent() ? notification.params()
                                      : json::Raw::trusted(notification.frame().part(value.text())));
}

void Peer::Pending::Stop::operator()() const {
  // May run on any thread, and inside the code that asked to stop.
  peer->loop().post([peer = peer, id = id] { peer->cancel_call(id); });
}

Result<json::Raw> Peer::Call::await_resume() {
  if (!*outcome_) return outcome_->error();
  const rpc::Message& answer = **outcome_;
  if (answer.is(rpc::Kind::error)) return answer.remote_error();
  return answer.result();
}

// ---- all calls -------------------------------------------------------------------------------------------

// Registers before it writes: an answer may come before the write is known to be done.
std::optional<Error> Peer::begin(Pending& call) {
  const Limits& limits = options_.limits;
  if (end_reason_) return unsent(*end_reason_);
  if (call.options_.stop.stop_requested()) return Error(ErrorKind::cancelled, "given up before it was sent");
  if (in_flight_.size() >= (options_.lock_step ? 1 : limits.max_calls_in_flight)) {
    return Error(ErrorKind::resource_exhausted,
                 options_.lock_step ? "a call is under way and this peer speaks in lock step"
                                    : "max_calls_in_flight (" + std::to_string(limits.max_calls_in_flight) +
                                          ") calls wait for answers");
  }
  if (connection_->backlog() > limits.max_backlog_bytes) {
    return Error(ErrorKind::resource_exhausted,
                 "max_backlog_bytes (" + std::to_string(limits.max_backlog_bytes) + ") are queued for " +
                     connection_->description() + " already");
  }
  if (!call.options_.timeout) call.options_.timeout = limits.call_timeout;
  const Clock::time_point now = Clock::now();
  if (call.options_.max_total) call.latest_ = now + *call.options_.max_total;
  call.deadline = std::min(call.latest_, now + *call.options_.timeout);
  call.begins_at_ = connection_->queued_position();
  in_flight_.add(call);
  const Result<void> posted =
      connection_->post(call.encode(std::to_string(call.id)), Concerning{call.options_.concerning});
  if (!posted) {
    in_flight_.take(call.id);
    return unsent(posted.error());
  }
  ++stats_.calls;
  watch_deadlines();
  // Reading must not pause while an answer is due. Posted: the caller is not suspended yet.
  if (awaiting_drain_) loop().post([self = shared_from_this()] { self->may_read_.set(); });
  if (call.options_.stop.stop_possible())
    call.stop_.emplace(call.options_.stop, Pending::Stop{shared_from_this(), call.id});
  return std::nullopt;
}

void Peer::give_up(Pending& call, const char* why) {
  if (!in_flight_.find(call.id)) return;
  in_flight_.abandon(call);
  send_cancel(call.id, why);
}

void Peer::cancel_call(std::uint64_t id) {
  rpc::PendingCall* call = in_flight_.find(id);
  if (!call) return;
  in_flight_.abandon(*call);
  send_cancel(id, "cancelled by the caller");
  call->finish(Error(ErrorKind::cancelled, "the call was given up by its caller"));
}

void Peer::send_cancel(std::uint64_t id, const char* why) {
  const Dialect& dialect = options_.dialect;
  if (dialect.cancel_method.empty() || closed()) return;
  json::Writer params;
  params.begin_object()
      .key(dialect.cancel_id_key)
      .unsigned_integer(id)
      .key("reason")
      .string(why)
      .end_object();
  static_cast<void>(post_notification(dialect.cancel_method, std::move(params).finish()));
}

void Peer::on_answer(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  if (finish_call(message)) {
    if (batch) leave_out(*batch);
  } else if (message.lacks_result() && options_.noise == Noise::answer) {
    ++stats_.noise;
    refuse(message, rpc::invalid_request("Invalid Request: neither method, result nor error"), batch);
  } else {
    report_mismatch(message);
    if (batch) leave_out(*batch);
  }
}

// Returns whether the answer belongs to a call, if only to one that was given up.
bool Peer::finish_call(const rpc::Message& message) {
  const std::optional<std::uint64_t> id = rpc::own_id(message.id());
  if (!id) return false;
  if (rpc::PendingCall* call = in_flight_.take(*id)) {
    call->finish(message);
    return true;
  }
  if (!in_flight_.was_abandoned(*id)) return false;
  ++stats_.late_answers;
  options_.log.debug("late answer dropped", {{"id", *id}});
  return true;
}

void Peer::report_mismatch(const rpc::Message& message) {
  ++stats_.mismatched_answers;
  const std::size_t waiting = in_flight_.size();
  const std::uint64_t first = waiting > 0 && waiting <= kNamedCalls ? in_flight_.ids().front() : 0;
  std::string expected = waiting == 0 ? "none"
                         : first      ? std::to_string(first)
                                      : std::to_string(waiting) + " calls";
  if (first && waiting > 1) expected += " and " + std::to_string(waiting - 1) + " more";
  const std::string_view got = message.id().empty() ? "no id" : message.id();
  if (message.is(rpc::Kind::error) && (message.id().empty() || message.id() == "null")) {
    fault_log_.write(options_.log, LogLevel::warning,
                     "the other side reports an error that belongs to no call",
                     {{"error", message.remote_error().message()}});
  }
  fault_log_.write(options_.log, LogLevel::warning, "id mismatch: an answer nobody waits for",
                   {LogField::json_number("id", got), {"expected", expected}});
  if (!options_.lock_step || waiting == 0) return;
  rpc::PendingCall* call = in_flight_.take(first);
  call->finish(Error(ErrorKind::id_mismatch, "the answer has id " + std::string(got.substr(0, kShownId)) +
                                                 " where " + expected + " was expected"));
}

bool Peer::on_progress(const rpc::Message& message) {
  if (message.method() != options_.dialect.progress_method) return false;
  const json::View token = message.param(options_.dialect.progress_token_key);
  const std::optional<std::uint64_t> id = rpc::own_id(token.text());
  rpc::PendingCall* call = id ? in_flight_.find(*id) : nullptr;
  if (!call) return false;
  call->progress(message);
  return true;
}

// Finishing one call may end others (their callers go away), so each is looked up again.
void Peer::fail_calls(const Error& reason) {
  const std::uint64_t written = connection_->written_position();
  for (const std::uint64_t id : in_flight_.ids()) {
    rpc::PendingCall* call = in_flight_.take(id);
    if (!call) continue;
    const bool waits_still = static_cast<Pending*>(call)->begins_at_ >= written;
    call->finish(waits_still ? unsent(reason) : reason);
  }
}

void Peer::on_call_failed(std::string_view id, Error reason) {
  const std::optional<std::uint64_t> own = rpc::own_id(id);
  if (rpc::PendingCall* call = own ? in_flight_.take(*own) : nullptr) call->finish(std::move(reason));
}

void Peer::watch_deadlines() {
  const Clock::time_point next = in_flight_.next_deadline();
  if (next >= watched_deadline_) return;
  watched_deadline_ = next;
  deadline_timer_.arm(next, [this] { expire_calls(); });
}

void Peer::expire_calls() {
  const auto self = shared_from_this();
  watched_deadline_ = Clock::time_point::max();
  for (const std::uint64_t id : in_flight_.expired(Clock::now())) {
    rpc::PendingCall* call = in_flight_.find(id);
    if (!call) continue;
    auto& pending = static_cast<Pending&>(*call);
    in_flight_.abandon(*call);
    send_cancel(id, "timed out");
    const bool total = pending.latest_ <= pending.deadline;
    const auto waited = total ? *pending.options_.max_total : *pending.options_.timeout;
    call->finish(Error::timeout("`" + std::string(pending.method()) + "`", whole_ms(waited)));
  }
  watch_deadlines();
}

}  // namespace fairlead
