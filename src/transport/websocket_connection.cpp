#include "transport/websocket_connection.hpp"

#include <algorithm>

namespace fairlead::transport {

namespace {

// Frames that are handled before the other callbacks of the loop run.
constexpr int kFramesPerTurn = 512;

}  // namespace

std::shared_ptr<WebSocketConnection> WebSocketConnection::create(Loop& loop,
                                                                 std::unique_ptr<ByteStream> stream,
                                                                 std::string early, websocket::Role role,
                                                                 Limits limits,
                                                                 std::chrono::milliseconds keep_alive) {
  std::shared_ptr<WebSocketConnection> made(
      new WebSocketConnection(loop, std::move(stream), role, limits, keep_alive));
  made->decoder_.feed(early);
  // Read from the start, not only when somebody receives: pings want their answer, and so does a close.
  made->undecoded_ = true;
  made->pump_soon();
  if (keep_alive.count() > 0) made->heart_.arm_after(keep_alive, [it = made.get()] { it->beat(); });
  return made;
}

WebSocketConnection::WebSocketConnection(Loop& loop, std::unique_ptr<ByteStream> stream,
                                         websocket::Role role, Limits limits,
                                         std::chrono::milliseconds keep_alive)
    : Connection(loop),
      stream_(std::move(stream)),
      remote_(stream_->remote()),
      role_(role),
      limits_(limits),
      keep_alive_(keep_alive),
      decoder_(role, limits.max_frame_bytes),
      heart_(loop),
      stall_(loop, limits.write_stall, [this] { on_stall(); }) {}

// ---- reading ---------------------------------------------------------------------------------------------

void WebSocketConnection::want_input() {
  if (!pumping_) wait_for_input();
}

// While the receiver lags behind, nothing more is read than it can bear.
void WebSocketConnection::wait_for_input() {
  if (!stream_ || input_ended_ || reason()) return;
  if (!inbox_empty() && !receiver_waiting()) return;
  if (undecoded_) return pump_soon();
  if (!stream_->waiting_to_read()) stream_->when_readable([me = self()] { me->pump(); });
}

void WebSocketConnection::pump_soon() {
  if (std::exchange(pump_posted_, true)) return;
  loop().post([me = self()] {
    me->pump_posted_ = false;
    me->pump();
  });
}

// One turn: reads and decodes up to kReadsPerTurn times, kBytesPerTurn bytes and kFramesPerTurn frames.
void WebSocketConnection::pump() {
  const auto me = self();
  pumping_ = true;
  try {
    read_frames();
  } catch (const std::bad_alloc&) {
    hang_up(websocket::kTryAgainLater,
            Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory"));
  }
  pumping_ = false;
  // flush() wakes senders, and what they send next was queued behind the last flush.
  if (!queue_.empty()) flush_soon();
  wait_for_input();
}

void WebSocketConnection::read_frames() {
  std::size_t bytes = 0;
  int frames = kFramesPerTurn;
  for (int round = 0; round < http::kReadsPerTurn && bytes < http::kBytesPerTurn && stream_ && !input_ended_;
       ++round) {
    if (!undecoded_) {
      const std::size_t got = read_once();
      if (got == 0) break;
      bytes += got;
    }
    undecoded_ = !decode(frames);
    wake_receiver();
    flush();
    if (undecoded_ || (!inbox_empty() && !receiver_waiting())) break;
  }
}

// Returns how many bytes were fed to the decoder; 0 when there are none now, or no more.
std::size_t WebSocketConnection::read_once() {
  std::span<char> scratch = loop().scratch();
  scratch = scratch.first(std::min(scratch.size(), http::kBytesPerTurn));
  const ByteStream::Io io = stream_->read(scratch);
  if (io.state == ByteStream::State::again) return 0;
  if (io.state != ByteStream::State::ok) {
    input_ended_ = true;
    fail(io.error ? *io.error : Error(ErrorKind::closed, description() + " closed the connection"));
    return 0;
  }
  heard_ = true;
  const ChargeOutcome charged = input_charge_.resize(decoder_.buffered() + io.bytes);
  if (charged != ChargeOutcome::charged) {
    hang_up(websocket::kTryAgainLater, input_charge_.refusal(charged));
    return 0;
  }
  decoder_.feed(std::string_view(scratch.data(), io.bytes));
  return io.bytes;
}

// Returns false when `frames` are used up and there may be more in the decoder.
bool WebSocketConnection::decode(int& frames) {
  while (!input_ended_ && !reason()) {
    if (frames-- <= 0) return false;
    websocket::Decoder::Step step = decoder_.next();
    if (step.what == websocket::Decoder::What::more) break;
    take(std::move(step));
  }
  input_charge_.set(decoder_.buffered());
  return true;
}

void WebSocketConnection::take(websocket::Decoder::Step step) {
  using What = websocket::Decoder::What;
  switch (step.what) {
    case What::message: return deliver_frame(Bytes::adopt(std::move(step.payload)), limits_);
    case What::ping:
      // One who sends pings and reads nothing gets no more answers than fit.
      if (queue_.bytes() < limits_.backlog_pause_bytes)
        queue_.put(websocket::control_frame(role_, websocket::Opcode::pong, step.payload));
      return flush_soon();
    case What::closed: {
      const bool normal = step.code == websocket::kNormal || step.code == websocket::kGoingAway ||
                          step.code == websocket::kNoCode;
      const std::string said = normal ? "" : " (" + std::to_string(step.code) + " " + step.payload + ")";
      return hang_up(step.code, Error(ErrorKind::closed, description() + " closed the connection" + said));
    }
    case What::failed:
      return hang_up(step.code,
                     Error(step.code == websocket::kTooBig ? ErrorKind::frame_too_large : ErrorKind::parse,
                           description() + ": " + step.payload));
    case What::pong:
    case What::more: return;
  }
}

void WebSocketConnection::hang_up(std::uint16_t code, Error reason) {
  input_ended_ = true;
  say_goodbye(code, code == websocket::kTryAgainLater ? reason.message() : std::string());
  fail(std::move(reason));
}

// The last frame there is; what was queued before it leaves with it, if the socket takes it at once.
void WebSocketConnection::say_goodbye(std::uint16_t code, std::string_view why) {
  if (!stream_ || stream_->waiting_to_write()) return;
  queue_.put(websocket::close_frame(role_, code, why));
  static_cast<void>(http::write_queued(*stream_, queue_));
  stream_->shut_output();
}

// ---- writing ---------------------------------------------------------------------------------------------

void WebSocketConnection::charge_to(const std::shared_ptr<ByteAccount>& account) {
  set_account(account);
  input_charge_ = ByteCharge(account);
  output_charge_ = ByteCharge(account);
}

// A client that leaves an answer unread for which there is no room loses its connection: it waits for that
// answer.
Result<void> WebSocketConnection::charge_output(std::size_t bytes, bool answers) {
  const ChargeOutcome charged = output_charge_.resize(queue_.bytes() + bytes);
  if (charged == ChargeOutcome::charged) return {};
  const Error refused = output_charge_.refusal(charged);
  if (answers) {
    loop().post([me = self(), refused] {
      if (!me->reason()) me->hang_up(websocket::kTryAgainLater, refused);
    });
  }
  return refused;
}

Result<void> WebSocketConnection::enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) {
  Result<void> charged = charge_output(message.size(), concerning.answers);
  if (!charged) return charged;
  websocket::text_frame(role_, message).each([&](const Bytes& part) { queue_.put(part); });
  if (waiter) waiter->until = queue_.pushed();
  flush_soon();
  return {};
}

std::uint64_t WebSocketConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queue_.pushed() - std::min<std::uint64_t>(bytes, queue_.pushed());
}

void WebSocketConnection::flush_soon() {
  if (pumping_ || flush_posted_ || !stream_ || stream_->waiting_to_write()) return;
  flush_posted_ = true;
  loop().post([me = self()] {
    me->flush_posted_ = false;
    me->flush();
  });
}

void WebSocketConnection::flush() {
  const auto me = self();
  if (stream_ && !stream_->waiting_to_write()) {
    const std::uint64_t before = queue_.written();
    const ByteStream::Io io = http::write_queued(*stream_, queue_);
    output_charge_.set(queue_.bytes());
    if (io.state == ByteStream::State::again) {
      stall_.blocked(queue_.written() != before);
      stream_->when_writable([me] { me->flush(); });
    } else if (io.state != ByteStream::State::ok) {
      return fail(io.error ? *io.error
                           : Error(ErrorKind::closed, description() + " no longer reads what it is sent"));
    }
  }
  if (queue_.empty()) stall_.flushed();
  if (!reason()) notify_written(queue_.written());
}

void WebSocketConnection::on_stall() {
  fail(Error::timeout(description() + " has not read anything: write_stall; what was sent",
                      limits_.write_stall));
}

void WebSocketConnection::beat() {
  if (!std::exchange(heard_, false)) {
    return fail(Error::timeout(description() + " has not been heard of; the last ping", keep_alive_));
  }
  queue_.put(websocket::control_frame(role_, websocket::Opcode::ping, {}));
  flush_soon();
  heart_.arm_after(keep_alive_, [this] { beat(); });
}

void WebSocketConnection::release() {
  heart_.cancel();
  stall_.stop();
  input_charge_.set(0);
  output_charge_.set(0);
  if (ended_) std::exchange(ended_, nullptr)();
  if (!stream_) return;
  if (!input_ended_) say_goodbye(websocket::kNormal);  // it was we who closed
  stream_->close();
  stream_.reset();
}

}  // namespace fairlead::transport
