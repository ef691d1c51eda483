// MessageParser: Message::parse() in slices, so that a large frame does not block the loop.
//
//   MessageParser parser(frame, limits);
//   for (message = parser.step(); !message; message = parser.step()) { … return to the loop … }
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

class MessageParser {
 public:
  // Frames up to this size are parsed in one step, which takes a few milliseconds at most.
  static constexpr std::size_t kBytesPerStep = 256u << 10;

  MessageParser(Bytes frame, const Limits& limits, std::size_t bytes_per_step = kBytesPerStep);
  ~MessageParser();
  MessageParser(const MessageParser&) = delete;
  MessageParser& operator=(const MessageParser&) = delete;

  // Scans about `bytes_per_step` more bytes. Returns the message when the whole frame has been scanned,
  // nullopt before that. REQUIRES: no earlier call has returned the message.
  std::optional<Message> step();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead::rpc
