// UpdateQueue: resources that a server says have changed, until their subscribers are told. Private to the
// layer.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>

namespace fairlead::gateway {

class UpdateQueue {
 public:
  // max_pending_update_bytes: of the URIs, and kOverhead for each.
  static constexpr std::size_t kMaxBytes = 4u << 20;
  static constexpr std::size_t kOverhead = 100;

  // An update that is queued already is not added again. Over kMaxBytes all updates are replaced by one that
  // stands for every resource.
  void push(std::string uri);
  // The oldest update. Every resource may have changed if it has no URI. REQUIRES: !empty()
  std::optional<std::string> pop();
  bool empty() const noexcept { return order_.empty() && !everything_; }

 private:
  std::unordered_set<std::string> queued_;
  std::deque<const std::string*> order_;  // those of queued_
  std::size_t bytes_ = 0;
  bool everything_ = false;
};

}  // namespace fairlead::gateway
