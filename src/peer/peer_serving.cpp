// The serving half of Peer: requests, notifications and batches of the remote peer.
#include "fairlead/base/block_cache.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "peer/active_request.hpp"
#include "peer/log_exception.hpp"

namespace fairlead {

namespace {

rpc::Rope join_as_array(const std::vector<rpc::Rope>& messages) {
  std::vector<Bytes> parts;
  bool one_line = true;
  for (const rpc::Rope& message : messages) {
    parts.push_back(Bytes::constant(parts.empty() ? "[" : ","));
    message.each([&](const Bytes& part) { parts.push_back(part); });
    one_line = one_line && message.is_one_line();
  }
  parts.push_back(Bytes::constant("]"));
  return rpc::Rope(std::move(parts), one_line);
}

// Returns whether a message of a batch may get a response. A message without method, result and error may: if
// its id belongs to no call in flight when it is handled, it is an invalid request.
bool may_get_response(const rpc::Message& message) {
  return message.is(rpc::Kind::request) || message.is(rpc::Kind::malformed) || message.lacks_result();
}

}  // namespace

void Request::progress(const json::Raw& value) const {
  const Dialect& dialect = peer_->options_.dialect;
  json::Writer params;
  params.begin_object()
      .key(dialect.progress_token_key)
      .raw(id())
      .key(dialect.progress_value_key)
      .raw(value)
      .end_object();
  // A failure is ignored: it means that the remote peer does not read, so progress is of no use to it.
  static_cast<void>(
      peer_->post_notification(dialect.progress_method, std::move(params).finish(), RelatedRequest{id()}));
}

void Peer::handle_request(rpc::Message&& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.requests;
  if (callbacks_.ignore_request && callbacks_.ignore_request(message)) return ignore(message, batch);
  if (batch && message.method() == options_.dialect.never_in_batch) {
    return reject(message,
                  rpc::invalid_request("Invalid Request: " + std::string(message.method()) +
                                       " is not allowed inside a batch"),
                  batch);
  }
  if (queued_response_bytes() > options_.limits.max_backlog_bytes) {
    return reject(message,
                  busy_error("max_backlog_bytes (" + std::to_string(options_.limits.max_backlog_bytes) +
                             ") of responses are queued and not read by the client"),
                  batch);
  }
  if (shutting_down_) return reject(message, busy_error("the server is shutting down"), batch);
  const Methods::Handler* handler = methods_->find(message.method());
  if (!handler) return reject(message, rpc::method_not_found(message.method()), batch);
  if (!handler->plain || handler->blocking) return start_serving(*handler, std::move(message), batch);
  const bool logged = options_.log.enabled(options_.request_log_level);
  const Clock::time_point started = logged ? Clock::now() : Clock::time_point();
  const Answer result = run_plain(*handler, Request(shared_from_this(), message));
  if (logged) log_request(message, result, started);
  respond(message.id(), result, batch);
}

void Peer::reject(const rpc::Message& message, const Error& error, const std::shared_ptr<Batch>& batch) {
  if (options_.log.enabled(options_.request_log_level)) log_request(message, error, Clock::now());
  respond(message.id(), error, batch);
}

void Peer::ignore(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.ignored_requests;
  options_.log.debug("request ignored",
                     {LogField::json_number("id", message.id()), {"method", message.method()}});
  if (batch) finish_without_response(*batch);
}

Answer Peer::run_plain(const Methods::Handler& handler, const Request& request) const {
  try {
    return handler.plain(request);
  } catch (...) {
    log_handler_exception(options_.log, request.method());
  }
  return Error::rpc(rpc::kInternalError, "Internal error");
}

void Peer::start_serving(const Methods::Handler& handler, rpc::Message&& message,
                         const std::shared_ptr<Batch>& batch) {
  const bool is_request = message.is(rpc::Kind::request);
  const std::size_t limit = options_.limits.max_requests_in_progress;
  if (in_progress_.size() >= limit) {
    return reject_over_limit(
        message, "max_requests_in_progress (" + std::to_string(limit) + ") requests are in progress", batch);
  }
  ByteCharge charge(connection_->account());
  const ChargeOutcome charged = charge.resize(message.frame().size());
  if (charged != ChargeOutcome::charged)
    return reject_over_limit(message, charge.refusal_error(charged).message(), batch);
  auto request = make_cached<ActiveRequest>(weak_from_this());
  request->charge = std::move(charge);
  request->key =
      is_request ? std::string(message.id()) : "notification " + std::to_string(++last_notification_key_);
  request->message = std::move(message);
  request->batch = batch;
  if (options_.log.enabled(options_.request_log_level)) request->started = Clock::now();
  if (in_progress_.size() == kEntriesWithoutBuckets) in_progress_.max_load_factor(1);
  const auto [place, is_new] = in_progress_.emplace(request->key, request);
  if (!is_new) {
    return reject(request->message,
                  rpc::invalid_request("Invalid Request: a request with this id is in progress"), batch);
  }
  idle_.reset();
  if (handler.blocking) {
    serve_blocking(handler, request);
  } else if (!handler.direct || !serve_directly(handler, request)) {
    loop().spawn(serve(shared_from_this(), std::move(request), handler));
  }
}

// Handles a message that exceeds a limit: a request gets an error response, a notification is dropped.
void Peer::reject_over_limit(const rpc::Message& message, const std::string& reason,
                             const std::shared_ptr<Batch>& batch) {
  if (message.is(rpc::Kind::request)) return reject(message, busy_error(reason), batch);
  fault_log_.write(options_.log, LogLevel::warning, "notification dropped",
                   {{"method", message.method()}, {"reason", reason}});
}

Task<void> Peer::serve(std::shared_ptr<Peer> self, std::shared_ptr<ActiveRequest> request,
                       const Methods::Handler& handler) {
  std::optional<Answer> result;
  try {
    result = co_await handler.coroutine(Request(self, request->message, request->stop.get_token()));
  } catch (...) {
    log_handler_exception(self->options_.log, request->message.method());
  }
  if (!result) result = Error::rpc(rpc::kInternalError, "Internal error");
  self->finish_serving(*request, *result);
}

// Returns false if the handler leaves the request to its coroutine.
bool Peer::serve_directly(const Methods::Handler& handler, const std::shared_ptr<ActiveRequest>& request) {
  try {
    return handler.direct(request->message, request->stop.get_token(), request);
  } catch (...) {
    log_handler_exception(options_.log, request->message.method());
  }
  finish_serving(*request, Error::rpc(rpc::kInternalError, "Internal error"));
  return true;
}

void Peer::serve_blocking(const Methods::Handler& handler, const std::shared_ptr<ActiveRequest>& request) {
  if (!options_.workers) {
    options_.log.error("a blocking handler needs PeerOptions::workers",
                       {{"method", std::string(request->message.method())}});
    return finish_serving(*request, Error::rpc(rpc::kInternalError, "Internal error"));
  }
  auto job = [self = shared_from_this(), request, &handler]() mutable {
    Answer result = self->run_plain(handler, Request(self, request->message, request->stop.get_token()));
    // Moves the references to the loop, so that the peer is never destroyed on the worker thread.
    Loop& loop = self->loop();
    loop.post([self = std::move(self), request = std::move(request), result = std::move(result)] {
      self->finish_serving(*request, result);
    });
  };
  const Result<void> submitted = options_.workers->submit(std::move(job));
  if (!submitted) finish_serving(*request, busy_error(submitted.error().message()));
}

void Peer::finish_serving(ActiveRequest& request, const Answer& result) {
  if (std::exchange(request.finished, true)) return;
  const rpc::Message& message = request.message;
  // The table may have the last reference.
  const auto entry = in_progress_.extract(request.key);
  request.charge.set(0);
  if (options_.log.enabled(options_.request_log_level)) log_request(message, result, request.started);
  if (message.is(rpc::Kind::request)) {
    if (!request.cancelled) {
      respond(message.id(), result, request.batch);
    } else if (options_.dialect.respond_to_cancelled) {
      respond(message.id(), Error::rpc(rpc::kRequestCancelled, "the request was cancelled"), request.batch);
    } else if (request.batch) {
      finish_without_response(*request.batch);
    }
  }
  if (in_progress_.empty()) idle_.set();
}

void Peer::respond(std::string_view id, const Answer& result, const std::shared_ptr<Batch>& batch) {
  if (result) return send_response(id, rpc::make_response(id, *result), batch);
  const rpc::WireError error = rpc::to_wire(result.error());
  // An internal error is sent to the client without details, so the details are logged.
  if (error.code == rpc::kInternalError && !result.error().detail().rpc_code) {
    error_log_.write(options_.log, LogLevel::error, "request failed",
                     {LogField::json_number("id", id), {"error", result.error().to_string()}});
  }
  send_response(id, rpc::make_error(id, error.code, error.message, error.data), batch);
}

void Peer::send_response(std::string_view id, rpc::Rope response, const std::shared_ptr<Batch>& batch) {
  if (batch) {
    batch->responses.push_back(std::move(response));
    if (--batch->pending > 0) return;
    response = join_as_array(batch->responses);
  }
  post_response(response, RelatedRequest{.id = id, .message_is_response = true});
}

void Peer::post_response(const rpc::Rope& response, RelatedRequest related_request) {
  const std::uint64_t begin = connection_->queued_position();
  const Result<void> posted = connection_->post(response, related_request);
  if (!posted) return options_.log.debug("response not sent", {{"reason", posted.error().message()}});
  queued_responses_.add(begin, connection_->queued_position());
}

// Called when a message that is counted in `pending` gets no response after all: it was ignored or cancelled.
// Sends the responses of the batch if no other message is pending.
void Peer::finish_without_response(Batch& batch) {
  if (--batch.pending > 0 || batch.responses.empty()) return;
  post_response(join_as_array(batch.responses), RelatedRequest());
}

void Peer::handle_notification(const rpc::Message& message) {
  ++stats_.notifications;
  if (handle_cancel(message) || handle_progress(message)) return;
  const Methods::Handler* handler = methods_->find(message.method());
  if (!handler) return options_.log.debug("notification has no handler", {{"method", message.method()}});
  if (!handler->plain || handler->blocking) return start_serving(*handler, rpc::Message(message), nullptr);
  static_cast<void>(run_plain(*handler, Request(shared_from_this(), message)));
}

bool Peer::handle_cancel(const rpc::Message& message) {
  if (message.method() != options_.dialect.cancel_method) return false;
  const json::View id = message.param(options_.dialect.cancel_id_key);
  const auto found = in_progress_.find(id.text());
  if (found != in_progress_.end()) {
    // Keeps the request alive: request_stop() may finish it.
    const std::shared_ptr<ActiveRequest> request = found->second;
    request->cancelled = true;
    request->stop.request_stop();
  }
  return true;
}

void Peer::handle_batch(const rpc::Message& message) {
  if (!options_.accept_batches || (callbacks_.batches_allowed && !callbacks_.batches_allowed())) {
    const Error error = rpc::invalid_request("Invalid Request: batches are not allowed here");
    return handle_malformed(rpc::Message::malformed(error, message.frame()), nullptr);
  }
  handled_in_turn_ += message.batch().size();
  auto batch = std::make_shared<Batch>();
  for (const rpc::Message& entry : message.batch()) {
    if (may_get_response(entry)) ++batch->pending;
  }
  for (const rpc::Message& entry : message.batch()) {
    switch (entry.kind()) {
      case rpc::Kind::request: handle_request(rpc::Message(entry), batch); break;
      case rpc::Kind::malformed: handle_malformed(entry, batch); break;
      case rpc::Kind::response: handle_response(entry, entry.lacks_result() ? batch : nullptr); break;
      default: handle_message(entry); break;
    }
  }
}

// Handles a malformed frame: other output of the remote process, or an invalid request or response.
void Peer::handle_malformed(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.malformed_frames;
  const Error& problem = message.problem();
  // Other output of a child process is frequent and logged for debugging only. A frame over the size limit is
  // a warning, because it may be the response to a call.
  const LogLevel level = problem.kind() == ErrorKind::frame_too_large ? LogLevel::warning : LogLevel::debug;
  if (options_.log.enabled(level)) {
    fault_log_.write(options_.log, level, "malformed frame",
                     {{"connection", connection_->description()},
                      {"problem", problem.message()},
                      {"frame", message.frame().view().substr(0, 200)}});
  }
  // An invalid response ends the call to which it belongs. The error of the call is created without the
  // rpc_code of `problem`, which is for a response to the remote peer.
  const std::optional<std::uint64_t> id = rpc::parse_call_id(message.id());
  if (id && message.method().empty() && !batch) {
    if (rpc::PendingCall* call = in_flight_.remove(*id))
      return call->fail(Error(problem.kind(), problem.message()));
  }
  const bool is_request =
      !message.id().empty() && !message.method().empty() && problem.kind() == ErrorKind::frame_too_large;
  if (options_.malformed_frames == MalformedFramePolicy::respond || batch || is_request) {
    respond(message.id().empty() ? "null" : message.id(), problem, batch);
  }
  const std::size_t limit = options_.limits.max_noise_frames;
  if (limit > 0 && ++consecutive_malformed_frames_ > limit && !close_reason_) {
    close_reason_ =
        Error(ErrorKind::parse, connection_->description() + " sent more than max_noise_frames (" +
                                    std::to_string(limit) + ") malformed frames in a row");
    options_.log.warning("closing the connection", {{"reason", close_reason_->message()}});
  }
}

void Peer::log_request(const rpc::Message& message, const Answer& result, Clock::time_point started) const {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started);
  options_.log.write(options_.request_log_level, message.id().empty() ? "notification" : "request",
                     {LogField::json_number("id", message.id()),
                      {"method", message.method()},
                      {"outcome", result ? std::string("ok") : result.error().to_string()},
                      {"duration_us", took.count()}});
}

}  // namespace fairlead
