// UpdateQueue: the resource updates that a server has sent notifications of, and whose subscribers have not
// been notified yet. Private to the layer.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>

namespace fairlead::gateway {

class UpdateQueue {
 public:
  // The limit max_pending_update_bytes on the total size of the queued URIs, plus kOverheadPerUpdate for
  // each.
  static constexpr std::size_t kMaxBytes = 4u << 20;
  static constexpr std::size_t kOverheadPerUpdate = 100;

  // Queues an update of `uri`. Does nothing if one is already queued. If the queue would exceed kMaxBytes,
  // all queued updates are replaced by a single update of all resources.
  void push(std::string uri);
  // Removes the oldest update and returns its URI; nullopt if it is the update of all resources. REQUIRES:
  // !empty()
  std::optional<std::string> pop();
  bool empty() const noexcept { return order_.empty() && !all_resources_; }

 private:
  std::unordered_set<std::string> queued_;
  std::deque<const std::string*> order_;  // point into queued_
  std::size_t bytes_ = 0;
  bool all_resources_ = false;
};

}  // namespace fairlead::gateway
