// MessageParser: Message::parse in steps, so that a large frame does not hold the loop.
//
//   MessageParser parser(frame, limits);
//   for (message = parser.step(); !message; message = parser.step()) { … let the loop serve others … }
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

class MessageParser {
 public:
  // Frames up to this size are parsed in one step. No text of this size takes more than a few milliseconds.
  static constexpr std::size_t kBytesPerStep = 256u << 10;

  MessageParser(Bytes frame, const Limits& limits, std::size_t bytes_per_step = kBytesPerStep);
  ~MessageParser();
  MessageParser(const MessageParser&) = delete;
  MessageParser& operator=(const MessageParser&) = delete;

  // Scans about `bytes_per_step` bytes more. Returns the message when the whole frame is scanned; not to be
  // called again then.
  std::optional<Message> step();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead::rpc
