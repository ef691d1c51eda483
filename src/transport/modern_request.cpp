#include "transport/modern_request.hpp"

#include "fairlead/rpc/codes.hpp"
#include "http/sse.hpp"

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
      accepts_(accepts_of(exchange_->request().headers)) {}

void ModernRequest::serve(const std::shared_ptr<ModernRequest>& request,
                          const std::shared_ptr<Application>& application, Ticker& ticker) {
  request->loop_.spawn(run(request, application));
  if (!request->exchange_) return;
  request->since_ = Clock::now();
  ticker.add(*request);
  request->exchange_->when_gone([weak = request->weak_from_this()] {
    if (const auto self = weak.lock()) self->give_up();
  });
}

Task<void> ModernRequest::run(std::shared_ptr<ModernRequest> self, std::shared_ptr<Application> application) {
  std::optional<Answer> answer;
  try {
    Task<Answer> serving = application->serve(self);
    answer = co_await serving;
  } catch (const std::exception& thrown) {
    self->log_.error("handler threw",
                     {{"method", std::string(self->message_.method())}, {"what", thrown.what()}});
  } catch (...) {
    self->log_.error("handler threw", {{"method", std::string(self->message_.method())}});
  }
  if (!answer) answer = Error::rpc(rpc::kInternalError, "Internal error");
  self->finish(*answer);
}

void ModernRequest::notify(rpc::Rope notification) {
  // A client that takes JSON only gets the answer only.
  if (!exchange_ || !accepts_.events) return;
  quiet_ = false;
  write_event(http::sse::message(notification));
}

void ModernRequest::write_event(std::vector<Bytes> event) {
  const std::shared_ptr<http::Exchange> exchange = exchange_;  // writing may find that the client has gone
  if (!std::exchange(started_, true)) exchange->start(http::sse::head());
  exchange->write(std::move(event));
}

void ModernRequest::finish(const Answer& answer) {
  if (!exchange_) return;
  if (answer) return send_last(200, rpc::make_response(message_.id(), *answer));
  const rpc::WireError error = rpc::to_wire(answer.error());
  if (error.code == rpc::kInternalError)
    log_.error("request failed",
               {{"method", std::string(message_.method())}, {"error", answer.error().to_string()}});
  send_last(status_of(error.code), rpc::make_error(message_.id(), error.code, error.message, error.data));
}

void ModernRequest::send_last(int status, const rpc::Rope& answer) {
  const std::shared_ptr<http::Exchange> exchange = std::move(exchange_);
  if (started_) {
    exchange->write(http::sse::message(answer));
    exchange->finish();
  } else if (accepts_.json || !accepts_.events) {
    exchange->respond(http::json_response(status, answer));
  } else {
    exchange->start(http::sse::head());
    exchange->write(http::sse::message(answer));
    exchange->finish();
  }
}

void ModernRequest::give_up() {
  const auto self = shared_from_this();
  exchange_ = nullptr;
  stop_.request_stop();
}

void ModernRequest::tick(Clock::time_point now) {
  if (!exchange_) return;
  const auto self = shared_from_this();
  if (timeout_.count() > 0 && now - since_ > timeout_) {
    log_.warning("request_timeout passed", {{"method", std::string(message_.method())}});
    send_last(200, rpc::make_error(
                       message_.id(), rpc::kInternalError,
                       "no answer within request_timeout (" + std::to_string(timeout_.count()) + " ms)"));
    stop_.request_stop();
  } else if (accepts_.events && (started_ || now - since_ > keep_alive_) && std::exchange(quiet_, true)) {
    // What lies between us and the client may take a long silence for the end.
    write_event(http::sse::comment());
  }
}

}  // namespace fairlead::transport
