// Memory of coroutine frames. The frames of a call are released and soon needed again for the next one, and
// some are too large for the blocks that malloc keeps ready. So each thread keeps a few of them
// (docs/decisions/0011-frame-memory.md). From any thread; a frame may be released by another thread than the
// one that allocated it.
#pragma once

#include <cstddef>

namespace fairlead::detail {

// What one thread keeps at most, for frames that are needed again.
inline constexpr std::size_t kMaxKeptFrameBytes = 256 << 10;

// Fails as operator new does, by std::bad_alloc.
[[nodiscard]] void* allocate_frame(std::size_t size);
// `size` as it was asked for.
void release_frame(void* frame, std::size_t size) noexcept;

// How many bytes the calling thread keeps at present.
[[nodiscard]] std::size_t kept_frame_bytes() noexcept;

// The base of a promise whose coroutine has its frame from here.
struct FrameMemory {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { release_frame(frame, size); }
};

}  // namespace fairlead::detail
