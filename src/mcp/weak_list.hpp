// WeakList: those who are there, without keeping them. Private to the layer.
#pragma once

#include <memory>
#include <vector>

namespace fairlead::mcp {

template <class T>
class WeakList {
 public:
  void add(const std::shared_ptr<T>& one) {
    // Those who have gone are swept out when they may be half of all.
    if (all_.size() >= sweep_at_) {
      std::erase_if(all_, [](const auto& weak) { return weak.expired(); });
      sweep_at_ = 2 * all_.size() + 16;
    }
    all_.push_back(one);
  }

  std::vector<std::shared_ptr<T>> alive() const {
    std::vector<std::shared_ptr<T>> alive;
    for (const auto& weak : all_) {
      if (auto one = weak.lock()) alive.push_back(std::move(one));
    }
    return alive;
  }

 private:
  std::vector<std::weak_ptr<T>> all_;
  std::size_t sweep_at_ = 16;
};

}  // namespace fairlead::mcp
