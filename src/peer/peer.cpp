#include "fairlead/peer/peer.hpp"

#include <algorithm>

#include "peer/active_request.hpp"

namespace fairlead {

namespace {

// The number of messages after which the read loop yields to the event loop. Each message of a batch counts.
constexpr std::size_t kMessagesPerTurn = 1000;

// co_await: posts the rest of the coroutine, so that it runs after the callbacks queued on the loop.
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
           std::shared_ptr<const PeerSettings> settings, PeerCallbacks callbacks)
    : connection_(std::move(connection)),
      methods_(methods ? std::move(methods) : std::make_shared<const Methods>()),
      settings_(std::move(settings)),
      options_(*settings_),
      callbacks_(std::move(callbacks)),
      deadline_timer_(connection_->loop()) {
  idle_.set();
  in_progress_.max_load_factor(kEntriesWithoutBuckets);
}

std::shared_ptr<Peer> Peer::start(std::shared_ptr<Connection> connection,
                                  std::shared_ptr<const Methods> methods, PeerOptions options) {
  PeerCallbacks callbacks = std::move(static_cast<PeerCallbacks&>(options));
  auto settings = std::make_shared<const PeerSettings>(std::move(static_cast<PeerSettings&>(options)));
  return start(std::move(connection), std::move(methods), std::move(settings), std::move(callbacks));
}

std::shared_ptr<Peer> Peer::start(std::shared_ptr<Connection> connection,
                                  std::shared_ptr<const Methods> methods,
                                  std::shared_ptr<const PeerSettings> settings, PeerCallbacks callbacks) {
  std::shared_ptr<Peer> peer(
      new Peer(std::move(connection), std::move(methods), std::move(settings), std::move(callbacks)));
  peer->connection_->set_on_call_failed([weak = peer->weak_from_this()](std::string_view id, Error reason) {
    if (const auto self = weak.lock()) self->handle_call_failure(id, std::move(reason));
  });
  peer->connection_->set_receive_now(
      [raw = peer.get()](rpc::Message&& message) { return raw->receive_now(std::move(message)); });
  peer->loop().spawn(read_loop(peer));
  return peer;
}

Peer::~Peer() {
  connection_->set_receive_now(nullptr);
}

// Reads and handles messages. Never waits for a handler, so a slow request does not delay others. Pauses only
// while the remote peer does not read its responses (must_pause_reading()).
Task<void> Peer::read_loop(std::shared_ptr<Peer> self) {
  Connection& connection = *self->connection_;
  while (true) {
    co_await connection.wait_received();
    if (!self->handle_received()) break;
    if (self->must_pause_reading()) {
      co_await pause_reading(self);
    }
    if (self->handled_in_turn_ >= kMessagesPerTurn) {
      self->handled_in_turn_ = 0;
      co_await YieldToLoop(connection.loop());
    }
  }
  co_await drain_and_finish(self);
}

// Handles the next message, or the end of the input. Returns whether to continue reading.
bool Peer::handle_received() {
  Result<rpc::Message> message = connection_->pop_received();
  if (message) handle_message(std::move(*message));
  const bool ended = !message || close_reason_;
  if (ended) handle_input_end(message ? *close_reason_ : message.error());
  return !ended;
}

bool Peer::receive_now(rpc::Message&& message) {
  const bool may_end_input = message.is(rpc::Kind::batch) || message.is(rpc::Kind::malformed);
  if (may_end_input || handled_in_turn_ >= kMessagesPerTurn || must_pause_reading()) return false;
  handle_message(std::move(message));
  return true;
}

// Returns whether to stop reading because the remote peer does not read its responses. While a call is in
// flight, reading continues: if both peers stopped reading, each would wait for the other for ever. Then
// handle_request() rejects requests while more than max_backlog_bytes are queued. If the remote peer does not
// read the rejections either, reading stops altogether, until write_stall closes the connection.
bool Peer::must_pause_reading() {
  const Limits& limits = options_.limits;
  if (connection_->backlog() <= limits.backlog_pause_bytes || closed()) return false;
  const std::size_t queued = queued_response_bytes();
  if (queued > 2 * std::max(limits.max_backlog_bytes, limits.backlog_pause_bytes)) return true;
  return queued > limits.backlog_pause_bytes && in_flight_.size() == 0;
}

// Completes when at most half of backlog_pause_bytes of responses are queued, or when a call is made
// (start_call()).
Task<void> Peer::pause_reading(std::shared_ptr<Peer> self) {
  bool paused = true;
  while (paused) {
    self->reading_allowed_.reset();
    if (!std::exchange(self->awaiting_drain_, true)) self->loop().spawn(resume_when_drained(self));
    co_await self->reading_allowed_.wait(self->loop());
    paused = self->must_pause_reading();
  }
}

Task<void> Peer::resume_when_drained(std::shared_ptr<Peer> self) {
  const std::uint64_t resume_at =
      self->queued_responses_.position_leaving(self->options_.limits.backlog_pause_bytes / 2);
  const std::uint64_t queued = self->connection_->queued_position();
  const std::size_t left = static_cast<std::size_t>(queued - std::min(queued, resume_at));
  // A failure is ignored: the connection is closed then, and receive() returns the reason.
  static_cast<void>(co_await self->connection_->wait_drained(left));
  self->awaiting_drain_ = false;
  self->reading_allowed_.set();
}

std::size_t Peer::queued_response_bytes() {
  const std::uint64_t queued = connection_->queued_position();
  return queued_responses_.unwritten_bytes(queued - std::min<std::uint64_t>(queued, connection_->backlog()));
}

void Peer::handle_message(rpc::Message&& message) {
  ++handled_in_turn_;
  if (!message.is(rpc::Kind::malformed)) consecutive_malformed_frames_ = 0;
  switch (message.kind()) {
    case rpc::Kind::request: return handle_request(std::move(message), nullptr);
    case rpc::Kind::notification: return handle_notification(message);
    case rpc::Kind::response:
    case rpc::Kind::error: return handle_response(std::move(message), nullptr);
    case rpc::Kind::batch: return handle_batch(message);
    case rpc::Kind::malformed: return handle_malformed(message, nullptr);
  }
}

void Peer::handle_input_end(const Error& reason) {
  end_reason_ = reason;
  options_.log.debug("input ended",
                     {{"connection", connection_->description()}, {"reason", reason.message()}});
  fail_calls(reason);
  begin_drain();
}

void Peer::begin_drain() {
  shutting_down_ = true;
  if (callbacks_.on_draining) std::exchange(callbacks_.on_draining, nullptr)();
}

// Called when the remote peer has finished sending. The remote peer may still read (pipe, half-closed
// socket), so the requests in progress are finished before the connection is closed.
Task<void> Peer::drain_and_finish(std::shared_ptr<Peer> self) {
  if (!self->closed()) {
    co_await self->shutdown(self->options_.limits.drain_grace);
  }
  // A request that is stopped may finish at once, which removes it from the table.
  std::vector<std::shared_ptr<ActiveRequest>> unfinished;
  for (const auto& [id, request] : self->in_progress_) unfinished.push_back(request);
  for (const auto& request : unfinished) request->stop.request_stop();
  self->finished_.set();
}

Task<void> Peer::shutdown(std::chrono::milliseconds grace) {
  const auto self = shared_from_this();
  const auto until = Clock::now() + grace;
  begin_drain();
  const bool all_done = co_await idle_.wait(loop(), grace);
  if (!all_done) {
    options_.log.warning("drain_grace expired: abandoning the requests in progress",
                         {{"connection", connection_->description()}, {"requests", in_progress_.size()}});
  }
  Timer limit(loop());
  limit.arm(until + std::chrono::milliseconds(100), [this] { connection_->close(); });
  const Result<void> flushed = co_await connection_->wait_drained(0);
  if (!flushed)
    options_.log.debug("closed before all responses were sent", {{"reason", flushed.error().message()}});
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
                                     RelatedRequest related_request) {
  if (connection_->backlog() > options_.limits.max_backlog_bytes) {
    return Error(ErrorKind::resource_exhausted,
                 "max_backlog_bytes (" + std::to_string(options_.limits.max_backlog_bytes) +
                     ") are already queued for " + connection_->description() + ", which does not read them");
  }
  return connection_->post(rpc::make_notification(method, params), related_request);
}

}  // namespace fairlead
