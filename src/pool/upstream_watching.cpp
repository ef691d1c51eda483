// Whether an upstream is alive: what it says, how its calls end, and the ping it gets when it says nothing.
#include <algorithm>
#include <set>

#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "pool/client_connection.hpp"
#include "pool/retry.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

bool asks_a_session(std::string_view method) {
  return method == "sampling/createMessage" || method == "elicitation/create" || method == "roots/list";
}

}  // namespace

// ---- what it says ----------------------------------------------------------------------------------------

Task<Answer> ManagedUpstream::refuse_request(Request request) {
  co_return rpc::method_not_found(request.method());
}

bool ManagedUpstream::between_calls() const noexcept {
  return std::ranges::all_of(calls_, [](const Running& call) { return !call.request_; });
}

Task<Answer> ManagedUpstream::on_request(Request request) {
  ++asked_;
  sign_of_life();
  // Posted: it may take the upstream from those who share it.
  // Asking for roots between calls, as many do when they are started, keeps nothing of one session.
  const bool harmless = request.method() == "roots/list" && between_calls();
  if (asks_a_session(request.method()) && !harmless && server_->keeps_state) {
    core_->loop.post([server = server_, why = "it sends " + std::string(request.method())] {
      if (server->keeps_state) server->keeps_state(why);
    });
  }
  const auto& handler = core_->options.handlers.request;
  return handler ? handler(shared_from_this(), std::move(request)) : refuse_request(std::move(request));
}

void ManagedUpstream::on_notification(std::string_view method, const json::Raw& params) {
  sign_of_life();
  if (core_->options.handlers.notified) core_->options.handlers.notified(shared_from_this(), method, params);
}

void ManagedUpstream::call_answered(std::string_view tool) {
  ++answered_;
  supervisor_.served();
  server_->tool_crashes.answered(tool);
  sign_of_life();
}

void ManagedUpstream::sign_of_life() {
  last_sign_ = Clock::now();
  suspect_ = false;
  if (!std::exchange(pinging_, false)) return;
  ping_timer_.cancel();
}

// ---- its end ---------------------------------------------------------------------------------------------

Error ManagedUpstream::call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error) {
  const std::optional<Error> ended = connection->end_reason();
  if (connection == connection_ && ended) on_lost(generation(), *ended);
  error = redacted(with_server_context(*connection, std::move(error)));
  // Over HTTP a call may be cut off, or find nobody, without the connection being any the wiser.
  if (connection == connection_ && (error.kind() == ErrorKind::timeout || cut_off(error))) ping();
  const bool by_us = error.kind() == ErrorKind::closed && close_reason_ && connection != connection_;
  if (!by_us) return error;
  return Error(*close_reason_).with([&](ErrorDetail& d) { d.unsent = error.detail().unsent; });
}

std::optional<Error> ManagedUpstream::tool_refusal(std::string_view tool) const {
  return server_->tool_crashes.refusal(spec().name, tool, Clock::now());
}

// With calls of several tools under way nobody can tell which of them ended the process, so it counts for
// each of them. A tool that is not to blame starts again at zero when one of its calls is answered.
void ManagedUpstream::count_crashes(const Error& reason) {
  if (reason.kind() != ErrorKind::process_exited) return;
  std::set<std::string> tools;
  for (const Running& call : calls_) {
    if (call.request_ && !call.request_->tool().empty()) tools.emplace(call.request_->tool());
  }
  for (const std::string& tool : tools) server_->tool_crashes.crashed(tool, reason, Clock::now());
}

// A server that exits with status 0 after having served, and with nothing under way, has not failed.
void ManagedUpstream::on_lost(std::uint64_t generation, const Error& lost) {
  if (generation != this->generation() || !connection_) return;
  const Error reason = redacted(with_server_context(*connection_, lost));
  const bool polite = reason.detail().exit_status == 0 && calls_.empty() && answered_ > 0;
  last_error_ = reason;
  close_reason_ = reason;  // for calls that end because we close what is no good any more
  if (!polite) core_->log().warning("server lost", {{"server", spec().name}, {"reason", reason.to_string()}});
  count_crashes(reason);
  tell(polite ? Event::left : Event::lost, reason.message());
}

// ---- its health ------------------------------------------------------------------------------------------

void ManagedUpstream::watch() {
  const Clocks& clocks = spec().clocks;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  if (clocks.idle_stop.count() > 0 && !spec().keep_running)
    next = (unused() ? idle_since_ : now) + clocks.idle_stop;
  if (clocks.health.count() > 0) next = std::min(next, (pinging_ ? now : last_sign_) + clocks.health);
  if (next != Clock::time_point::max()) watch_timer_.arm(next, [this] { look_after(); });
}

void ManagedUpstream::look_after() {
  if (!ready()) return;
  const Clocks& clocks = spec().clocks;
  const Clock::time_point now = Clock::now();
  const bool stops = clocks.idle_stop.count() > 0 && !spec().keep_running;
  if (stops && unused() && now - idle_since_ >= clocks.idle_stop) return rest("idle for idle_stop");
  if (clocks.health.count() > 0 && now - last_sign_ >= clocks.health) ping();
  if (ready()) watch();
}

void ManagedUpstream::ping() {
  if (pinging_ || !ready()) return;
  pinging_ = true;
  pinged_after_ = last_number_;
  ping_timer_.arm_after(spec().clocks.ping, [this] { on_silence(); });
  core_->loop.spawn(await_ping(weak_from_this(), connection_, generation()));
}

Task<void> ManagedUpstream::await_ping(std::weak_ptr<ManagedUpstream> weak,
                                       std::shared_ptr<UpstreamConnection> connection,
                                       std::uint64_t generation) {
  Task<Result<void>> asking = connection->ping();
  const Result<void> answer = co_await asking;
  const auto self = weak.lock();
  if (!self || self->generation() != generation) co_return;
  if (answer || !cut_off(answer.error()))
    self->ping_answered(answer);
  else if (self->connection_ == connection)
    self->on_lost(generation, answer.error());
}

// With a refusal too, of whatever kind, but not with having waited in vain.
void ManagedUpstream::ping_answered(const Result<void>& answer) {
  const bool said = answer || answer.error().kind() == ErrorKind::remote ||
                    answer.error().kind() == ErrorKind::http_status ||
                    answer.error().kind() == ErrorKind::authorization;
  if (said) sign_of_life();
}

void ManagedUpstream::on_silence() {
  if (!ready()) return;
  suspect_ = true;
  core_->log().warning("server does not answer a ping", {{"server", spec().name}});
  replace_if_dead();
}

// A server that works on a call may not be able to answer a ping beside it. So it is given up only when every
// call that was under way before the ping has ended too, by its own clock, and nothing at all was heard
// since.
void ManagedUpstream::replace_if_dead() {
  if (!suspect_ || !ready()) return;
  if (!calls_.empty() && calls_.front().number_ <= pinged_after_) return;
  const std::chrono::milliseconds waited = spec().clocks.ping;
  suspect_ = false;
  const UpstreamConnection& connection = *connection_;
  last_error_ =
      connection.explained(Error::timeout("a ping to server " + spec().name, waited), failure::unresponsive);
  close_reason_ = connection.explained(
      Error(ErrorKind::closed, "server " + spec().name + " answered neither calls nor a ping for " +
                                   std::to_string(waited.count()) + " ms and is replaced"),
      failure::unresponsive);
  core_->log().warning("server lost", {{"server", spec().name}, {"reason", last_error_->to_string()}});
  tell(Event::lost, close_reason_->message());
}

}  // namespace fairlead::pool
