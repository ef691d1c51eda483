#include "gateway/update_queue.hpp"

#include <utility>

namespace fairlead::gateway {

void UpdateQueue::push(std::string uri) {
  if (everything_) return;
  const auto [at, added] = queued_.insert(std::move(uri));
  if (!added) return;
  order_.push_back(&*at);
  bytes_ += at->size() + kOverhead;
  if (bytes_ <= kMaxBytes) return;
  everything_ = true;
  order_.clear();
  queued_.clear();
  bytes_ = 0;
}

std::optional<std::string> UpdateQueue::pop() {
  if (std::exchange(everything_, false)) return std::nullopt;
  std::string uri = std::move(queued_.extract(*order_.front()).value());
  order_.pop_front();
  bytes_ -= uri.size() + kOverhead;
  return uri;
}

}  // namespace fairlead::gateway
