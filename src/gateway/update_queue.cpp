#include "gateway/update_queue.hpp"

#include <utility>

namespace fairlead::gateway {

void UpdateQueue::push(std::string uri) {
  if (all_resources_) return;
  const auto [at, added] = queued_.insert(std::move(uri));
  if (!added) return;
  order_.push_back(&*at);
  bytes_ += at->size() + kOverheadPerUpdate;
  if (bytes_ <= kMaxBytes) return;
  all_resources_ = true;
  order_.clear();
  queued_.clear();
  bytes_ = 0;
}

std::optional<std::string> UpdateQueue::pop() {
  if (std::exchange(all_resources_, false)) return std::nullopt;
  std::string uri = std::move(queued_.extract(*order_.front()).value());
  order_.pop_front();
  bytes_ -= uri.size() + kOverheadPerUpdate;
  return uri;
}

}  // namespace fairlead::gateway
