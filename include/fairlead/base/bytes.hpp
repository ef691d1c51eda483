// Bytes: an immutable, reference-counted run of bytes, or a part of one. Copying is a counter's
// increment, so a message can sit in several queues and on several threads without being copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

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
  // One block holding all parts, one after the other.
  static Bytes join(std::string_view a, std::string_view b, std::string_view c = {}, std::string_view d = {},
                    std::string_view e = {});
  // Takes the string over without copying it.
  static Bytes adopt(std::string text);
  // The adopted string back, emptied but with its memory, when nobody else refers to it any more. Otherwise
  // an empty one, and these bytes stay as they are.
  std::string reclaim() noexcept;
  // For bytes that live as long as the program, such as literals.
  static Bytes constant(std::string_view text) noexcept { return Bytes(nullptr, text); }

  std::string_view view() const noexcept { return view_; }
  const char* data() const noexcept { return view_.data(); }
  std::size_t size() const noexcept { return view_.size(); }
  bool empty() const noexcept { return view_.empty(); }

  // A part that shares this block. REQUIRES: `part` lies within view().
  Bytes part(std::string_view part) const noexcept {
    retain();
    return Bytes(block_, part);
  }

 private:
  struct Block;  // counter, then either the bytes themselves or an adopted string

  Bytes(Block* block, std::string_view view) noexcept : block_(block), view_(view) {}
  static Bytes allocate(std::size_t size, char*& data);
  void retain() const noexcept;
  void release() noexcept;  // REQUIRES: there is a block

  Block* block_ = nullptr;
  std::string_view view_;
};

struct Bytes::Block {
  std::atomic<std::size_t> count{1};
  bool adopted = false;
};

inline void Bytes::retain() const noexcept {
  if (block_) block_->count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fairlead
