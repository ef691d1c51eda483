#include "fairlead/loop/frame_memory.hpp"

#include <array>
#include <new>
#include <utility>

namespace fairlead::detail {

namespace {

// The address sanitizer finds uses of freed frames only if every frame is freed.
#if defined(__has_feature)
constexpr bool kCacheFrames = !__has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kCacheFrames = false;
#else
constexpr bool kCacheFrames = true;
#endif

// Frames of other sizes are not cached: for smaller ones malloc is as fast, and larger ones are rare.
constexpr std::size_t kMinCacheableSize = 1000;
constexpr std::size_t kMaxCacheableSize = 8 << 10;
constexpr std::size_t kSizeClassStep = 256;  // frame sizes are rounded up to a multiple of it

struct FreeBlock {
  FreeBlock* next;
};

// Has no destructor, because a frame may be released after the thread's other thread_local objects are
// destroyed.
struct Cache {
  std::array<FreeBlock*, kMaxCacheableSize / kSizeClassStep + 1> free_lists;
  std::size_t bytes;
  bool thread_exiting;  // the thread is ending: released frames are freed
};
constinit thread_local Cache cache{};

void free_cached_frames() noexcept {
  for (FreeBlock*& first : cache.free_lists) {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
  }
  cache.bytes = 0;
}

struct ThreadExitCleanup {
  ~ThreadExitCleanup() {
    cache.thread_exiting = true;
    free_cached_frames();
  }
};
thread_local ThreadExitCleanup thread_exit_cleanup;

constexpr bool is_cacheable(std::size_t size) noexcept {
  return kCacheFrames && size > kMinCacheableSize && size <= kMaxCacheableSize;
}

constexpr std::size_t size_class(std::size_t size) noexcept {
  return (size + kSizeClassStep - 1) / kSizeClassStep;
}

}  // namespace

void* allocate_frame(std::size_t size) {
  if (!is_cacheable(size)) return ::operator new(size);
  FreeBlock*& first = cache.free_lists[size_class(size)];
  if (first == nullptr) return ::operator new(size_class(size) * kSizeClassStep);
  cache.bytes -= size_class(size) * kSizeClassStep;
  return std::exchange(first, first->next);
}

void release_frame(void* frame, std::size_t size) noexcept {
  const std::size_t bytes = size_class(size) * kSizeClassStep;
  if (!is_cacheable(size) || cache.thread_exiting || cache.bytes + bytes > kMaxCacheBytes)
    return ::operator delete(frame);
  // The first use of thread_exit_cleanup in a thread registers its destructor.
  if (cache.bytes == 0) static_cast<void>(&thread_exit_cleanup);
  FreeBlock*& first = cache.free_lists[size_class(size)];
  first = ::new (frame) FreeBlock{first};
  cache.bytes += bytes;
}

std::size_t cached_frame_bytes() noexcept {
  return cache.bytes;
}

}  // namespace fairlead::detail
