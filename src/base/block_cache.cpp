#include "fairlead/base/block_cache.hpp"

#include <new>
#include <utility>

#include "base/address_sanitizer.hpp"

namespace fairlead::detail {

constinit thread_local BlockCache block_cache{};

namespace {

void free_cached_blocks() noexcept {
  for (FreeBlock*& first : block_cache.free_lists) {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
  }
  block_cache.bytes = 0;
}

struct ThreadExitCleanup {
  ~ThreadExitCleanup() {
    block_cache.thread_exiting = true;
    block_cache.max_bytes = 0;
    free_cached_blocks();
  }
};
thread_local ThreadExitCleanup thread_exit_cleanup;

// Returns whether the thread keeps blocks from now on: if it has not kept any before. The first use of
// thread_exit_cleanup in a thread registers its destructor.
bool begin_caching() noexcept {
  if (kAddressSanitizer || block_cache.max_bytes > 0 || block_cache.thread_exiting) return false;
  block_cache.max_bytes = kMaxBlockCacheBytes;
  static_cast<void>(&thread_exit_cleanup);
  return true;
}

}  // namespace

// With the address sanitizer, which finds an overflow only if the block is not larger than requested, no
// block is kept, so its size need not be that of its class.
void* allocate_uncached_block(std::size_t size) {
  const bool may_be_kept = !kAddressSanitizer && is_cacheable_size(size);
  return ::operator new(may_be_kept ? block_size_class(size).bytes : size);
}

void release_uncached_block(void* block, std::size_t size) noexcept {
  if (is_cacheable_size(size) && begin_caching()) return release_block(block, size);
  ::operator delete(block);
}

void* FrameMemory::operator new(std::size_t size) {
  return allocate_block(size);
}

void FrameMemory::operator delete(void* frame, std::size_t size) noexcept {
  release_block(frame, size);
}

std::size_t cached_block_bytes() noexcept {
  return block_cache.bytes;
}

}  // namespace fairlead::detail
