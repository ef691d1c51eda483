#include "transport/modern_request.hpp"

#include "fairlead/rpc/codes.hpp"
#include "http/sse.hpp"
#include "peer/log_exception.hpp"

namespace fairlead::transport {

ModernRequest::ModernRequest(std::shared_ptr<http::Exchange> exchange, rpc::Message message,
                             const EndpointOptions& options)
    : loop_(exchange->loop()),
      exchange_(std::move(exchange)),
      message_(std::move(message)),
      principal_(exchange_->request().principal),
      log_(options.log),
      timeout_(options.request_timeout),
      keep_alive_(options.keep_alive),
      accepted_types_(HeaderFacts::of(exchange_->request()).accepted_types) {}

void ModernRequest::start(const std::shared_ptr<ModernRequest>& request,
                          const std::shared_ptr<Application>& application, Ticker& ticker) {
  if (!request->serve_directly(application)) request->loop_.spawn(run(request, application));
  if (!request->exchange_) return;
  request->started_at_ = request->loop_.now();
  ticker.add(*request);
  request->exchange_->when_disconnected([weak = request->weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel();
  });
}

bool ModernRequest::serve_directly(const std::shared_ptr<Application>& application) {
  const auto self = shared_from_this();
  try {
    return application->serve_directly(self, self);
  } catch (...) {
    log_handler_exception(log_, message_.method());
  }
  finish(Error::rpc(rpc::kInternalError, "Internal error"));
  return true;
}

Task<void> ModernRequest::run(std::shared_ptr<ModernRequest> self, std::shared_ptr<Application> application) {
  std::optional<Answer> answer;
  try {
    answer = co_await application->serve(self);
  } catch (...) {
    log_handler_exception(self->log_, self->message_.method());
  }
  if (!answer) answer = Error::rpc(rpc::kInternalError, "Internal error");
  self->finish(*answer);
}

void ModernRequest::notify(rpc::Rope notification) {
  // A client that accepts only JSON receives only the response.
  if (!exchange_ || !accepted_types_.events) return;
  idle_since_tick_ = false;
  write_event(http::sse::message_event(notification));
}

void ModernRequest::write_event(std::vector<Bytes> event) {
  const std::shared_ptr<http::Exchange> exchange = exchange_;  // write() may clear exchange_
  if (!std::exchange(streaming_, true)) exchange->start(http::sse::response_head());
  exchange->write(std::move(event));
}

void ModernRequest::finish(const Answer& answer) {
  if (!exchange_) return;
  if (answer) return send_response(200, rpc::make_response(message_.id(), *answer));
  const rpc::WireError error = rpc::to_wire(answer.error());
  if (error.code == rpc::kInternalError)
    log_.error("request failed",
               {{"method", std::string(message_.method())}, {"error", answer.error().to_string()}});
  send_response(http_status_for(error.code),
                rpc::make_error(message_.id(), error.code, error.message, error.data));
}

void ModernRequest::send_response(int status, const rpc::Rope& response) {
  const std::shared_ptr<http::Exchange> exchange = std::move(exchange_);
  if (streaming_) {
    exchange->write(http::sse::message_event(response));
    exchange->finish();
  } else if (accepted_types_.json || !accepted_types_.events) {
    http::respond_with_json(*exchange, status, response);
  } else {
    exchange->start(http::sse::response_head());
    exchange->write(http::sse::message_event(response));
    exchange->finish();
  }
}

void ModernRequest::cancel() {
  const auto self = shared_from_this();
  exchange_ = nullptr;
  stop_.request_stop();
}

void ModernRequest::on_tick(Clock::time_point now) {
  if (!exchange_) return;
  const auto self = shared_from_this();
  if (timeout_.count() > 0 && now - started_at_ > timeout_) {
    log_.warning("request timed out: request_timeout exceeded", {{"method", std::string(message_.method())}});
    send_response(200, rpc::make_error(message_.id(), rpc::kInternalError,
                                       "no response within request_timeout (" +
                                           std::to_string(timeout_.count()) + " ms)"));
    stop_.request_stop();
  } else if (accepted_types_.events && (streaming_ || now - started_at_ > keep_alive_) &&
             std::exchange(idle_since_tick_, true)) {
    // The comment is sent because a proxy may close a connection that is idle for too long.
    write_event(http::sse::keep_alive_comment());
  }
}

}  // namespace fairlead::transport
