#include "fairlead/base/bytes.hpp"

#include <new>

#include "fairlead/base/buffer_cache.hpp"

namespace fairlead {

namespace {

// Returns the address of the bytes, which follow the block in the same allocation.
template <class Block>
char* storage(Block* block) {
  return reinterpret_cast<char*>(block) + sizeof(Block);
}

}  // namespace

Bytes Bytes::copy_of(std::string_view text) {
  return join(text);
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

void Bytes::destroy(Block* block) noexcept {
  if (block->adopted) {
    auto* const owned = reinterpret_cast<std::string*>(storage(block));
    detail::release_large_buffer(*owned);
    owned->~basic_string();
  }
  const std::size_t cacheable_size = block->cacheable_size;
  block->~Block();
  if (cacheable_size > 0) {
    detail::release_block(block, cacheable_size);
  } else {
    ::operator delete(block);
  }
}

}  // namespace fairlead
