// Fifo<T>: a queue for elements that are usually popped right after they were pushed. A queue that was never
// used has no memory, and an empty one keeps that of a few elements, so such a queue allocates only once;
// std::deque allocates more than 500 bytes at once, and again for every large element.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "fairlead/base/block_cache.hpp"

namespace fairlead {

template <class T>
class Fifo {
  using Elements = std::vector<T, BlockAllocator<T>>;

 public:
  bool empty() const noexcept { return first_ == elements_.size(); }
  std::size_t size() const noexcept { return elements_.size() - first_; }
  // REQUIRES: !empty().
  T& front() noexcept { return elements_[first_]; }
  const T& front() const noexcept { return elements_[first_]; }
  T& back() noexcept { return elements_.back(); }

  void push(T element) { emplace(std::move(element)); }
  // Constructs the element in place.
  template <class... Args>
  void emplace(Args&&... args) {
    if (first_ > kRetainedElements && first_ > size()) remove_popped();
    elements_.emplace_back(std::forward<Args>(args)...);
  }
  // Removes the first element. The element may be destroyed later, so move its resources out of it first.
  // REQUIRES: !empty().
  void pop() noexcept {
    ++first_;
    if (empty()) clear();
  }
  void clear() noexcept {
    first_ = 0;
    if (elements_.capacity() > kRetainedElements) {
      elements_ = Elements();
    } else {
      elements_.clear();
    }
  }

  // Removes the element at `position`. Takes linear time unless it is the first one.
  void erase(typename Elements::iterator position) {
    if (position == begin()) return pop();
    elements_.erase(position);
  }

  auto begin() noexcept { return elements_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() noexcept { return elements_.end(); }
  auto begin() const noexcept { return elements_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() const noexcept { return elements_.end(); }

 private:
  static constexpr std::size_t kRetainedElements = 4;  // capacity that an empty queue keeps

  void remove_popped() {
    elements_.erase(elements_.begin(), begin());
    first_ = 0;
  }

  Elements elements_;
  std::size_t first_ = 0;  // index of the first element; the elements before it have been popped
};

}  // namespace fairlead
