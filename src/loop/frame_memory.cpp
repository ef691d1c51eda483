#include "fairlead/loop/frame_memory.hpp"

#include <array>
#include <new>
#include <utility>

namespace fairlead::detail {

namespace {

// The address sanitizer has to see the end of each frame.
#if defined(__has_feature)
constexpr bool kKeepFrames = !__has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepFrames = false;
#else
constexpr bool kKeepFrames = true;
#endif

// Smaller frames are malloc's business, which is as quick there; larger ones are rare.
constexpr std::size_t kMinBytes = 1000;
constexpr std::size_t kMaxBytes = 8 << 10;
constexpr std::size_t kStep = 256;  // frames are rounded up to a multiple of it

struct Kept {
  Kept* next;
};

// Without a destructor: a frame may be released after the thread's other objects are gone.
struct Cache {
  std::array<Kept*, kMaxBytes / kStep + 1> lists;
  std::size_t bytes;
  bool ended;  // the thread is about to end: nothing is kept any more
};
constinit thread_local Cache cache{};

void free_all() noexcept {
  for (Kept*& first : cache.lists) {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
  }
  cache.bytes = 0;
}

struct AtThreadEnd {
  ~AtThreadEnd() {
    cache.ended = true;
    free_all();
  }
};
thread_local AtThreadEnd at_thread_end;

constexpr bool is_kept(std::size_t size) noexcept {
  return kKeepFrames && size > kMinBytes && size <= kMaxBytes;
}

constexpr std::size_t steps(std::size_t size) noexcept {
  return (size + kStep - 1) / kStep;
}

}  // namespace

void* allocate_frame(std::size_t size) {
  if (!is_kept(size)) return ::operator new(size);
  Kept*& first = cache.lists[steps(size)];
  if (first == nullptr) return ::operator new(steps(size) * kStep);
  cache.bytes -= steps(size) * kStep;
  return std::exchange(first, first->next);
}

void release_frame(void* frame, std::size_t size) noexcept {
  const std::size_t bytes = steps(size) * kStep;
  if (!is_kept(size) || cache.ended || cache.bytes + bytes > kMaxKeptFrameBytes)
    return ::operator delete(frame);
  if (cache.bytes == 0) static_cast<void>(&at_thread_end);  // its first use registers its destructor
  Kept*& first = cache.lists[steps(size)];
  first = ::new (frame) Kept{first};
  cache.bytes += bytes;
}

std::size_t kept_frame_bytes() noexcept {
  return cache.bytes;
}

}  // namespace fairlead::detail
