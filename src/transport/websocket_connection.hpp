// WebSocketConnection: messages over a WebSocket, one a text frame, in either role. Begins after the
// handshake. Private to the layer.
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
  // `early` is what had been read of the other side's frames already. Every `keep_alive` a ping is sent; who
  // is silent for two of them is gone. 0: never.
  static std::shared_ptr<WebSocketConnection> create(Loop& loop, std::unique_ptr<ByteStream> stream,
                                                     std::string early, websocket::Role role, Limits limits,
                                                     std::chrono::milliseconds keep_alive);

  // Charges the client with half-sent messages and unread answers, and lets it take turns with the other
  // clients. Call it before the loop runs on.
  void charge_to(const std::shared_ptr<ByteAccount>& account);

  // Told once, on the loop, when the connection has ended.
  void when_ended(std::function<void()> told) { ended_ = std::move(told); }

  std::size_t backlog() const noexcept override { return queue_.bytes(); }
  std::string description() const override { return pump_.name(); }

 private:
  WebSocketConnection(Loop& loop, std::unique_ptr<ByteStream> stream, std::string name, websocket::Role role,
                      Limits limits, std::chrono::milliseconds keep_alive);

  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void want_input() override;
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
  bool receiver_lags() const noexcept { return !inbox_empty() && !receiver_waiting(); }
  bool read_some();
  bool decode();
  bool turn_is_over() noexcept;
  void take(websocket::Decoder::Step step);
  void hang_up(std::uint16_t code, Error reason);
  Result<void> charge_output(std::size_t bytes, bool answers);
  void say_goodbye(std::uint16_t code, std::string_view why = {});
  void beat();

  std::function<void()> ended_;
  FairQueue::Client client_ = nullptr;  // null: a server's connection, or one that is not charged
  websocket::Role role_;
  Limits limits_;
  std::chrono::milliseconds keep_alive_;
  websocket::Decoder decoder_;
  rpc::ByteQueue queue_;
  ByteCharge input_charge_;   // for what the decoder holds
  ByteCharge output_charge_;  // for what is queued
  Timer heart_;
  StreamPump pump_;
  int frames_in_turn_ = 0;  // decoded by the turn under way
  bool heard_ = true;       // anything, since the last ping
  bool undecoded_ = false;  // the decoder may have frames that were left for the next turn
  bool input_ended_ = false;
};

}  // namespace fairlead::transport
