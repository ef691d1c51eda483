// WeakList: a list of weak pointers to objects. Private to the layer. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

namespace fairlead::mcp {

template <class T>
class WeakList {
 public:
  void add(const std::shared_ptr<T>& object) {
    // Expired entries are erased when they may be half of the list.
    if (entries_.size() >= next_cleanup_size_) {
      std::erase_if(entries_, [](const auto& weak) { return weak.expired(); });
      next_cleanup_size_ = 2 * entries_.size() + 16;
    }
    entries_.push_back(object);
  }

  // Returns the objects that still exist.
  std::vector<std::shared_ptr<T>> alive() const {
    std::vector<std::shared_ptr<T>> alive;
    for (const auto& weak : entries_) {
      if (auto object = weak.lock()) alive.push_back(std::move(object));
    }
    return alive;
  }

 private:
  std::vector<std::weak_ptr<T>> entries_;
  std::size_t next_cleanup_size_ = 16;
};

}  // namespace fairlead::mcp
