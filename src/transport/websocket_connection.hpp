// WebSocketConnection: a connection over a WebSocket, as its client or its server. Each text message of the
// WebSocket is one JSON-RPC message. The handshake is complete before the object is created. Private to
// src/transport.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "connection/stream_pump.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/peer/connection.hpp"
#include "http/byte_stream.hpp"
#include "http/websocket.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead::transport {

namespace websocket = http::websocket;

class WebSocketConnection final : public Connection, private StreamPump::Owner {
 public:
  // `read_ahead` has the bytes after the handshake that have already been read from `stream`. The connection
  // sends a ping every `ping_interval`, and fails with `timeout` if nothing was received between two pings.
  // 0: no pings, no timeout.
  static std::shared_ptr<WebSocketConnection> create(Loop& loop, std::unique_ptr<ByteStream> stream,
                                                     std::string read_ahead, websocket::Role role,
                                                     Limits limits, std::chrono::milliseconds ping_interval);

  // Charges incomplete messages from the client, and messages to the client that are not written, to its
  // account. Also makes the connection share the loop fairly with the connections of other clients. Call it
  // in the turn in which the connection is created.
  void charge_to(const std::shared_ptr<ByteAccount>& account);

  // Calls `callback` once, on the loop thread, when the connection has ended.
  void when_ended(std::function<void()> callback) { on_ended_ = std::move(callback); }

  std::size_t backlog() const noexcept override { return queue_.unwritten_bytes(); }
  std::string description() const override { return pump_.name(); }

 private:
  WebSocketConnection(Loop& loop, std::unique_ptr<ByteStream> stream, std::string name, websocket::Role role,
                      Limits limits, std::chrono::milliseconds ping_interval);

  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                       RelatedRequest related_request) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void request_input() override;
  void release() override;

  // StreamPump::Owner.
  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override;
  void on_turn_end() override;
  void on_out_of_memory() override;
  void on_written() override;
  void on_output_failed(Error reason) override { fail(std::move(reason)); }

  std::shared_ptr<WebSocketConnection> self() {
    return std::static_pointer_cast<WebSocketConnection>(shared_from_this());
  }
  void wait_for_input();
  // Returns whether the receiver has messages to process, so that no more should be read.
  bool receiver_lags() const noexcept { return !inbox_empty() && !receiver_waiting(); }
  bool read_some();
  bool decode();
  bool turn_is_over() noexcept;
  void handle_event(websocket::Decoder::Event event);
  // Sends a close frame and fails the connection.
  void close_with(std::uint16_t code, Error reason);
  Result<void> charge_output(std::size_t bytes, bool is_response);
  void send_close_frame(std::uint16_t code, std::string_view reason = {});
  void on_ping_timer();

  std::function<void()> on_ended_;
  // The identity of the client in the fair queue; null before charge_to() and in the client role.
  FairQueue::Client fair_queue_client_ = nullptr;
  websocket::Role role_;
  Limits limits_;
  std::chrono::milliseconds ping_interval_;
  websocket::Decoder decoder_;
  rpc::ByteQueue queue_;
  ByteCharge input_charge_;   // charge for the bytes in the decoder
  ByteCharge output_charge_;  // charge for the bytes in the queue
  Timer ping_timer_;
  StreamPump pump_;
  int frames_in_turn_ = 0;           // frames decoded in the current turn
  bool received_since_ping_ = true;  // bytes have arrived since the last ping was sent
  bool may_have_frames_ = false;     // the decoder may contain frames to decode in the next turn
  bool input_ended_ = false;
};

}  // namespace fairlead::transport
