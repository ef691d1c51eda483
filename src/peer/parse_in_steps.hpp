// parse_in_steps(): parses a large frame in steps, so that the loop serves others between two steps. For
// coroutines; Connection::deliver_frame() does the same for implementations of Connection.
#pragma once

#include "fairlead/base/limits.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead {

inline bool is_large_frame(const Bytes& frame) noexcept {
  return frame.size() > rpc::MessageParser::kBytesPerStep;
}

// Parses `frame` in steps of MessageParser::kBytesPerStep, one turn each. For a small frame, Message::parse()
// is faster.
Task<rpc::Message> parse_in_steps(Loop& loop, Bytes frame, Limits limits);

}  // namespace fairlead
