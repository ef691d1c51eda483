// Block cache: an allocator for objects that live as long as one call, such as coroutine frames, the state of
// a request and small buffers. Each thread keeps the blocks that it releases, because the next call needs
// blocks of the same sizes (docs/decisions/0011-block-cache.md). Thread-safe; a block may be released by
// another thread than the one that allocated it.
#pragma once

#include <array>
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

// Sizes are rounded up to a multiple of kSmallBlockStep up to kMaxSmallBlockBytes, above it to a multiple of
// kLargeBlockStep.
inline constexpr std::size_t kSmallBlockStep = 32;
inline constexpr std::size_t kMaxSmallBlockBytes = 1u << 10;
inline constexpr std::size_t kLargeBlockStep = 256;

struct BlockSizeClass {
  std::size_t index;
  std::size_t bytes;  // of a block of this class
};

constexpr bool is_cacheable_size(std::size_t size) noexcept {
  return size - 1 < kMaxCachedBlockBytes;  // false for 0
}

// REQUIRES: is_cacheable_size(size).
constexpr BlockSizeClass block_size_class(std::size_t size) noexcept {
  if (size <= kMaxSmallBlockBytes) {
    const std::size_t index = (size - 1) / kSmallBlockStep;
    return {index, (index + 1) * kSmallBlockStep};
  }
  const std::size_t steps = (size - kMaxSmallBlockBytes - 1) / kLargeBlockStep + 1;
  return {kMaxSmallBlockBytes / kSmallBlockStep + steps - 1, kMaxSmallBlockBytes + steps * kLargeBlockStep};
}

struct FreeBlock {
  FreeBlock* next;
};

// The released blocks of a thread. Has no destructor, because a block may be released after the thread's
// other thread_local objects are destroyed.
struct BlockCache {
  std::array<FreeBlock*, block_size_class(kMaxCachedBlockBytes).index + 1> free_lists;
  std::size_t bytes;
  // 0 before the first block is released, when the thread is ending, and always with the address sanitizer.
  std::size_t max_bytes;
  bool thread_exiting;  // released blocks are freed
};
extern constinit thread_local BlockCache block_cache;

// Allocate and release a block that the cache cannot serve or keep.
[[nodiscard]] void* allocate_uncached_block(std::size_t size);
void release_uncached_block(void* block, std::size_t size) noexcept;

// Throws std::bad_alloc when out of memory. Inline, with release_block(): a call needs about 25 blocks.
[[nodiscard]] inline void* allocate_block(std::size_t size) {
  if (!is_cacheable_size(size)) return allocate_uncached_block(size);
  const BlockSizeClass size_class = block_size_class(size);
  BlockCache& cache = block_cache;
  FreeBlock* const first = cache.free_lists[size_class.index];
  if (first == nullptr) return allocate_uncached_block(size);
  cache.free_lists[size_class.index] = first->next;
  cache.bytes -= size_class.bytes;
  return first;
}
// REQUIRES: `size` is the size that was passed to allocate_block().
inline void release_block(void* block, std::size_t size) noexcept {
  if (!is_cacheable_size(size)) return release_uncached_block(block, size);
  const BlockSizeClass size_class = block_size_class(size);
  BlockCache& cache = block_cache;
  const std::size_t bytes = cache.bytes + size_class.bytes;
  if (bytes > cache.max_bytes) return release_uncached_block(block, size);
  cache.bytes = bytes;
  cache.free_lists[size_class.index] = ::new (block) FreeBlock{cache.free_lists[size_class.index]};
}

// Returns the bytes of released blocks in the cache of the calling thread.
[[nodiscard]] std::size_t cached_block_bytes() noexcept;

// Base class of promise types whose coroutine frames come from this allocator. Not inline, because clang
// before version 16 may use the address of a thread_local object of one thread in a coroutine that was
// resumed on another one.
struct FrameMemory {
  static void* operator new(std::size_t size);
  static void operator delete(void* frame, std::size_t size) noexcept;
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
