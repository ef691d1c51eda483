// Allocator for coroutine frames. Each thread caches the frames that it releases: the next call needs frames
// of the same sizes, and some are too large for malloc's own thread cache
// (docs/decisions/0011-frame-memory.md). Thread-safe; a frame may be released by another thread than the one
// that allocated it.
#pragma once

#include <cstddef>

namespace fairlead::detail {

// The maximum bytes of released frames in the cache of one thread.
inline constexpr std::size_t kMaxCacheBytes = 256 << 10;

// Throws std::bad_alloc when out of memory.
[[nodiscard]] void* allocate_frame(std::size_t size);
// REQUIRES: `size` is the size that was passed to allocate_frame().
void release_frame(void* frame, std::size_t size) noexcept;

// Returns the bytes of released frames in the cache of the calling thread.
[[nodiscard]] std::size_t cached_frame_bytes() noexcept;

// Base class of promise types whose coroutine frames come from this allocator.
struct FrameMemory {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { release_frame(frame, size); }
};

}  // namespace fairlead::detail
