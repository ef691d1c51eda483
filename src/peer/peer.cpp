#include "fairlead/peer/peer.hpp"

#include <algorithm>

#include "peer/serving.hpp"

namespace fairlead {

namespace {

// Messages handled before other users of the loop have their turn. Those of a batch count one by one.
constexpr std::size_t kMessagesPerTurn = 1000;

// co_await: the rest of the coroutine runs after what else is due on the loop.
class YieldToLoop {
 public:
  explicit YieldToLoop(Loop& loop) noexcept : loop_(loop) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const {
    loop_.post([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  Loop& loop_;
};

}  // namespace

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

// Never waits for a handler: a slow request delays nobody. It pauses only while the other side does not read
// its answers (must_pause()).
Task<void> Peer::read_loop(std::shared_ptr<Peer> self) {
  Connection& connection = *self->connection_;
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
    if (self->must_pause()) {
      Task<void> pause = pause_reading(self);
      co_await pause;
    }
    if (self->handled_in_turn_ >= kMessagesPerTurn) {
      self->handled_in_turn_ = 0;
      co_await YieldToLoop(connection.loop());
    }
  }
  Task<void> rest = wind_down(self);
  co_await rest;
}

// Answers that the other side does not read stop us from reading its requests. While a call of ours waits, we
// read on: the other side may be in the same position, and each would wait for the other to read.
// on_request() refuses requests then, over max_backlog_bytes. Only a side that lets the refusals pile up too
// is not read from at all; write_stall ends that.
bool Peer::must_pause() {
  const Limits& limits = options_.limits;
  if (connection_->backlog() <= limits.backlog_pause_bytes || closed()) return false;
  const std::size_t queued = queued_answer_bytes();
  if (queued > 2 * std::max(limits.max_backlog_bytes, limits.backlog_pause_bytes)) return true;
  return queued > limits.backlog_pause_bytes && in_flight_.size() == 0;
}

// Ends when half of the answers have left, or when a call is made (begin()).
Task<void> Peer::pause_reading(std::shared_ptr<Peer> self) {
  bool paused = true;
  while (paused) {
    self->may_read_.reset();
    if (!std::exchange(self->awaiting_drain_, true)) self->loop().spawn(resume_when_drained(self));
    const bool resumed = co_await self->may_read_.wait(self->loop(), Clock::duration::max());
    static_cast<void>(resumed);
    paused = self->must_pause();
  }
}

Task<void> Peer::resume_when_drained(std::shared_ptr<Peer> self) {
  const std::uint64_t resume_at =
      self->queued_answers_.position_at(self->options_.limits.backlog_pause_bytes / 2);
  const std::uint64_t queued = self->connection_->queued_position();
  const std::size_t left = static_cast<std::size_t>(queued - std::min(queued, resume_at));
  const Result<void> drained = co_await self->connection_->drained(left);
  static_cast<void>(drained);  // where it failed the connection is closed, and receive() says why
  self->awaiting_drain_ = false;
  self->may_read_.set();
}

std::size_t Peer::queued_answer_bytes() {
  const std::uint64_t queued = connection_->queued_position();
  return queued_answers_.bytes(queued - std::min<std::uint64_t>(queued, connection_->backlog()));
}

void Peer::on_message(const rpc::Message& message) {
  ++handled_in_turn_;
  if (!message.is(rpc::Kind::malformed)) noise_in_a_row_ = 0;
  switch (message.kind()) {
    case rpc::Kind::request: return on_request(message, nullptr);
    case rpc::Kind::notification: return on_notification(message);
    case rpc::Kind::response:
    case rpc::Kind::error: return on_answer(message, nullptr);
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
    options_.log.warning("requests still under way after drain_grace are given up",
                         {{"connection", connection_->description()}, {"requests", in_progress_.size()}});
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
  if (!options.request_for_id)
    options.request_for_id = [request](std::string_view id) { return rpc::with_id(request, id); };
  return Forward(shared_from_this(), request.method(), std::move(options));
}

Peer::Forward Peer::forward(std::string_view method, CallOptions options) {
  return Forward(shared_from_this(), method, std::move(options));
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
