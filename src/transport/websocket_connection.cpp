#include "transport/websocket_connection.hpp"

#include <algorithm>

namespace fairlead::transport {

namespace {

// Frames of one connection that are handled per turn while no other client waits.
constexpr int kFramesPerTurn = 64;

}  // namespace

std::shared_ptr<WebSocketConnection> WebSocketConnection::create(Loop& loop,
                                                                 std::unique_ptr<ByteStream> stream,
                                                                 std::string read_ahead, websocket::Role role,
                                                                 Limits limits,
                                                                 std::chrono::milliseconds ping_interval) {
  std::string name = "websocket " + stream->remote_name();
  std::shared_ptr<WebSocketConnection> connection(
      new WebSocketConnection(loop, std::move(stream), std::move(name), role, limits, ping_interval));
  connection->decoder_.feed(read_ahead);
  // Starts to read even if no receiver waits, because pings and close frames need a reply.
  connection->may_have_frames_ = true;
  connection->pump_.run_turn_soon();
  if (ping_interval.count() > 0)
    connection->ping_timer_.arm_after(ping_interval, [raw = connection.get()] { raw->on_ping_timer(); });
  return connection;
}

WebSocketConnection::WebSocketConnection(Loop& loop, std::unique_ptr<ByteStream> stream, std::string name,
                                         websocket::Role role, Limits limits,
                                         std::chrono::milliseconds ping_interval)
    : Connection(loop),
      role_(role),
      limits_(limits),
      ping_interval_(ping_interval),
      decoder_(role, limits.max_frame_bytes),
      ping_timer_(loop),
      pump_(loop, *this, queue_, std::move(stream), std::move(name), limits.write_stall) {}

// ---- reading -------------------------------------------------------------------------------------------

void WebSocketConnection::request_input() {
  if (!pump_.in_turn()) wait_for_input();
}

// Schedules the next turn of reading. Reads nothing while the receiver has messages to process.
void WebSocketConnection::wait_for_input() {
  if (input_ended_ || close_reason() || receiver_lags()) return;
  if (may_have_frames_)
    return fair_queue_client_ ? pump_.run_turn_in_fair_queue(fair_queue_client_) : pump_.run_turn_soon();
  pump_.wait_for_input();
}

// Reads and decodes once. Returns whether the turn continues; a turn handles up to kFramesPerTurn frames.
bool WebSocketConnection::read_once() {
  if (input_ended_) return false;
  if (!may_have_frames_ && !read_some()) return false;
  may_have_frames_ = !decode();
  wake_receiver();
  pump_.flush();
  return !may_have_frames_ && !receiver_lags();
}

void WebSocketConnection::on_turn_end() {
  frames_in_turn_ = 0;
  wait_for_input();
}

void WebSocketConnection::on_out_of_memory() {
  close_with(websocket::kTryAgainLater,
             Error(ErrorKind::resource_exhausted, "resource exhausted: out of memory"));
}

// Reads once. Returns whether bytes were passed to the decoder.
bool WebSocketConnection::read_some() {
  std::span<char> scratch = loop().scratch_buffer();
  scratch = scratch.first(std::min(scratch.size(), StreamPump::kBytesPerTurn));
  const ByteStream::IoResult io = pump_.read(scratch);
  if (io.status == ByteStream::IoStatus::again) return false;
  if (io.status != ByteStream::IoStatus::ok) {
    input_ended_ = true;
    fail(io.error ? *io.error : Error(ErrorKind::closed, description() + " closed the connection"));
    return false;
  }
  received_since_ping_ = true;
  const ChargeOutcome charged = input_charge_.resize(decoder_.buffered_bytes() + io.bytes);
  if (charged != ChargeOutcome::charged) {
    close_with(websocket::kTryAgainLater, input_charge_.refusal_error(charged));
    return false;
  }
  decoder_.feed(std::string_view(scratch.data(), io.bytes));
  return true;
}

// Returns whether the connection has handled as many frames as it may in one turn: one, while messages of
// other clients wait.
bool WebSocketConnection::turn_is_over() noexcept {
  const bool others_wait = fair_queue_client_ && !loop().fair_queue().empty();
  return frames_in_turn_ >= (others_wait ? 1 : kFramesPerTurn);
}

// Decodes and handles frames. Returns false if the turn is over and the decoder may contain more frames.
bool WebSocketConnection::decode() {
  while (!input_ended_ && !close_reason()) {
    if (turn_is_over() && decoder_.buffered_bytes() > 0) return false;
    websocket::Decoder::Event event = decoder_.next();
    if (event.type == websocket::Decoder::EventType::need_more) break;
    ++frames_in_turn_;
    handle_event(std::move(event));
  }
  input_charge_.set(decoder_.buffered_bytes());
  return true;
}

void WebSocketConnection::handle_event(websocket::Decoder::Event event) {
  using EventType = websocket::Decoder::EventType;
  switch (event.type) {
    case EventType::message: return deliver_frame(Bytes::adopt(std::move(event.payload)), limits_);
    case EventType::ping:
      // The condition limits the queue if the remote peer sends pings and does not read the replies.
      if (queue_.unwritten_bytes() < limits_.backlog_pause_bytes)
        queue_.put(websocket::control_frame(role_, websocket::Opcode::pong, event.payload));
      return pump_.flush_soon();
    case EventType::closed: {
      const bool normal = event.code == websocket::kNormalClosure || event.code == websocket::kGoingAway ||
                          event.code == websocket::kNoStatus;
      const std::string detail = normal ? "" : " (" + std::to_string(event.code) + " " + event.payload + ")";
      return close_with(event.code,
                        Error(ErrorKind::closed, description() + " closed the connection" + detail));
    }
    case EventType::failed:
      return close_with(event.code, Error(event.code == websocket::kMessageTooBig ? ErrorKind::frame_too_large
                                                                                  : ErrorKind::parse,
                                          description() + ": " + event.payload));
    case EventType::pong:
    case EventType::need_more: return;
  }
}

void WebSocketConnection::close_with(std::uint16_t code, Error reason) {
  input_ended_ = true;
  send_close_frame(code, code == websocket::kTryAgainLater ? reason.message() : std::string());
  fail(std::move(reason));
}

// Queues the close frame and writes as much of the queue as the socket accepts at once. Sends nothing if the
// socket is not writable.
void WebSocketConnection::send_close_frame(std::uint16_t code, std::string_view reason) {
  if (!pump_.is_open() || pump_.output_blocked()) return;
  queue_.put(websocket::close_frame(role_, code, reason));
  pump_.finish_output();
}

// ---- writing -------------------------------------------------------------------------------------------

void WebSocketConnection::charge_to(const std::shared_ptr<ByteAccount>& account) {
  set_account(account);
  fair_queue_client_ = account.get();
  input_charge_ = ByteCharge(account);
  input_charge_.set(decoder_.buffered_bytes());
  output_charge_ = ByteCharge(account);
}

// Charges a message to the client. If a response exceeds the budget, the connection is closed, because the
// client would wait for that response forever.
Result<void> WebSocketConnection::charge_output(std::size_t bytes, bool is_response) {
  const ChargeOutcome charged = output_charge_.resize(queue_.unwritten_bytes() + bytes);
  if (charged == ChargeOutcome::charged) return {};
  const Error refused = output_charge_.refusal_error(charged);
  if (is_response) {
    loop().post([connection = self(), refused] {
      if (!connection->close_reason()) connection->close_with(websocket::kTryAgainLater, refused);
    });
  }
  return refused;
}

Result<void> WebSocketConnection::enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                                          RelatedRequest related_request) {
  Result<void> charged = charge_output(message.size(), related_request.message_is_response);
  if (!charged) return charged;
  websocket::text_frame(role_, message).each([&](const Bytes& part) { queue_.put(part); });
  if (waiter) waiter->until = queue_.queued_position();
  pump_.flush_soon();
  return {};
}

std::uint64_t WebSocketConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queue_.queued_position() - std::min<std::uint64_t>(bytes, queue_.queued_position());
}

void WebSocketConnection::on_written() {
  output_charge_.set(queue_.unwritten_bytes());
  if (!close_reason()) notify_written(queue_.written_position());
}

void WebSocketConnection::on_ping_timer() {
  if (!std::exchange(received_since_ping_, false)) {
    return fail(Error::timeout(description() + ": ping", ping_interval_));
  }
  queue_.put(websocket::control_frame(role_, websocket::Opcode::ping, {}));
  pump_.flush_soon();
  ping_timer_.arm_after(ping_interval_, [this] { on_ping_timer(); });
}

void WebSocketConnection::release() {
  ping_timer_.cancel();
  input_charge_.set(0);
  output_charge_.set(0);
  if (on_ended_) std::exchange(on_ended_, nullptr)();
  if (!input_ended_) send_close_frame(websocket::kNormalClosure);  // close() was called, not the remote peer
  pump_.close();
}

}  // namespace fairlead::transport
