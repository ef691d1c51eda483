// WebSocket frames (RFC 6455), sans I/O, for either role: bytes in, messages and control frames out; and
// frames to send. No extensions. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/rpc/rope.hpp"

namespace fairlead::http::websocket {

enum class Role : std::uint8_t { client, server };  // a client masks what it sends, a server does not
enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Why a connection is closed, on the wire.
inline constexpr std::uint16_t kNormal = 1000;
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kUnsupported = 1003;  // we take text only
inline constexpr std::uint16_t kNoCode = 1005;       // a close frame without one; never sent
inline constexpr std::uint16_t kNotUtf8 = 1007;
inline constexpr std::uint16_t kTooBig = 1009;
inline constexpr std::uint16_t kInternal = 1011;
inline constexpr std::uint16_t kTryAgainLater = 1013;

// Takes frames apart and puts messages together. After `failed` and `closed` nothing more is read.
class Decoder {
 public:
  enum class What : std::uint8_t { more, message, ping, pong, closed, failed };
  struct Step {
    What what = What::more;
    std::string payload;     // the message, or the control frame's; `closed`, `failed`: the reason
    std::uint16_t code = 0;  // `closed`: as told; `failed`: to tell
  };

  // `role` is ours: a server demands masked frames, a client unmasked ones. Messages over `max_bytes` fail
  // before they are buffered whole.
  Decoder(Role role, std::size_t max_bytes) : role_(role), max_bytes_(max_bytes) {}

  void feed(std::string_view bytes);
  // The next thing there is in what was fed.
  Step next();
  // An idle decoder keeps the memory of small frames only.
  std::size_t buffered() const noexcept { return input_.size() + message_.size(); }

 private:
  struct Head {
    bool final = false;
    Opcode opcode = Opcode::text;
    std::uint64_t length = 0;
    std::size_t size = 0;  // of the head itself
    char mask[4] = {};
    bool masked = false;
  };

  bool read_head(Head& head) const;
  std::optional<Step> head_problem(const Head& head) const;
  std::string take_payload(const Head& head);
  Step take_control(const Head& head, std::string payload);
  Step take_data(const Head& head, std::string payload);
  Step fail(std::uint16_t code, std::string why);

  Role role_;
  std::size_t max_bytes_;
  std::string input_;
  std::size_t at_ = 0;
  std::string message_;  // the fragments so far
  bool in_message_ = false;
  bool over_ = false;
};

// The head of a frame that is not masked.
std::string frame_head(Opcode opcode, std::uint64_t length);
// A whole frame. A client's is masked with fresh random bytes.
std::string control_frame(Role role, Opcode opcode, std::string_view payload);
std::string close_frame(Role role, std::uint16_t code, std::string_view reason);
// A text frame around a message. Large parts are shared where nothing has to be masked.
rpc::Rope text_frame(Role role, const rpc::Rope& message);

// The answer to a handshake's key.
std::string accept_of(std::string_view key);
// A key to ask with.
std::string make_key();

}  // namespace fairlead::http::websocket
