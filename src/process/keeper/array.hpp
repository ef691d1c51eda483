// Array: a minimal vector for the keeper, which is built without exceptions.
#pragma once

#include <stdlib.h>

#include <cstddef>

namespace fairlead::keeper {

template <class T>  // trivially copyable
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(items_); }

  // Makes room for one more item. Returns false if memory is exhausted.
  bool reserve_one() {
    if (size_ < capacity_) return true;
    const std::size_t new_capacity = capacity_ ? capacity_ * 2 : 64;
    void* grown = realloc(items_, new_capacity * sizeof(T));
    if (!grown) return false;
    items_ = static_cast<T*>(grown);
    capacity_ = new_capacity;
    return true;
  }
  // Returns false if memory is exhausted.
  bool add(const T& item) {
    if (!reserve_one()) return false;
    items_[size_++] = item;
    return true;
  }
  // Removes an item and moves the last item to its place.
  void remove(T& item) { item = items_[--size_]; }
  void remove_first(std::size_t count) {
    for (std::size_t i = count; i < size_; ++i) items_[i - count] = items_[i];
    size_ -= count;
  }

  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& operator[](std::size_t index) { return items_[index]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  T* items_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace fairlead::keeper
