#include "fairlead/base/id_map.hpp"

#include <utility>

#include "base/random_bytes.hpp"

namespace fairlead::detail {

std::uint64_t id_hash_seed() noexcept {
  static const std::uint64_t seed = [] {
    std::uint64_t random = 0;
    if (const Result<std::string> bytes = random_bytes(sizeof random))
      std::memcpy(&random, bytes->data(), sizeof random);
    return random;
  }();
  return seed;
}

void IdIndex::insert(std::size_t hash, std::uint32_t position) noexcept {
  hashes_[position] = hash;
  std::size_t slot = hash & mask();
  while (slots_[slot] != kNone) slot = (slot + 1) & mask();
  slots_[slot] = position;
}

void IdIndex::grow(std::size_t count) {
  std::size_t size = slots_.size();
  while (size < 2 * count) size *= 2;
  hashes_.resize(size / 2);
  const std::vector<std::uint32_t> previous = std::exchange(slots_, std::vector<std::uint32_t>(size, kNone));
  for (const std::uint32_t position : previous) {
    if (position != kNone) insert(hashes_[position], position);
  }
}

std::size_t IdIndex::slot_of(std::uint32_t position) const noexcept {
  std::size_t slot = hashes_[position] & mask();
  while (slots_[slot] != position) slot = (slot + 1) & mask();
  return slot;
}

void IdIndex::erase(std::uint32_t position, std::uint32_t last) noexcept {
  std::size_t gap = slot_of(position);
  // Moves later positions of the same run into the gap, so that find() reaches them.
  for (std::size_t slot = (gap + 1) & mask(); slots_[slot] != kNone; slot = (slot + 1) & mask()) {
    const std::size_t home = hashes_[slots_[slot]] & mask();
    if (((slot - home) & mask()) < ((slot - gap) & mask())) continue;
    slots_[gap] = slots_[slot];
    gap = slot;
  }
  slots_[gap] = kNone;
  if (position == last) return;
  slots_[slot_of(last)] = position;
  hashes_[position] = hashes_[last];
}

}  // namespace fairlead::detail
