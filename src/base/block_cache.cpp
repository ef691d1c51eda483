#include "fairlead/base/block_cache.hpp"

#include <array>
#include <new>
#include <utility>

#include "base/address_sanitizer.hpp"

namespace fairlead::detail {

namespace {

// Sizes are rounded up to a multiple of kSmallStep up to kMaxSmallBytes, above it to a multiple of
// kLargeStep.
constexpr std::size_t kSmallStep = 32;
constexpr std::size_t kMaxSmallBytes = 1u << 10;
constexpr std::size_t kLargeStep = 256;
constexpr std::size_t kSmallClasses = kMaxSmallBytes / kSmallStep;
constexpr std::size_t kLargeClasses = (kMaxCachedBlockBytes - kMaxSmallBytes) / kLargeStep;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

// REQUIRES: size <= kMaxCachedBlockBytes.
constexpr SizeClass size_class(std::size_t size) noexcept {
  if (size <= kMaxSmallBytes) {
    const std::size_t steps = (size + kSmallStep - 1) / kSmallStep;
    return {steps, steps * kSmallStep};
  }
  const std::size_t steps = (size - kMaxSmallBytes + kLargeStep - 1) / kLargeStep;
  return {kSmallClasses + steps, kMaxSmallBytes + steps * kLargeStep};
}

struct FreeBlock {
  FreeBlock* next;
};

// Has no destructor, because a block may be released after the thread's other thread_local objects are
// destroyed.
struct Cache {
  std::array<FreeBlock*, kSmallClasses + kLargeClasses + 1> free_lists;
  std::size_t bytes;
  std::size_t max_bytes;  // 0 before the first block is released, and when the thread is ending
  bool thread_exiting;    // released blocks are freed
};
constinit thread_local Cache cache{};

void free_cached_blocks() noexcept {
  for (FreeBlock*& first : cache.free_lists) {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
  }
  cache.bytes = 0;
}

struct ThreadExitCleanup {
  ~ThreadExitCleanup() {
    cache.thread_exiting = true;
    cache.max_bytes = 0;
    free_cached_blocks();
  }
};
thread_local ThreadExitCleanup thread_exit_cleanup;

// Returns whether a block may be kept although max_bytes is exceeded: if it is the first one of this thread.
// The first use of thread_exit_cleanup in a thread registers its destructor.
bool begin_caching() noexcept {
  if (cache.max_bytes > 0 || cache.thread_exiting) return false;
  cache.max_bytes = kMaxBlockCacheBytes;
  static_cast<void>(&thread_exit_cleanup);
  return true;
}

constexpr bool is_cacheable(std::size_t size) noexcept {
  return !kAddressSanitizer && size > 0 && size <= kMaxCachedBlockBytes;
}

}  // namespace

void* allocate_block(std::size_t size) {
  if (!is_cacheable(size)) return ::operator new(size);
  const SizeClass sizes = size_class(size);
  FreeBlock*& first = cache.free_lists[sizes.index];
  if (first == nullptr) return ::operator new(sizes.bytes);
  cache.bytes -= sizes.bytes;
  return std::exchange(first, first->next);
}

void release_block(void* block, std::size_t size) noexcept {
  if (!is_cacheable(size)) return ::operator delete(block);
  const SizeClass sizes = size_class(size);
  if (cache.bytes + sizes.bytes > cache.max_bytes && !begin_caching()) return ::operator delete(block);
  FreeBlock*& first = cache.free_lists[sizes.index];
  first = ::new (block) FreeBlock{first};
  cache.bytes += sizes.bytes;
}

std::size_t cached_block_bytes() noexcept {
  return cache.bytes;
}

}  // namespace fairlead::detail
