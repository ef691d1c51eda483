#include "transport/websocket_connection.hpp"

#include <algorithm>

namespace fairlead::transport {

namespace {

// Frames that a turn handles while no other client waits.
constexpr int kFramesPerTurn = 64;

}  // namespace

std::shared_ptr<WebSocketConnection> WebSocketConnection::create(Loop& loop,
                                                                 std::unique_ptr<ByteStream> stream,
                                                                 std::string early, websocket::Role role,
                                                                 Limits limits,
                                                                 std::chrono::milliseconds keep_alive) {
  std::string name = "websocket " + stream->remote();
  std::shared_ptr<WebSocketConnection> made(
      new WebSocketConnection(loop, std::move(stream), std::move(name), role, limits, keep_alive));
  made->decoder_.feed(early);
  // Read from the start, not only when somebody receives: pings want their answer, and so does a close.
  made->undecoded_ = true;
  made->pump_.run_soon();
  if (keep_alive.count() > 0) made->heart_.arm_after(keep_alive, [it = made.get()] { it->beat(); });
  return made;
}

WebSocketConnection::WebSocketConnection(Loop& loop, std::unique_ptr<ByteStream> stream, std::string name,
                                         websocket::Role role, Limits limits,
                                         std::chrono::milliseconds keep_alive)
    : Connection(loop),
      role_(role),
      limits_(limits),
      keep_alive_(keep_alive),
      decoder_(role, limits.max_frame_bytes),
      heart_(loop),
      pump_(loop, *this, queue_, std::move(stream), std::move(name), limits.write_stall) {}

// ---- reading ---------------------------------------------------------------------------------------------

void WebSocketConnection::want_input() {
  if (!pump_.in_turn()) wait_for_input();
}

// While the receiver lags behind, nothing more is read than it can bear.
void WebSocketConnection::wait_for_input() {
  if (input_ended_ || reason() || receiver_lags()) return;
  if (undecoded_) return client_ ? pump_.run_in_turn_of(client_) : pump_.run_soon();
  pump_.wait_for_input();
}

// One step of a turn, which handles up to kFramesPerTurn frames.
bool WebSocketConnection::read_once() {
  if (input_ended_) return false;
  if (!undecoded_ && !read_some()) return false;
  undecoded_ = !decode();
  wake_receiver();
  pump_.flush();
  return !undecoded_ && !receiver_lags();
}

void WebSocketConnection::on_turn_end() {
  frames_in_turn_ = 0;
  wait_for_input();
}

void WebSocketConnection::on_out_of_memory() {
  hang_up(websocket::kTryAgainLater,
          Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory"));
}

// Returns whether bytes were fed to the decoder.
bool WebSocketConnection::read_some() {
  std::span<char> scratch = loop().scratch();
  scratch = scratch.first(std::min(scratch.size(), StreamPump::kBytesPerTurn));
  const ByteStream::Io io = pump_.read(scratch);
  if (io.state == ByteStream::State::again) return false;
  if (io.state != ByteStream::State::ok) {
    input_ended_ = true;
    fail(io.error ? *io.error : Error(ErrorKind::closed, description() + " closed the connection"));
    return false;
  }
  heard_ = true;
  const ChargeOutcome charged = input_charge_.resize(decoder_.buffered() + io.bytes);
  if (charged != ChargeOutcome::charged) {
    hang_up(websocket::kTryAgainLater, input_charge_.refusal(charged));
    return false;
  }
  decoder_.feed(std::string_view(scratch.data(), io.bytes));
  return true;
}

// Where messages of other clients wait, each connection handles one at a time.
bool WebSocketConnection::turn_is_over() noexcept {
  const bool others_wait = client_ && !loop().fair().empty();
  return frames_in_turn_ >= (others_wait ? 1 : kFramesPerTurn);
}

// Returns false when the turn has decoded its frames and there may be more in the decoder.
bool WebSocketConnection::decode() {
  while (!input_ended_ && !reason()) {
    if (turn_is_over() && decoder_.buffered() > 0) return false;
    websocket::Decoder::Step step = decoder_.next();
    if (step.what == websocket::Decoder::What::more) break;
    ++frames_in_turn_;
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
      return pump_.flush_soon();
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
  if (!pump_.open() || pump_.blocked()) return;
  queue_.put(websocket::close_frame(role_, code, why));
  pump_.finish_output();
}

// ---- writing ---------------------------------------------------------------------------------------------

void WebSocketConnection::charge_to(const std::shared_ptr<ByteAccount>& account) {
  set_account(account);
  client_ = account.get();
  input_charge_ = ByteCharge(account);
  input_charge_.set(decoder_.buffered());
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
  pump_.flush_soon();
  return {};
}

std::uint64_t WebSocketConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queue_.pushed() - std::min<std::uint64_t>(bytes, queue_.pushed());
}

void WebSocketConnection::on_written() {
  output_charge_.set(queue_.bytes());
  if (!reason()) notify_written(queue_.written());
}

void WebSocketConnection::beat() {
  if (!std::exchange(heard_, false)) {
    return fail(Error::timeout(description() + " has not been heard of; the last ping", keep_alive_));
  }
  queue_.put(websocket::control_frame(role_, websocket::Opcode::ping, {}));
  pump_.flush_soon();
  heart_.arm_after(keep_alive_, [this] { beat(); });
}

void WebSocketConnection::release() {
  heart_.cancel();
  input_charge_.set(0);
  output_charge_.set(0);
  if (ended_) std::exchange(ended_, nullptr)();
  if (!input_ended_) say_goodbye(websocket::kNormal);  // it was we who closed
  pump_.close();
}

}  // namespace fairlead::transport
