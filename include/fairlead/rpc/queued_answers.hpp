// QueuedAnswers: which bytes of an outgoing stream belong to answers, so that a peer can tell answers that
// the other side does not read from requests of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace fairlead::rpc {

class QueuedAnswers {
 public:
  // An answer occupies the positions [begin, end) of the stream. Ranges are added in order.
  void add(std::uint64_t begin, std::uint64_t end);
  // Returns how many bytes of answers are not written yet; forgets those before `written`.
  std::size_t bytes(std::uint64_t written);
  // The written position at which at most `bytes` of the answers are left.
  std::uint64_t position_at(std::size_t bytes) const noexcept;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::deque<Range> ranges_;  // neighbours are merged
  std::size_t total_ = 0;
};

}  // namespace fairlead::rpc
