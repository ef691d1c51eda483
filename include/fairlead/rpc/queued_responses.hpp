// QueuedResponses: tracks which bytes of an outgoing stream belong to responses. A peer stops reading
// requests if the remote peer does not read the responses, but not because its own requests are queued.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fairlead/base/fifo.hpp"

namespace fairlead::rpc {

class QueuedResponses {
 public:
  // Records a response at the stream positions [begin, end). REQUIRES: responses are added in stream order.
  void add(std::uint64_t begin, std::uint64_t end);
  // Returns the number of response bytes after the first `written` bytes of the stream. Forgets the responses
  // before that position: later calls must not pass a smaller one.
  std::size_t unwritten_bytes(std::uint64_t written);
  // Returns the stream position at which at most `bytes` response bytes are left to be written. Returns 0 if
  // not more are left now.
  std::uint64_t position_leaving(std::size_t bytes) const noexcept;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  Fifo<Range> ranges_;     // adjacent ranges are merged
  std::size_t total_ = 0;  // bytes of all ranges
};

}  // namespace fairlead::rpc
