// Bytes: an immutable, reference-counted byte buffer, or a slice of one. Copying only increments a counter,
// so one message can be in several queues and on several threads without copying its bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/base/buffer_cache.hpp"

namespace fairlead {

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(const Bytes& other) noexcept : block_(other.block_), view_(other.view_) { retain(); }
  Bytes(Bytes&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), view_(std::exchange(other.view_, {})) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~Bytes() {
    if (block_) release();
  }

  static Bytes copy_of(std::string_view text);
  // Returns one buffer that contains all parts (texts), concatenated.
  template <class... Parts>
  static Bytes join(const Parts&... parts) {
    return join_views(std::string_view(parts)...);
  }
  // Returns a buffer that `write` has filled. It is called with a pointer to `max_size` bytes, and returns
  // how many of them it has written.
  template <class Write>
  static Bytes build(std::size_t max_size, Write&& write) {
    if (max_size >= detail::kMinCachedBufferBytes) {
      std::string text = detail::allocate_buffer(max_size);
      text.resize_and_overwrite(max_size, [&](char* data, std::size_t) { return write(data); });
      return adopt(std::move(text));
    }
    char* data = nullptr;
    Bytes bytes = allocate(max_size, data);
    bytes.view_ = std::string_view(data, write(data));
    return bytes;
  }
  // Takes ownership of `text` without copying it. The memory of a large text is reused when the last
  // reference is released (base/buffer_cache.hpp).
  static Bytes adopt(std::string text);
  // Returns the memory of an adopted string for reuse: the string, cleared but with its capacity. This object
  // is empty then. If other references to the string exist, returns an empty string and changes nothing.
  std::string reclaim() noexcept;
  // Refers to `text` without owning it. REQUIRES: `text` has static storage duration, such as a literal.
  static Bytes constant(std::string_view text) noexcept { return Bytes(nullptr, text); }

  std::string_view view() const noexcept { return view_; }
  const char* data() const noexcept { return view_.data(); }
  std::size_t size() const noexcept { return view_.size(); }
  bool empty() const noexcept { return view_.empty(); }

  // Returns a slice that shares this buffer. REQUIRES: `part` lies within view().
  Bytes part(std::string_view part) const noexcept {
    retain();
    return Bytes(block_, part);
  }

 private:
  struct Block;  // the reference counter, followed by the bytes or by an adopted std::string

  Bytes(Block* block, std::string_view view) noexcept : block_(block), view_(view) {}
  template <class... Views>
  static Bytes join_views(Views... parts) {
    const std::size_t size = (std::size_t{0} + ... + parts.size());
    return build(size, [&](char* out) {
      ((out = append(out, parts)), ...);
      return size;
    });
  }
  static char* append(char* out, std::string_view part) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    return out + part.size();
  }
  static Bytes allocate(std::size_t size, char*& data);
  void retain() const noexcept;
  void release() noexcept;  // REQUIRES: block_ is not null
  static void destroy(Block* block) noexcept;

  Block* block_ = nullptr;
  std::string_view view_;
};

struct Bytes::Block {
  std::atomic<std::size_t> reference_count{1};
  std::uint32_t cacheable_size = 0;  // of the allocation, if its memory may be cached; otherwise 0
  bool adopted = false;              // the block contains a std::string instead of the bytes
};

// The counter and the bytes share one allocation: a small message then costs a single one.
inline Bytes Bytes::allocate(std::size_t size, char*& data) {
  const std::size_t total = sizeof(Block) + size;
  auto* block = ::new (detail::allocate_block(total)) Block;
  if (total <= detail::kMaxCachedBlockBytes) block->cacheable_size = static_cast<std::uint32_t>(total);
  data = reinterpret_cast<char*>(block + 1);
  return Bytes(block, std::string_view(data, size));
}

inline void Bytes::release() noexcept {
  if (block_->reference_count.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(block_);
}

inline void Bytes::retain() const noexcept {
  if (block_) block_->reference_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fairlead
