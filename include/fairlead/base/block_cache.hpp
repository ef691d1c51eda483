// Block cache: an allocator for objects that live as long as one call, such as coroutine frames, the state of
// a request and small buffers. Each thread keeps the blocks that it releases, because the next call needs
// blocks of the same sizes (docs/decisions/0011-block-cache.md). Thread-safe; a block may be released by
// another thread than the one that allocated it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace fairlead {

namespace detail {

// Maximum bytes of released blocks in the cache of one thread.
inline constexpr std::size_t kMaxBlockCacheBytes = 4u << 20;
// Larger blocks are not cached.
inline constexpr std::size_t kMaxCachedBlockBytes = 8u << 10;

// Throws std::bad_alloc when out of memory.
[[nodiscard]] void* allocate_block(std::size_t size);
// REQUIRES: `size` is the size that was passed to allocate_block().
void release_block(void* block, std::size_t size) noexcept;

// Returns the bytes of released blocks in the cache of the calling thread.
[[nodiscard]] std::size_t cached_block_bytes() noexcept;

// Base class of promise types whose coroutine frames come from this allocator.
struct FrameMemory {
  static void* operator new(std::size_t size) { return allocate_block(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { release_block(frame, size); }
};

}  // namespace detail

// Standard allocator that uses the block cache, for the nodes of containers and for std::allocate_shared().
template <class T>
struct BlockAllocator {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  using value_type = T;

  BlockAllocator() noexcept = default;
  template <class U>
  explicit(false) BlockAllocator(const BlockAllocator<U>&) noexcept {}  // NOLINT: required of allocators

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::allocate_block(count * sizeof(T)));
  }
  void deallocate(T* objects, std::size_t count) noexcept {
    detail::release_block(objects, count * sizeof(T));
  }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) noexcept { return true; }
};

// Like std::make_shared(), with memory from the block cache.
template <class T, class... Arguments>
std::shared_ptr<T> make_cached(Arguments&&... arguments) {
  return std::allocate_shared<T>(BlockAllocator<T>(), std::forward<Arguments>(arguments)...);
}

}  // namespace fairlead
