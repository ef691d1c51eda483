// WebSocket frames (RFC 6455) for clients and servers: decodes received bytes, and serializes frames to send.
// Supports no extensions. Does no I/O. Private to src/http and src/transport.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/rpc/rope.hpp"

namespace fairlead::http::websocket {

enum class Role : std::uint8_t { client, server };  // a client masks its frames, a server does not
enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Status codes of close frames.
inline constexpr std::uint16_t kNormalClosure = 1000;
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kUnsupportedData = 1003;  // sent after a binary message
inline constexpr std::uint16_t kNoStatus = 1005;         // a close frame without a status code; never sent
inline constexpr std::uint16_t kInvalidPayload = 1007;   // sent after text that is not UTF-8
inline constexpr std::uint16_t kMessageTooBig = 1009;
inline constexpr std::uint16_t kInternalError = 1011;
inline constexpr std::uint16_t kTryAgainLater = 1013;

// Decodes frames and assembles messages from their fragments. After a `failed` or `closed` event it ignores
// further input.
class Decoder {
 public:
  enum class EventType : std::uint8_t { need_more, message, ping, pong, closed, failed };
  struct Event {
    EventType type = EventType::need_more;
    std::string payload;     // of the message or control frame; for `closed` and `failed` the reason
    std::uint16_t code = 0;  // `closed`: the received status code; `failed`: the status code to send
  };

  // `role` is the role of the program that decodes: a server requires masked frames, a client unmasked ones.
  // A message over `max_message_bytes` causes a `failed` event before it is buffered completely.
  Decoder(Role role, std::size_t max_message_bytes) : role_(role), max_message_bytes_(max_message_bytes) {}

  // Appends received bytes; next() decodes them.
  void feed(std::string_view bytes);
  // Returns the next event in the bytes that were fed; `need_more` if they have no further complete one.
  Event next();
  // Returns the number of buffered bytes. An idle decoder keeps memory for small frames only.
  std::size_t buffered_bytes() const noexcept { return input_.size() + message_.size(); }

 private:
  struct Head {
    bool final = false;
    Opcode opcode = Opcode::text;
    std::uint64_t length = 0;  // of the payload
    std::size_t size = 0;      // size of the head itself; 0: the head has not arrived completely
    char mask[4] = {};
    bool masked = false;
  };

  bool read_head(Head& head) const;
  std::optional<Event> check_head(const Head& head) const;
  std::string extract_payload(const Head& head);
  Event process_control_frame(const Head& head, std::string payload);
  Event process_data_frame(const Head& head, std::string payload);
  Event fail(std::uint16_t code, std::string why);

  Role role_;
  std::size_t max_message_bytes_;
  std::string input_;
  std::size_t position_ = 0;  // offset in input_ of the first byte that is not decoded
  std::string message_;       // the fragments of the current message that have been received
  bool in_message_ = false;   // the last data frame was not the final one of its message
  bool finished_ = false;     // a `failed` or `closed` event was returned
};

// Returns the head of an unmasked frame with a payload of `length` bytes.
std::string unmasked_frame_head(Opcode opcode, std::uint64_t length);
// These functions return a complete frame. The frame of a client is masked with new random bytes. A payload
// or reason that is too long for a control frame is truncated.
std::string control_frame(Role role, Opcode opcode, std::string_view payload);
std::string close_frame(Role role, std::uint16_t code, std::string_view reason);
// Returns a text frame with the message. The frame of a server shares the memory of the message.
rpc::Rope text_frame(Role role, const rpc::Rope& message);

// Returns the value of Sec-WebSocket-Accept with which a server responds to the Sec-WebSocket-Key `key`.
std::string accept_header_value(std::string_view key);
// Returns a random value for Sec-WebSocket-Key.
std::string make_client_key();

}  // namespace fairlead::http::websocket
