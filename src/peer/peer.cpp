#include "fairlead/peer/peer.hpp"

#include "peer/serving.hpp"

namespace fairlead {

Peer::Peer(std::shared_ptr<Connection> connection, std::shared_ptr<const Methods> methods,
           PeerOptions options)
    : connection_(std::move(connection)),
      methods_(methods ? std::move(methods) : std::make_shared<const Methods>()),
      options_(std::move(options)),
      deadline_timer_(connection_->loop()) {
  idle_.set();
}

std::shared_ptr<Peer> Peer::start(std::shared_ptr<Connection> connection,
                                  std::shared_ptr<const Methods> methods, PeerOptions options) {
  std::shared_ptr<Peer> peer(new Peer(std::move(connection), std::move(methods), std::move(options)));
  peer->connection_->when_call_fails([weak = peer->weak_from_this()](std::string_view id, Error reason) {
    if (const auto self = weak.lock()) self->on_call_failed(id, std::move(reason));
  });
  peer->loop().spawn(read_loop(peer));
  return peer;
}

// Never waits for a handler: a slow request delays nobody, and answers to our own calls are always read. It
// pauses only while the other side lets its answers pile up.
Task<void> Peer::read_loop(std::shared_ptr<Peer> self) {
  Connection& connection = *self->connection_;
  const std::size_t pause = self->options_.limits.backlog_pause_bytes;
  while (true) {
    Result<rpc::Message> message = co_await connection.receive();
    if (!message) {
      self->on_input_end(message.error());
      break;
    }
    self->on_message(*message);
    if (self->hang_up_) {
      self->on_input_end(*self->hang_up_);
      break;
    }
    if (connection.backlog() > pause) {
      const Result<void> drained = co_await connection.drained(pause / 2);
      if (!drained) continue;  // closed: receive() says so
    }
  }
  Task<void> rest = wind_down(self);
  co_await rest;
}

void Peer::on_message(const rpc::Message& message) {
  if (!message.is(rpc::Kind::malformed)) noise_in_a_row_ = 0;
  switch (message.kind()) {
    case rpc::Kind::request: return on_request(message, nullptr);
    case rpc::Kind::notification: return on_notification(message);
    case rpc::Kind::response:
    case rpc::Kind::error: return on_answer(message);
    case rpc::Kind::batch: return on_batch(message);
    case rpc::Kind::malformed: return on_malformed(message, nullptr);
  }
}

void Peer::on_input_end(const Error& reason) {
  end_reason_ = reason;
  options_.log.debug("input ended",
                     {{"connection", connection_->description()}, {"reason", reason.message()}});
  fail_calls(reason);
  begin_ending();
}

void Peer::begin_ending() {
  shutting_down_ = true;
  if (options_.on_ending) std::exchange(options_.on_ending, nullptr)();
}

// The other side has finished sending. Where it still reads (a pipe, a half-closed socket) the answers it
// waits for are worth finishing.
Task<void> Peer::wind_down(std::shared_ptr<Peer> self) {
  if (!self->closed()) {
    Task<void> orderly = self->shutdown(self->options_.limits.drain_grace);
    co_await orderly;
  }
  for (const auto& [id, serving] : self->in_progress_) serving->stop.request_stop();
  self->finished_.set();
}

Task<void> Peer::shutdown(std::chrono::milliseconds grace) {
  const auto self = shared_from_this();
  const auto until = Clock::now() + grace;
  begin_ending();
  const bool all_done = co_await idle_.wait(loop(), grace);
  if (!all_done) {
    options_.log.warning(
        "requests still under way after drain_grace are given up",
        {{"connection", connection_->description()}, {"requests", std::to_string(in_progress_.size())}});
  }
  Timer limit(loop());
  limit.arm(until + std::chrono::milliseconds(100), [this] { connection_->close(); });
  const Result<void> flushed = co_await connection_->drained(0);
  if (!flushed)
    options_.log.debug("closed before all answers were sent", {{"reason", flushed.error().message()}});
  connection_->close();
}

Peer::Call Peer::call(std::string_view method, json::Raw params, CallOptions options) {
  return Call(shared_from_this(), method, std::move(params), std::move(options));
}

Peer::Forward Peer::forward(rpc::Message request, CallOptions options) {
  return Forward(shared_from_this(), std::move(request), std::move(options));
}

Connection::Send Peer::notify(std::string_view method, const json::Raw& params) {
  return connection_->send(rpc::make_notification(method, params));
}

Result<void> Peer::post_notification(std::string_view method, const json::Raw& params,
                                     Concerning concerning) {
  if (connection_->backlog() > options_.limits.max_backlog_bytes) {
    return Error(ErrorKind::resource_exhausted,
                 "max_backlog_bytes (" + std::to_string(options_.limits.max_backlog_bytes) +
                     ") are queued for " + connection_->description() + " already, which does not read them");
  }
  return connection_->post(rpc::make_notification(method, params), concerning);
}

}  // namespace fairlead
