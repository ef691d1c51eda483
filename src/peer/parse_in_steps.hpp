// Parsing a large frame in steps, for coroutines. (A Connection's deliver_frame does the same for its
// implementations.)
#pragma once

#include "fairlead/base/limits.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead {

inline bool is_large_frame(const Bytes& frame) noexcept {
  return frame.size() > rpc::MessageParser::kBytesPerStep;
}

// Parses `frame`, a turn of the loop for every few bytes. A small frame is better parsed by Message::parse.
Task<rpc::Message> parse_in_steps(Loop& loop, Bytes frame, Limits limits);

}  // namespace fairlead
