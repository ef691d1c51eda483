// Buffer cache: reuses the memory of large texts, such as the frames, strings and results of messages of many
// kilobytes, because page faults in fresh memory cost more than the processing of a message. Each thread that
// runs a loop keeps the buffers that it releases (docs/decisions/0018-buffer-cache.md).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fairlead::detail {

// Only buffers with a capacity in this range are kept.
inline constexpr std::size_t kMinCachedBufferBytes = 32u << 10;
inline constexpr std::size_t kMaxCachedBufferBytes = 4u << 20;
// Maximum capacity of all buffers that one thread keeps.
inline constexpr std::size_t kMaxBufferCacheBytes = 16u << 20;

// Returns an empty string with a capacity of at least `capacity`: a kept buffer that is at most twice as
// large, or new memory. Throws std::bad_alloc when out of memory.
[[nodiscard]] std::string allocate_buffer(std::size_t capacity);
// Returns the largest kept buffer, or an empty string if none is kept.
[[nodiscard]] std::string acquire_largest_buffer() noexcept;
// Like text.reserve(capacity), but a text that becomes large moves to a buffer of the cache that is slightly
// larger than `capacity`, and its previous memory is kept. Throws std::bad_alloc when out of memory.
void reserve_buffer(std::string& text, std::size_t capacity);

// Clears `text` and frees its memory; keeps the memory for reuse if it is large, the thread runs a loop, and
// the limits allow it. The oldest kept buffers make room for it.
void release_buffer(std::string& text) noexcept;
inline void release_large_buffer(std::string& text) noexcept {
  if (text.capacity() >= kMinCachedBufferBytes) release_buffer(text);
}

// Frees the buffers that were kept before the previous call and not used since. The loop calls it once per
// second while buffers are kept.
void trim_buffers() noexcept;
// Returns the capacity of all buffers that the calling thread keeps.
[[nodiscard]] std::size_t cached_buffer_bytes() noexcept;

class BufferCache;

// While it exists, the calling thread keeps buffers. The outermost one of a thread frees them at its end.
class BufferCacheScope {
 public:
  BufferCacheScope();
  ~BufferCacheScope();
  BufferCacheScope(const BufferCacheScope&) = delete;

 private:
  std::unique_ptr<BufferCache> cache_;  // null: an outer scope has the cache
};

}  // namespace fairlead::detail
