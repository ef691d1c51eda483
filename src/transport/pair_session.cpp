#include "transport/pair_session.hpp"

#include "http/sse.hpp"
#include "transport/request_rules.hpp"

namespace fairlead::transport {

void PairSession::open(std::shared_ptr<http::Exchange> exchange, const std::string& messages_uri) {
  exchange_ = std::move(exchange);
  set_account(exchange_->account());
  exchange_->when_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock())
      static_cast<PairSession&>(*self).fail(Error(ErrorKind::closed, "the client has closed its stream"));
  });
  exchange_->start(http::sse::head());
  exchange_->write(http::sse::endpoint(messages_uri));
}

void PairSession::take_post(const std::shared_ptr<http::Exchange>& exchange, const rpc::Message& message) {
  const auto self = shared_from_this();
  exchange->respond(http::Response::text(202, "Accepted"));
  deliver(message);
  wake_receiver();
}

Result<void> PairSession::enqueue(const rpc::Rope& message, Waiter* waiter, Concerning) {
  ++sent_;
  if (waiter) {
    waiter->until = sent_;
    loop().post([self = shared_from_this(), position = sent_] {
      static_cast<PairSession&>(*self).notify_written(position);
    });
  }
  quiet_ = false;
  const std::shared_ptr<http::Exchange> exchange = exchange_;  // writing may find it gone
  if (exchange) exchange->write(http::sse::message(message));
  return {};
}

void PairSession::tick(Clock::time_point) {
  const std::shared_ptr<http::Exchange> exchange = exchange_;
  if (exchange && std::exchange(quiet_, true)) exchange->write(http::sse::comment());
}

void PairSession::release() {
  if (ended_) std::exchange(ended_, nullptr)(id_);
  if (const std::shared_ptr<http::Exchange> exchange = std::move(exchange_); exchange && !exchange->gone())
    exchange->finish();
}

}  // namespace fairlead::transport
