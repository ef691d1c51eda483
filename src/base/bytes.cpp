#include "fairlead/base/bytes.hpp"

#include <cstring>
#include <initializer_list>
#include <new>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/base/buffer_cache.hpp"

namespace fairlead {

namespace {

// Returns the address of the bytes, which follow the block in the same allocation.
template <class Block>
char* storage(Block* block) {
  return reinterpret_cast<char*>(block) + sizeof(Block);
}

}  // namespace

// Allocates manually so that the counter and the bytes share one allocation: a small message then costs a
// single malloc.
Bytes Bytes::allocate(std::size_t size, char*& data) {
  const std::size_t total = sizeof(Block) + size;
  auto* block = ::new (detail::allocate_block(total)) Block;
  if (total <= detail::kMaxCachedBlockBytes) block->cacheable_size = static_cast<std::uint32_t>(total);
  data = storage(block);
  return Bytes(block, std::string_view(data, size));
}

Bytes Bytes::copy_of(std::string_view text) {
  if (text.size() >= detail::kMinCachedBufferBytes) return join(text, {});
  char* out = nullptr;
  Bytes bytes = allocate(text.size(), out);
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return bytes;
}

Bytes Bytes::join(std::string_view a, std::string_view b, std::string_view c, std::string_view d,
                  std::string_view e) {
  const std::size_t size = a.size() + b.size() + c.size() + d.size() + e.size();
  if (size >= detail::kMinCachedBufferBytes) {
    std::string text = detail::allocate_buffer(size);
    for (std::string_view part : {a, b, c, d, e}) text += part;
    return adopt(std::move(text));
  }
  char* out = nullptr;
  Bytes bytes = allocate(size, out);
  for (std::string_view part : {a, b, c, d, e}) {
    if (part.empty()) continue;
    std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
  return bytes;
}

Bytes Bytes::adopt(std::string text) {
  char* storage_begin = nullptr;
  Bytes bytes = allocate(sizeof(std::string), storage_begin);
  auto* owned = ::new (static_cast<void*>(storage_begin)) std::string(std::move(text));
  bytes.block_->adopted = true;
  bytes.view_ = *owned;
  return bytes;
}

std::string Bytes::reclaim() noexcept {
  if (!block_ || !block_->adopted || block_->reference_count.load(std::memory_order_acquire) != 1) return {};
  std::string reclaimed = std::move(*reinterpret_cast<std::string*>(storage(block_)));
  reclaimed.clear();
  *this = Bytes();
  return reclaimed;
}

void Bytes::release() noexcept {
  if (block_->reference_count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (block_->adopted) {
    auto* const owned = reinterpret_cast<std::string*>(storage(block_));
    detail::release_large_buffer(*owned);
    owned->~basic_string();
  }
  const std::size_t cacheable_size = block_->cacheable_size;
  block_->~Block();
  if (cacheable_size > 0) {
    detail::release_block(block_, cacheable_size);
  } else {
    ::operator delete(block_);
  }
}

}  // namespace fairlead
