#include "transport/http_sse_session.hpp"

#include "http/sse.hpp"
#include "transport/request_rules.hpp"

namespace fairlead::transport {

void HttpSseSession::open(std::shared_ptr<http::Exchange> exchange, const std::string& messages_uri) {
  exchange_ = std::move(exchange);
  set_account(exchange_->account());
  exchange_->when_disconnected([weak = weak_from_this()] {
    if (const auto self = weak.lock())
      static_cast<HttpSseSession&>(*self).fail(Error(ErrorKind::closed, "the client has closed its stream"));
  });
  exchange_->start(http::sse::response_head());
  exchange_->write(http::sse::endpoint_event(messages_uri));
}

void HttpSseSession::handle_post(const std::shared_ptr<http::Exchange>& exchange,
                                 const rpc::Message& message) {
  const auto self = shared_from_this();
  exchange->respond(http::Response::text(202, "Accepted"));
  deliver(message);
  wake_receiver();
}

Result<void> HttpSseSession::enqueue(const rpc::Rope& message, WriteWaiter* waiter, RelatedRequest) {
  ++sent_count_;
  if (waiter) {
    waiter->until = sent_count_;
    loop().post([self = shared_from_this(), position = sent_count_] {
      static_cast<HttpSseSession&>(*self).notify_written(position);
    });
  }
  idle_since_tick_ = false;
  const std::shared_ptr<http::Exchange> exchange = exchange_;  // write() may clear exchange_
  if (exchange) exchange->write(http::sse::message_event(message));
  return {};
}

void HttpSseSession::on_tick(Clock::time_point) {
  const std::shared_ptr<http::Exchange> exchange = exchange_;
  if (exchange && std::exchange(idle_since_tick_, true)) exchange->write(http::sse::keep_alive_comment());
}

void HttpSseSession::release() {
  if (on_ended_) std::exchange(on_ended_, nullptr)(id_);
  binding_.application = nullptr;
  if (const std::shared_ptr<http::Exchange> exchange = std::move(exchange_);
      exchange && !exchange->disconnected())
    exchange->finish();
}

}  // namespace fairlead::transport
