// Fifo<T>: a queue for what is usually taken out as soon as it was put in. It keeps the memory of a few
// elements, so that such a queue allocates once in its life; std::deque allocates for every large element.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fairlead {

template <class T>
class Fifo {
 public:
  bool empty() const noexcept { return first_ == elements_.size(); }
  std::size_t size() const noexcept { return elements_.size() - first_; }
  // REQUIRES: not empty.
  T& front() noexcept { return elements_[first_]; }
  const T& front() const noexcept { return elements_[first_]; }

  void push(T element) {
    if (first_ > kKept && first_ > size()) remove_taken();
    elements_.push_back(std::move(element));
  }
  // Removes the first element, which may be destroyed later: move what it owns out of it before. REQUIRES:
  // not empty.
  void pop() noexcept {
    ++first_;
    if (empty()) clear();
  }
  void clear() noexcept {
    first_ = 0;
    if (elements_.capacity() > kKept) {
      elements_ = std::vector<T>();
    } else {
      elements_.clear();
    }
  }

  auto begin() noexcept { return elements_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() noexcept { return elements_.end(); }

 private:
  static constexpr std::size_t kKept = 4;  // elements whose memory an empty queue keeps

  void remove_taken() {
    elements_.erase(elements_.begin(), begin());
    first_ = 0;
  }

  std::vector<T> elements_;
  std::size_t first_ = 0;  // those before it were taken out
};

}  // namespace fairlead
