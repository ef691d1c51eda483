#include "peer/parse_in_steps.hpp"

#include "fairlead/loop/timer.hpp"

namespace fairlead {

namespace {

constexpr std::chrono::nanoseconds kPause{1};  // not zero: sleep_for() does not suspend for a zero delay

}  // namespace

Task<rpc::Message> parse_in_steps(Loop& loop, Bytes frame, Limits limits) {
  rpc::MessageParser parser(std::move(frame), limits);
  std::optional<rpc::Message> message = parser.step();
  while (!message) {
    co_await sleep_for(loop, kPause);
    message = parser.step();
  }
  co_return std::move(*message);
}

}  // namespace fairlead
