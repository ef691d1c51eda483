#include "fairlead/rpc/queued_responses.hpp"

namespace fairlead::rpc {

void QueuedResponses::add(std::uint64_t begin, std::uint64_t end) {
  if (end <= begin) return;
  total_ += end - begin;
  if (!ranges_.empty() && ranges_.back().end == begin) {
    ranges_.back().end = end;
  } else {
    ranges_.push(Range{begin, end});
  }
}

std::size_t QueuedResponses::unwritten_bytes(std::uint64_t written) {
  while (!ranges_.empty() && ranges_.front().end <= written) {
    total_ -= ranges_.front().end - ranges_.front().begin;
    ranges_.pop();
  }
  if (!ranges_.empty() && ranges_.front().begin < written) {
    total_ -= written - ranges_.front().begin;
    ranges_.front().begin = written;
  }
  return total_;
}

std::uint64_t QueuedResponses::position_leaving(std::size_t bytes) const noexcept {
  if (total_ <= bytes) return 0;
  std::uint64_t excess = total_ - bytes;
  for (const Range& range : ranges_) {
    const std::uint64_t size = range.end - range.begin;
    if (excess <= size) return range.begin + excess;
    excess -= size;
  }
  return 0;
}

}  // namespace fairlead::rpc
