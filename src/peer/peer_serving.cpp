// The serving half of a peer: requests, notifications and batches of the other side.
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "peer/serving.hpp"

namespace fairlead {

namespace {

rpc::Rope array_of(const std::vector<rpc::Rope>& messages) {
  std::vector<Bytes> parts;
  bool one_line = true;
  for (const rpc::Rope& message : messages) {
    parts.push_back(Bytes::constant(parts.empty() ? "[" : ","));
    message.each([&](const Bytes& part) { parts.push_back(part); });
    one_line = one_line && message.one_line();
  }
  parts.push_back(Bytes::constant("]"));
  return rpc::Rope(std::move(parts), one_line);
}

// Whether a message of a batch may get an answer. Whether a response without a result does depends on the
// calls in flight when it is handled.
bool may_be_answered(const rpc::Message& message) {
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
  // Progress is worth nothing to a side that does not read: dropping it is right.
  static_cast<void>(
      peer_->post_notification(dialect.progress_method, std::move(params).finish(), Concerning{id()}));
}

void Peer::on_request(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.requests;
  if (options_.ignore_request && options_.ignore_request(message)) return ignore(message, batch);
  if (batch && message.method() == options_.dialect.never_in_batch) {
    return refuse(message,
                  rpc::invalid_request("Invalid Request: " + std::string(message.method()) +
                                       " is not allowed inside a batch"),
                  batch);
  }
  if (queued_answer_bytes() > options_.limits.max_backlog_bytes) {
    return refuse(message,
                  busy("max_backlog_bytes (" + std::to_string(options_.limits.max_backlog_bytes) +
                       ") of answers are queued and not read"),
                  batch);
  }
  if (shutting_down_) return refuse(message, busy("the server is shutting down"), batch);
  const Methods::Handler* handler = methods_->find(message.method());
  if (!handler) return refuse(message, rpc::method_not_found(message.method()), batch);
  if (!handler->plain || handler->blocking) return start_serving(*handler, message, batch);
  const bool logged = options_.log.enabled(options_.request_log_level);
  const Clock::time_point started = logged ? Clock::now() : Clock::time_point();
  const Answer result = run_plain(*handler, Request(shared_from_this(), message));
  if (logged) log_request(message, result, started);
  answer(message.id(), result, batch);
}

void Peer::refuse(const rpc::Message& message, const Error& why, const std::shared_ptr<Batch>& batch) {
  if (options_.log.enabled(options_.request_log_level)) log_request(message, why, Clock::now());
  answer(message.id(), why, batch);
}

void Peer::ignore(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.ignored_requests;
  options_.log.debug("request ignored",
                     {LogField::json_number("id", message.id()), {"method", message.method()}});
  if (batch) leave_out(*batch);
}

Answer Peer::run_plain(const Methods::Handler& handler, const Request& request) const {
  try {
    return handler.plain(request);
  } catch (const std::exception& thrown) {
    options_.log.error("handler threw", {{"method", std::string(request.method())}, {"what", thrown.what()}});
  } catch (...) {
    options_.log.error("handler threw", {{"method", std::string(request.method())}});
  }
  return Error::rpc(rpc::kInternalError, "Internal error");
}

void Peer::start_serving(const Methods::Handler& handler, const rpc::Message& message,
                         const std::shared_ptr<Batch>& batch) {
  const bool is_request = message.is(rpc::Kind::request);
  const std::size_t limit = options_.limits.max_requests_in_progress;
  if (in_progress_.size() >= limit) {
    return turn_away(
        message, "max_requests_in_progress (" + std::to_string(limit) + ") requests are under way", batch);
  }
  ByteCharge charge(connection_->account());
  const ChargeOutcome charged = charge.resize(message.frame().size());
  if (charged != ChargeOutcome::charged) return turn_away(message, charge.refusal(charged).message(), batch);
  auto serving = std::make_shared<Serving>();
  serving->charge = std::move(charge);
  serving->key =
      is_request ? std::string(message.id()) : "notification " + std::to_string(++notification_keys_);
  serving->message = message;
  serving->batch = batch;
  const auto [place, is_new] = in_progress_.emplace(serving->key, serving);
  if (!is_new) {
    return refuse(message, rpc::invalid_request("Invalid Request: a request with this id is under way"),
                  batch);
  }
  idle_.reset();
  if (handler.blocking) {
    serve_blocking(handler, serving);
  } else {
    loop().spawn(serve(shared_from_this(), std::move(serving), handler));
  }
}

// A message that a limit leaves no room for: a request is answered, a notification dropped.
void Peer::turn_away(const rpc::Message& message, const std::string& why,
                     const std::shared_ptr<Batch>& batch) {
  if (message.is(rpc::Kind::request)) return refuse(message, busy(why), batch);
  fault_log_.write(options_.log, LogLevel::warning, "notification dropped",
                   {{"method", message.method()}, {"reason", why}});
}

Task<void> Peer::serve(std::shared_ptr<Peer> self, std::shared_ptr<Serving> serving,
                       const Methods::Handler& handler) {
  std::optional<Answer> result;
  try {
    Task<Answer> task = handler.coroutine(Request(self, serving->message, serving->stop.get_token()));
    result = co_await task;
  } catch (const std::exception& thrown) {
    self->options_.log.error("handler threw",
                             {{"method", std::string(serving->message.method())}, {"what", thrown.what()}});
  } catch (...) {
    self->options_.log.error("handler threw", {{"method", std::string(serving->message.method())}});
  }
  if (!result) result = Error::rpc(rpc::kInternalError, "Internal error");
  self->finish_serving(serving, *result);
}

void Peer::serve_blocking(const Methods::Handler& handler, const std::shared_ptr<Serving>& serving) {
  if (!options_.workers) {
    options_.log.error("a blocking handler needs PeerOptions::workers",
                       {{"method", std::string(serving->message.method())}});
    return finish_serving(serving, Error::rpc(rpc::kInternalError, "Internal error"));
  }
  auto job = [self = shared_from_this(), serving, &handler]() mutable {
    Answer result = self->run_plain(handler, Request(self, serving->message, serving->stop.get_token()));
    // Back to the loop before letting go, so that the peer is never destroyed on this thread.
    Loop& home = self->loop();
    home.post([self = std::move(self), serving = std::move(serving), result = std::move(result)] {
      self->finish_serving(serving, result);
    });
  };
  const Result<void> submitted = options_.workers->submit(std::move(job));
  if (!submitted) finish_serving(serving, busy(submitted.error().message()));
}

void Peer::finish_serving(const std::shared_ptr<Serving>& serving, const Answer& result) {
  const rpc::Message& message = serving->message;
  in_progress_.erase(serving->key);
  serving->charge.set(0);
  if (options_.log.enabled(options_.request_log_level)) log_request(message, result, serving->started);
  if (message.is(rpc::Kind::request)) {
    if (!serving->cancelled) {
      answer(message.id(), result, serving->batch);
    } else if (options_.dialect.answer_cancelled) {
      answer(message.id(), Error::rpc(rpc::kRequestCancelled, "the request was cancelled"), serving->batch);
    } else if (serving->batch) {
      leave_out(*serving->batch);
    }
  }
  if (in_progress_.empty()) idle_.set();
}

void Peer::answer(std::string_view id, const Answer& result, const std::shared_ptr<Batch>& batch) {
  if (result) return send_answer(id, rpc::make_response(id, *result), batch);
  const rpc::WireError error = rpc::to_wire(result.error());
  // What is kept from the wire is at least in the log.
  if (error.code == rpc::kInternalError && !result.error().detail().rpc_code) {
    error_log_.write(options_.log, LogLevel::error, "request failed",
                     {LogField::json_number("id", id), {"error", result.error().to_string()}});
  }
  send_answer(id, rpc::make_error(id, error.code, error.message, error.data), batch);
}

void Peer::send_answer(std::string_view id, rpc::Rope rope, const std::shared_ptr<Batch>& batch) {
  if (batch) {
    batch->answers.push_back(std::move(rope));
    if (--batch->waiting > 0) return;
    rope = array_of(batch->answers);
  }
  post_answer(rope, Concerning{.request = id, .answers = true});
}

void Peer::post_answer(const rpc::Rope& answer, Concerning concerning) {
  const std::uint64_t begin = connection_->queued_position();
  const Result<void> posted = connection_->post(answer, concerning);
  if (!posted) return options_.log.debug("answer not sent", {{"reason", posted.error().message()}});
  queued_answers_.add(begin, connection_->queued_position());
}

// One of a batch gets no answer: the others do not wait for it.
void Peer::leave_out(Batch& batch) {
  if (--batch.waiting > 0 || batch.answers.empty()) return;
  post_answer(array_of(batch.answers), Concerning());
}

void Peer::on_notification(const rpc::Message& message) {
  ++stats_.notifications;
  if (on_cancel(message) || on_progress(message)) return;
  const Methods::Handler* handler = methods_->find(message.method());
  if (!handler) return options_.log.debug("notification nobody handles", {{"method", message.method()}});
  if (!handler->plain || handler->blocking) return start_serving(*handler, message, nullptr);
  static_cast<void>(run_plain(*handler, Request(shared_from_this(), message)));
}

bool Peer::on_cancel(const rpc::Message& message) {
  if (message.method() != options_.dialect.cancel_method) return false;
  const json::View id = message.param(options_.dialect.cancel_id_key);
  const auto found = in_progress_.find(std::string(id.text()));
  if (found != in_progress_.end()) {
    // Keeps it alive: stopping may finish it.
    const std::shared_ptr<Serving> serving = found->second;
    serving->cancelled = true;
    serving->stop.request_stop();
  }
  return true;
}

void Peer::on_batch(const rpc::Message& message) {
  if (!options_.batches || (options_.batch_now && !options_.batch_now())) {
    const Error refused = rpc::invalid_request("Invalid Request: batches are not allowed here");
    return on_malformed(rpc::Message::malformed(refused, message.frame()), nullptr);
  }
  handled_in_turn_ += message.batch().size();
  auto batch = std::make_shared<Batch>();
  for (const rpc::Message& one : message.batch()) {
    if (may_be_answered(one)) ++batch->waiting;
  }
  for (const rpc::Message& one : message.batch()) {
    switch (one.kind()) {
      case rpc::Kind::request: on_request(one, batch); break;
      case rpc::Kind::malformed: on_malformed(one, batch); break;
      case rpc::Kind::response: on_answer(one, one.lacks_result() ? batch : nullptr); break;
      default: on_message(one); break;
    }
  }
}

// A frame that is no message: noise on the line, or a broken request or answer.
void Peer::on_malformed(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
  ++stats_.noise;
  const Error& problem = message.problem();
  // Noise is a child's usual habit; a frame over the limit may be the answer somebody waits for.
  const LogLevel level = problem.kind() == ErrorKind::frame_too_large ? LogLevel::warning : LogLevel::debug;
  if (options_.log.enabled(level)) {
    fault_log_.write(options_.log, level, "not a message",
                     {{"connection", connection_->description()},
                      {"problem", problem.message()},
                      {"frame", message.frame().view().substr(0, 200)}});
  }
  // An answer that is broken still ends the call it belongs to. Its error is ours now, not one to be answered
  // with.
  const std::optional<std::uint64_t> id = rpc::own_id(message.id());
  if (id && message.method().empty() && !batch) {
    if (rpc::PendingCall* call = in_flight_.take(*id))
      return call->finish(Error(problem.kind(), problem.message()));
  }
  const bool asked = !message.id().empty() && !message.method().empty() &&
                     problem.kind() == ErrorKind::frame_too_large;  // a request, not noise
  if (options_.noise == Noise::answer || batch || asked) {
    answer(message.id().empty() ? "null" : message.id(), problem, batch);
  }
  const std::size_t limit = options_.limits.max_noise_frames;
  if (limit > 0 && ++noise_in_a_row_ > limit && !hang_up_) {
    hang_up_ = Error(ErrorKind::parse, "more than max_noise_frames (" + std::to_string(limit) +
                                           ") frames in a row from " + connection_->description() +
                                           " are no messages");
    options_.log.warning("hanging up", {{"reason", hang_up_->message()}});
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
