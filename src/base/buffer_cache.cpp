#include "fairlead/base/buffer_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/address_sanitizer.hpp"

namespace fairlead::detail {

namespace {

constexpr std::size_t kMaxBuffers = 32;
constexpr std::size_t kPageBytes = 4096;

struct CachedBuffer {
  std::string memory;  // empty, with a capacity
  bool idle = false;   // kept before the previous call of trim_buffers()
};

}  // namespace

// The kept buffers of a thread, the oldest first.
class BufferCache {
 public:
  std::size_t bytes() const noexcept { return bytes_; }

  // Returns the smallest buffer with a capacity from `min` to `max`, or an empty string.
  std::string take(std::size_t min, std::size_t max) noexcept {
    std::size_t best = count_;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t capacity = buffers_[i].memory.capacity();
      if (capacity < min || capacity > max) continue;
      if (best == count_ || capacity < buffers_[best].memory.capacity()) best = i;
    }
    return best == count_ ? std::string() : remove(best);
  }
  std::string take_largest() noexcept {
    const auto smaller = [](const CachedBuffer& a, const CachedBuffer& b) {
      return a.memory.capacity() < b.memory.capacity();
    };
    const auto begin = buffers_.begin();
    if (count_ == 0) return {};
    return remove(static_cast<std::size_t>(std::max_element(begin, begin + count(), smaller) - begin));
  }
  void keep(std::string&& memory) noexcept {
    while (count_ == kMaxBuffers || bytes_ + memory.capacity() > kMaxBufferCacheBytes)
      const std::string freed = remove(0);
    bytes_ += memory.capacity();
    buffers_[count_++] = CachedBuffer{std::move(memory), false};
  }
  void trim() noexcept {
    for (std::size_t i = count_; i > 0; --i) {
      if (buffers_[i - 1].idle) const std::string freed = remove(i - 1);
    }
    std::for_each(buffers_.begin(), buffers_.begin() + count(), [](CachedBuffer& kept) { kept.idle = true; });
  }

 private:
  std::ptrdiff_t count() const noexcept { return static_cast<std::ptrdiff_t>(count_); }
  std::string remove(std::size_t index) noexcept {
    std::string memory = std::move(buffers_[index].memory);
    const auto at = buffers_.begin() + static_cast<std::ptrdiff_t>(index);
    std::move(at + 1, buffers_.begin() + count(), at);
    --count_;
    bytes_ -= memory.capacity();
    return memory;
  }

  std::array<CachedBuffer, kMaxBuffers> buffers_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

namespace {

// Not null while the thread has a BufferCacheScope. A pointer, because a buffer may be released after the
// thread_local objects of its thread are destroyed.
constinit thread_local BufferCache* thread_cache = nullptr;

constexpr std::size_t in_pages(std::size_t capacity) noexcept {
  return (capacity + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

std::string allocate_buffer(std::size_t capacity) {
  std::string buffer;
  if (thread_cache != nullptr) buffer = thread_cache->take(capacity, 2 * in_pages(capacity));
  if (buffer.capacity() < capacity)
    buffer.reserve(capacity < kMinCachedBufferBytes ? capacity : in_pages(capacity));
  return buffer;
}

std::string acquire_largest_buffer() noexcept {
  return thread_cache != nullptr ? thread_cache->take_largest() : std::string();
}

// A few bytes are often appended to a text that is nearly complete, and the next text is often slightly
// longer: hence the slack.
void reserve_buffer(std::string& text, std::size_t capacity) {
  if (text.capacity() >= capacity) return;
  if (capacity < kMinCachedBufferBytes) return text.reserve(capacity);
  std::string larger =
      allocate_buffer(std::max(capacity + capacity / 16, text.empty() ? 0 : 2 * text.capacity()));
  larger.append(text);
  text.swap(larger);
  release_buffer(larger);
}

void release_buffer(std::string& text) noexcept {
  std::string memory = std::move(text);
  text.clear();
  const std::size_t capacity = memory.capacity();
  if (thread_cache == nullptr || capacity < kMinCachedBufferBytes || capacity > kMaxCachedBufferBytes) return;
  memory.clear();
  thread_cache->keep(std::move(memory));
}

void trim_buffers() noexcept {
  if (thread_cache != nullptr) thread_cache->trim();
}

std::size_t cached_buffer_bytes() noexcept {
  return thread_cache != nullptr ? thread_cache->bytes() : 0;
}

BufferCacheScope::BufferCacheScope() {
  if (kAddressSanitizer || thread_cache != nullptr) return;
  cache_ = std::make_unique<BufferCache>();
  thread_cache = cache_.get();
}

BufferCacheScope::~BufferCacheScope() {
  if (cache_) thread_cache = nullptr;
}

}  // namespace fairlead::detail
